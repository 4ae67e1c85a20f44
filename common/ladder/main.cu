/// @file
/// `ladder`: every lesson's rungs in one table; `ladder learn`: the exercises; `ladder ablate NN`: what each
/// ingredient of a lesson is worth. See `ladder --help`.
#include <iostream>
#include <string_view>

#include "common/exercise/learn.hpp"
#include "common/host/problem/lesson_registry.hpp"
#include "common/ladder/ablate.hpp"
#include "common/ladder/climb.hpp"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "ablate") return ladder::run_ablate(argc - 1, argv + 1);
  if (command == "learn") return ladder::run_learn(ladder::this_workshop(), std::cout, argc - 1, argv + 1);
  return ladder::run_ladder(ladder::all_lessons(), argc, argv);
}
