/// @file
/// Lesson 05's kernel: a ring of slots between roles, at the trip counts where parities go wrong.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>

#include "05_ws_double_buffer/gemm.cuh"
#include "common/testing/gemm_checks.hpp"

using ladder::Shape;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_on_all_schedules;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;
using ladder::testing::trip_counts;

TEST_CASE("05: a ring of any depth survives any number of steps") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const int slots = GENERATE(2, 3, 4);
  for (const int steps : trip_counts(slots))
    check_gemm_on_all_schedules(lesson05::lesson(), {128, 256, 64 * steps},
                                {{"slots", std::to_string(slots)}}, 2);
}

TEST_CASE("05: the ring turns on from tile to tile") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto slots = GENERATE("2", "3", "4");
  const auto shape =
      GENERATE(Shape{128, 256 * 9, 64}, Shape{128 * 5, 256 * 2, 192}, Shape{128 * 3, 256 * 3, 320});
  check_gemm_on_all_schedules(lesson05::lesson(), shape, {{"slots", slots}}, 1);
}

TEST_CASE("05: edges are cut by TMA") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto shape =
      GENERATE(Shape{1, 8, 8},         // the smallest
               Shape{1, 264, 72},      // one row
               Shape{130, 8, 64},      // the fewest columns
               Shape{65, 136, 200},    // the second warpgroup has one row, the second half 8 columns
               Shape{257, 520, 136});  // nothing fits
  check_gemm_on_all_schedules(lesson05::lesson(), shape, {}, 2);
}

TEST_CASE("05: every order of tiles covers C") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto group = GENERATE("1", "4", "8", "16");
  check_gemm(lesson05::lesson(), {128 * 9 + 8, 256 * 3, 64}, {{"group", group}});
}

TEST_CASE("05: rows that TMA cannot copy are refused") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  expect_refused(lesson05::lesson(), {128, 132, 64}, {}, {"n = 132", "multiple of 8"});
  expect_refused(lesson05::lesson(), {128, 128, 63}, {}, {"k = 63", "multiple of 8"});
}
