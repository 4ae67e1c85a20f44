/// @file
/// Lesson 04's kernel, with TMA and without: roles over one slot, more tiles than blocks and fewer, edges.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>

#include "04_warp_specialized/gemm.cuh"
#include "common/host/device/device.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Settings;
using ladder::Shape;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_on_all_schedules;
using ladder::testing::check_gemm_on_two_schedules;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;

TEST_CASE("04: one slot is handed over any number of times") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  const auto slot_k = GENERATE("64", "128", "192");
  const int panels = GENERATE(1, 2, 3, 4, 6, 7);
  check_gemm_on_all_schedules(lesson04::lesson(), {128, 128, 64 * panels}, {{"slot_k", slot_k}}, 2);
}

TEST_CASE("04: a slot that k does not fill is filled up with zeros") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  const int slot_k = GENERATE(64, 128, 192);
  const int k = GENERATE_COPY(8, slot_k - 8, slot_k + 8, 2 * slot_k + 8);
  check_gemm_on_two_schedules(lesson04::lesson(), {136, 200, k}, {{"slot_k", std::to_string(slot_k)}});
}

TEST_CASE("04: a block that walks over several tiles hands each to the storer") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  const auto shape =
      GENERATE(Shape{128, 128 * 9, 128}, Shape{128 * 7, 128 * 3, 64}, Shape{128 * 5, 128 * 2, 448});
  check_gemm_on_all_schedules(lesson04::lesson(), shape, {}, 1);
}

TEST_CASE("04: edges are cut by TMA") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  const auto shape = GENERATE(Shape{1, 8, 8},         // the smallest
                              Shape{1, 136, 72},      // one row
                              Shape{130, 8, 64},      // the fewest columns
                              Shape{129, 136, 200},   // one more than a tile
                              Shape{257, 264, 136});  // nothing fits
  check_gemm_on_two_schedules(lesson04::lesson(), shape, {});
}

TEST_CASE("04: every order of tiles covers C") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  const auto group = GENERATE("1", "4", "8", "16");
  check_gemm(lesson04::lesson(), {128 * 9 + 8, 128 * 3, 64}, {{"group", group}});
}

TEST_CASE("04: rows that TMA cannot copy are refused") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  expect_refused(lesson04::lesson(), {128, 132, 64}, {}, {"n = 132", "multiple of 8"});
  expect_refused(lesson04::lesson(), {128, 128, 63}, {}, {"k = 63", "multiple of 8"});
}

TEST_CASE("04: without TMA one slot is handed over any number of times", "[one_lane_arrives]") {
  skip_unless_runnable(lesson04::lesson());
  const auto slot_k = GENERATE("64", "128", "192");
  const int panels = GENERATE(1, 2, 3, 4, 7);
  check_gemm_on_all_schedules(lesson04::lesson(), {128, 128, 64 * panels},
                              {{"core", "mma_sync"}, {"loader", "cp_async"}, {"slot_k", slot_k}}, 2);
}

TEST_CASE("04: without TMA a block walks over several tiles", "[one_lane_arrives]") {
  skip_unless_runnable(lesson04::lesson());
  const auto shape = GENERATE(Shape{128, 128 * 9, 128}, Shape{128 * 5, 128 * 2, 64});
  check_gemm_on_all_schedules(lesson04::lesson(), shape, {{"core", "mma_sync"}, {"loader", "cp_async"}}, 1);
}

TEST_CASE("04: without TMA the loader fills up with zeros, and the storer leaves out what is outside",
          "[one_lane_arrives]") {
  skip_unless_runnable(lesson04::lesson());
  const auto shape = GENERATE(Shape{1, 8, 8},         // the smallest
                              Shape{1, 136, 72},      // one row
                              Shape{130, 8, 64},      // the fewest columns
                              Shape{129, 136, 200},   // one more than a tile
                              Shape{257, 264, 136});  // nothing fits
  check_gemm_on_two_schedules(lesson04::lesson(), shape, {{"core", "mma_sync"}, {"loader", "cp_async"}});
}

TEST_CASE("04: a loader that does not go with the core, and rows that it cannot copy, are refused") {
  skip_unless_runnable(lesson04::lesson());
  const Settings mma_sync = {{"core", "mma_sync"}, {"loader", "cp_async"}};
  expect_refused(lesson04::lesson(), {128, 132, 64}, mma_sync, {"n = 132", "multiple of 8"});
  expect_refused(lesson04::lesson(), {128, 128, 63}, mma_sync, {"k = 63", "multiple of 8"});
}

TEST_CASE("04: wgmma and cp_async do not go together") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  expect_refused(lesson04::lesson(), {128, 128, 64}, {{"loader", "cp_async"}},
                 {"--loader cp_async", "--core mma_sync"});
}
