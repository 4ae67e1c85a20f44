/// @file
/// Lesson 06's kernel and the step to it: clusters at the trip counts where parities go wrong, and at edges
/// where a block of a cluster has no rows.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "common/host/problem/lessons.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Shape;
using ladder::testing::check_gemm_on_all_schedules;
using ladder::testing::check_gemm_on_two_schedules;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;
using ladder::testing::trip_counts;

TEST_CASE("06: two blocks fill each other's slots any number of times") {
  skip_unless_runnable(lesson06::lesson());
  for (const int steps : trip_counts(4))
    check_gemm_on_all_schedules(lesson06::lesson(), {256, 256, 64 * steps}, {{"step", "multicast"}}, 2);
}

TEST_CASE("06: blocks that split K have any number of steps, also different ones") {
  skip_unless_runnable(lesson06::lesson());
  for (const int steps : trip_counts(3)) {
    if (steps > 1)
      check_gemm_on_all_schedules(lesson06::lesson(), {256, 256, 64 * steps}, {{"step", "split_k"}}, 2);
    check_gemm_on_all_schedules(lesson06::lesson(), {256, 256, 2 * 64 * steps}, {{"step", "split_k"}}, 2);
  }
}

TEST_CASE("06: clusters go on from tile to tile") {
  skip_unless_runnable(lesson06::lesson());
  const auto step = GENERATE("multicast", "split_k");
  const auto shape = GENERATE(Shape{256, 256 * 9, 128}, Shape{256 * 5, 256 * 2, 192});
  check_gemm_on_all_schedules(lesson06::lesson(), shape, {{"step", step}}, 1);
}

TEST_CASE("06: edges are cut, and a block without rows shares all the same") {
  skip_unless_runnable(lesson06::lesson());
  const auto step = GENERATE("multicast", "split_k");
  const auto shape = GENERATE(Shape{1, 8, 72},        // one row: the second block has none
                              Shape{1, 264, 136},     // one row, one more than a tile
                              Shape{130, 8, 128},     // the fewest columns
                              Shape{65, 136, 200},    // the second warpgroup has one row
                              Shape{257, 520, 136});  // nothing fits
  check_gemm_on_two_schedules(lesson06::lesson(), shape, {{"step", step}});
}

TEST_CASE("06: rows that TMA cannot copy, and too few steps to split, are refused") {
  skip_unless_runnable(lesson06::lesson());
  expect_refused(lesson06::lesson(), {128, 132, 128}, {}, {"n = 132", "multiple of 8"});
  expect_refused(lesson06::lesson(), {128, 128, 63}, {}, {"k = 63", "multiple of 8"});
  expect_refused(lesson06::lesson(), {128, 128, 64}, {}, {"k = 64", "more than 64"});
}
