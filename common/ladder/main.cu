/// @file
/// `ladder`: every lesson's rungs in one table; `ladder learn`: the exercises; `ladder ablate NN`: what each
/// ingredient of a lesson is worth; `ladder tune`: the fastest plan of a shape; `ladder check FILE`: a kernel
/// of your own; `ladder parts`: what kernels are made of, in clocks. See `ladder --help`.
#include <iostream>
#include <string>
#include <string_view>

#include "07_streams/program/levels.hpp"
#include "common/exercise/learn.hpp"
#include "common/host/problem/lesson_registry.hpp"
#include "common/host/problem/shape.hpp"
#include "common/ladder/commands.hpp"
#include "common/ladder/host_half.hpp"
#include "common/own_kernel/check.hpp"
#include "common/parts/parts.hpp"

namespace {

/// Lesson 07 as the last part of the climb, with what its own program takes where no option is given.
ladder::HostHalf host_half() {
  ladder::HostHalf half;
  half.lesson = "07_streams";
  half.levels = [] {
    std::vector<std::string> levels;
    for (const lesson07::Level& level : lesson07::levels())
      levels.push_back(std::to_string(level.number) + " " + level.added);
    return levels;
  };
  half.shapes = ladder::parse_shapes("--shape", lesson07::default_shapes());
  half.run = lesson07::measured_levels;
  return half;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "ablate") return ladder::run_ablate(argc - 1, argv + 1);
  if (command == "tune") return ladder::run_tune(ladder::all_lessons(), argc - 1, argv + 1);
  if (command == "learn") return ladder::run_learn(ladder::this_workshop(), std::cout, argc - 1, argv + 1);
  if (command == "parts") return ladder::run_parts(argc - 1, argv + 1);
  if (command == "check") return ladder::run_check(argc - 1, argv + 1);
  const ladder::HostHalf half = host_half();
  return ladder::run_ladder(ladder::all_lessons(), &half, argc, argv);
}
