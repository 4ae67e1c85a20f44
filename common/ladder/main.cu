/// @file
/// `ladder`: every lesson's rungs in one table, or `ladder ablate NN`. See `ladder --help`.
#include <string_view>

#include "common/host/lesson_registry.hpp"
#include "common/ladder/ablate.hpp"
#include "common/ladder/climb.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "ablate") return ladder::run_ablate(argc - 1, argv + 1);
  return ladder::run_ladder(ladder::all_lessons(), argc, argv);
}
