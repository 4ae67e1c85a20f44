/// @file
/// Lesson 02's kernel: three cores, whole tiles and edges.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "common/host/problem/lessons.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Shape;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_by_turns;
using ladder::testing::check_gemm_on_three_schedules;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;

TEST_CASE("02: whole tiles and edges are multiplied, on every core") {
  const auto core = GENERATE("wgmma", "mma_sync", "fma");
  skip_unless_runnable(lesson02::lesson(), core);
  const auto shape = GENERATE(Shape{1, 8, 8},         // one chunk
                              Shape{1, 136, 72},      // one row
                              Shape{130, 8, 64},      // the fewest columns
                              Shape{128, 128, 64},    // exactly one tile, one step
                              Shape{131, 136, 72},    // a little more than a tile
                              Shape{256, 128, 192});  // two tiles, three steps
  check_gemm_by_turns(lesson02::lesson(), shape, {{"core", core}});
}

TEST_CASE("02: load and compute take turns for any number of steps") {
  const auto core = GENERATE("wgmma", "mma_sync");
  skip_unless_runnable(lesson02::lesson(), core);
  const int steps = GENERATE(1, 2, 3, 4, 7);
  check_gemm_on_three_schedules(lesson02::lesson(), {128, 128, 64 * steps}, {{"core", core}}, 1);
}

TEST_CASE("02: a grid of more tile rows than a group has is covered") {
  skip_unless_runnable(lesson02::lesson());
  check_gemm(lesson02::lesson(), {18 * 128 + 1, 3 * 128, 64});
  check_gemm(lesson02::lesson(), {128, 20 * 128 + 8, 64});
}

TEST_CASE("02: rows that chunks do not fit into are refused") {
  skip_unless_runnable(lesson02::lesson());
  expect_refused(lesson02::lesson(), {128, 132, 64}, {}, {"n = 132", "multiple of 8"});
  expect_refused(lesson02::lesson(), {128, 128, 63}, {}, {"k = 63", "multiple of 8"});
}

TEST_CASE("02: an unknown core is refused") {
  skip_unless_runnable(lesson02::lesson());
  CHECK_THROWS_AS(lesson02::lesson().settings({{"core", "dma"}}), std::invalid_argument);
}
