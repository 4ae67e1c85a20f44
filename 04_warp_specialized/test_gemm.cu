/// @file
/// Lesson 04's kernel, with TMA and without: roles over one slot, more tiles than blocks and fewer, edges.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>

#include "04_warp_specialized/variants/roles_without_wgmma.cuh"
#include "common/host/device/device.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Settings;
using ladder::Shape;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_by_turns;
using ladder::testing::check_gemm_on_three_schedules;
using ladder::testing::expect_refused;
using ladder::testing::loaders_without_wgmma;
using ladder::testing::skip_unless_runnable;

TEST_CASE("04: one slot is handed over any number of times") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  const auto step = GENERATE("tma", "roles", "walk", "storer");
  const int k_steps = GENERATE(1, 2, 3, 4, 7);
  check_gemm_on_three_schedules(lesson04::lesson(), {128, 128, 64 * k_steps}, {{"step", step}}, 2);
}

TEST_CASE("04: a slot that k does not fill is filled up with zeros") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  const auto step = GENERATE("tma", "roles", "walk", "storer");
  const int k = GENERATE(8, 56, 72, 136);
  check_gemm_by_turns(lesson04::lesson(), {136, 200, k}, {{"step", step}});
}

TEST_CASE("04: a block walks over several tiles") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  const auto step = GENERATE("walk", "storer");
  const auto shape =
      GENERATE(Shape{128, 128 * 9, 128}, Shape{128 * 7, 128 * 3, 64}, Shape{128 * 5, 128 * 2, 448},
               Shape{128 * 3 + 1, 128 * 4 + 8, 136});  // the last tiles are cut
  check_gemm_on_three_schedules(lesson04::lesson(), shape, {{"step", step}}, 1);
}

TEST_CASE("04: edges are cut") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  const auto step = GENERATE("tma", "roles", "walk", "storer");
  const auto shape = GENERATE(Shape{1, 8, 8},         // the smallest
                              Shape{1, 136, 72},      // one row
                              Shape{130, 8, 64},      // the fewest columns
                              Shape{129, 136, 200},   // one more than a tile
                              Shape{257, 264, 136});  // nothing fits
  check_gemm_by_turns(lesson04::lesson(), shape, {{"step", step}});
}

TEST_CASE("04: every tile of C is covered where rows of tiles do not fill a group") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  const auto step = GENERATE("tma", "roles", "walk", "storer");
  check_gemm(lesson04::lesson(), {128 * 18 + 8, 128 * 2, 64}, {{"step", step}});
}

TEST_CASE("04: rows that TMA cannot copy are refused") {
  skip_unless_runnable(lesson04::lesson(), "wgmma");
  expect_refused(lesson04::lesson(), {128, 132, 64}, {}, {"n = 132", "multiple of 8"});
  expect_refused(lesson04::lesson(), {128, 128, 63}, {}, {"k = 63", "multiple of 8"});
}

TEST_CASE("04: without wgmma one slot is handed over any number of times", "[one_lane_arrives]") {
  skip_unless_runnable(lesson04::lesson());
  const int panels = GENERATE(1, 2, 3, 4, 7);
  for (const std::string& loader : loaders_without_wgmma())
    check_gemm_on_three_schedules(lesson04::lesson(), {128, 128, 64 * panels},
                                  {{"core", "mma_sync"}, {"loader", loader}}, 2);
}

TEST_CASE("04: without wgmma a block walks over several tiles", "[one_lane_arrives]") {
  skip_unless_runnable(lesson04::lesson());
  const auto shape = GENERATE(Shape{128, 128 * 9, 128}, Shape{128 * 5, 128 * 2, 64});
  for (const std::string& loader : loaders_without_wgmma())
    check_gemm_on_three_schedules(lesson04::lesson(), shape, {{"core", "mma_sync"}, {"loader", loader}}, 1);
}

TEST_CASE("04: without wgmma the loader fills up with zeros, and what is outside is not stored",
          "[one_lane_arrives]") {
  skip_unless_runnable(lesson04::lesson());
  const auto shape = GENERATE(Shape{1, 8, 8},         // the smallest
                              Shape{1, 136, 72},      // one row
                              Shape{130, 8, 64},      // the fewest columns
                              Shape{129, 136, 200});  // nothing fits
  for (const std::string& loader : loaders_without_wgmma())
    check_gemm_by_turns(lesson04::lesson(), shape, {{"core", "mma_sync"}, {"loader", loader}});
}

TEST_CASE("04: without wgmma an A100 has room for two blocks") {
  using namespace lesson04::without_wgmma;
  constexpr size_t kKilobyte = 1024;  // a block takes one more than it asks for
  CHECK(OneSlot::kBlocksPerSm * (sizeof(SharedStorage<OneSlot>) + kKilobyte) <= 164 * kKilobyte);
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

TEST_CASE("04: the steps need wgmma") {
  skip_unless_runnable(lesson04::lesson());
  const auto step = GENERATE("tma", "roles", "walk");
  expect_refused(lesson04::lesson(), {128, 128, 64}, {{"core", "mma_sync"}, {"step", step}},
                 {"--step " + std::string(step), "--core wgmma"});
}
