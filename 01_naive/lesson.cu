/// @file
/// Lesson 01 for the programs: its knob, its rung, its limits.
#include <fmt/core.h>
#include <stdexcept>

#include "01_naive/gemm.cuh"
#include "common/host/problem/lessons.hpp"

namespace lesson01 {
namespace {

Along along(const ladder::Settings& settings) {
  return settings.at("along") == "rows" ? Along::rows : Along::columns;
}

/// The second axis of a grid has at most 65535 blocks.
void check(const Gemm& p, const ladder::Settings& settings) {
  const bool columns = along(settings) == Along::columns;
  const int slow = columns ? p.m : p.n, limit = 65535 * kBlockSlow;
  if (slow > limit)
    throw std::invalid_argument(
        fmt::format("{} = {}: must be at most {} in this lesson", columns ? "m" : "n", slow, limit));
}

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  along(settings) == Along::columns ? launch_gemm<Along::columns>(p, stream)
                                    : launch_gemm<Along::rows>(p, stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "01_naive",
      .idea = "One thread computes one element of C.",
      .knobs = {{"along", "the axis of C along which the threads of a warp lie", {"columns", "rows"}}},
      .rungs = {{.label = "naive", .settings = {}, .id = "01"}},
      .check = check,
      .launch = launch,
      // Small: a load for every product, and nothing is handed over.
      .cpu_check = {67, 136, 72},
      .cpu_check_few = {40, 72, 8}};
  return lesson;
}

}  // namespace lesson01
