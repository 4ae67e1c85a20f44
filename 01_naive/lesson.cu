/// @file
/// Lesson 01 for the programs: its knob, its rung, its limits.
#include "01_naive/gemm.cuh"
#include "01_naive/variants/along_rows.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson01 {
namespace {

bool is_along_columns(const ladder::Settings& settings) { return settings.at("along") == "columns"; }

void require_rows(const Gemm& p, bool along_columns) {
  ladder::require_grid_rows(along_columns ? "m" : "n", along_columns ? p.m : p.n, kTile.m);
}

void check(const Gemm& p, const ladder::Settings& settings) { require_rows(p, is_along_columns(settings)); }

ladder::Launcher launcher_of(const ladder::Settings& settings) {
  return [along_columns = is_along_columns(settings)](const Gemm& p, cudaStream_t stream) {
    require_rows(p, along_columns);
    along_columns ? launch_gemm(p, stream) : along_rows::launch_gemm(p, stream);
  };
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "01_naive",
      .idea = "One thread computes one element of C.",
      .knobs = {{"along", "the axis of C along which the threads of a warp lie", {"columns", "rows"}}},
      .rungs = {{.label = "naive", .settings = {}, .id = "01"}},
      .check = check,
      .launch = launcher_of,
      // Small: a load for every product, and nothing is handed over.
      .cpu_check = {67, 136, 72},
      .cpu_check_few = {40, 72, 8}};
  return lesson;
}

}  // namespace lesson01
