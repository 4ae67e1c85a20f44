/// @file
/// Lesson 01's kernel: every shape, however it is laid over the threads.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "common/host/problem/lessons.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Shape;
using ladder::testing::check_gemm_on_three_schedules;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;

TEST_CASE("01: any shape is multiplied, along either axis") {
  skip_unless_runnable(lesson01::lesson());
  const auto along = GENERATE("columns", "rows");
  const auto shape = GENERATE(Shape{1, 1, 1},      // one element
                              Shape{1, 70, 33},    // one row
                              Shape{70, 1, 33},    // one column
                              Shape{32, 32, 1},    // one product each
                              Shape{8, 32, 64},    // exactly one block
                              Shape{9, 33, 7},     // one more than a block, each way
                              Shape{67, 45, 129},  // nothing fits
                              Shape{64, 96, 128});
  check_gemm_on_three_schedules(lesson01::lesson(), shape, {{"along", along}});
}

TEST_CASE("01: more blocks than a grid has along its second axis are refused") {
  skip_unless_runnable(lesson01::lesson());
  expect_refused(lesson01::lesson(), {65535 * 8 + 1, 8, 8}, {}, {"m = 524281", "at most 524280"});
  expect_refused(lesson01::lesson(), {8, 65535 * 8 + 1, 8}, {{"along", "rows"}},
                 {"n = 524281", "at most 524280"});
}
