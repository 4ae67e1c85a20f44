/// @file
/// Lesson 02's kernel: three cores, whole tiles and edges, rows that start anywhere.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "common/host/problem/lessons.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Shape;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_on_all_schedules;
using ladder::testing::check_gemm_on_two_schedules;
using ladder::testing::skip_unless_runnable;

TEST_CASE("02: any shape is multiplied, on every core") {
  const auto core = GENERATE("wgmma", "mma_sync", "fma");
  skip_unless_runnable(lesson02::lesson(), core);
  const auto shape = GENERATE(Shape{1, 1, 1},         // one element
                              Shape{1, 136, 72},      // one row
                              Shape{130, 1, 65},      // one column
                              Shape{128, 128, 64},    // exactly one tile, one step
                              Shape{129, 136, 72},    // one more than a tile, rows aligned
                              Shape{131, 133, 67},    // nothing aligned
                              Shape{64, 130, 190},    // pairs of columns, no groups of four
                              Shape{256, 128, 192});  // two tiles, three steps
  check_gemm_on_two_schedules(lesson02::lesson(), shape, {{"core", core}});
}

TEST_CASE("02: load and compute take turns for any number of steps") {
  const auto core = GENERATE("wgmma", "mma_sync");
  skip_unless_runnable(lesson02::lesson(), core);
  const int steps = GENERATE(1, 2, 3, 4, 7);
  check_gemm_on_all_schedules(lesson02::lesson(), {128, 128, 64 * steps}, {{"core", core}}, 1);
}

TEST_CASE("02: a grid of more tile rows than a group has is covered") {
  skip_unless_runnable(lesson02::lesson());
  check_gemm(lesson02::lesson(), {18 * 128 + 1, 3 * 128, 64});
  check_gemm(lesson02::lesson(), {128, 20 * 128 + 8, 64});
}

TEST_CASE("02: an unknown core is refused") {
  skip_unless_runnable(lesson02::lesson());
  CHECK_THROWS_AS(lesson02::lesson().settings({{"core", "dma"}}), std::invalid_argument);
}
