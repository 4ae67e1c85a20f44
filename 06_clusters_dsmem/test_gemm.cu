/// @file
/// Lesson 06's kernel and the steps to it: clusters at the trip counts where parities go wrong, and at edges
/// where a block of a cluster has no rows.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>

#include "common/host/problem/lessons.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Shape;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_by_turns;
using ladder::testing::check_gemm_on_three_schedules;
using ladder::testing::check_ring;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;

namespace {
/// All kernels, also where they do not pay.
const ladder::Settings kMulticast{{"step", "multicast"}, {"clusters", "always"}},
    kNarrow{{"step", "narrow_tile"}, {"clusters", "always"}},
    kOneWay{{"step", "one_way"}, {"clusters", "always"}}, kSplit{{"step", "split_k"}, {"clusters", "always"}};
constexpr int kSlots = 4;  // of each
}  // namespace

TEST_CASE("06: two blocks fill each other's slots any number of times") {
  skip_unless_runnable(lesson06::lesson());
  const auto& step = GENERATE(kMulticast, kNarrow);
  check_ring(
      lesson06::lesson(), kSlots,
      [](int steps) {
        return Shape{256, 256, 64 * steps};
      },
      step, 2);
}

TEST_CASE("06: blocks that split K have any number of steps, also different ones") {
  skip_unless_runnable(lesson06::lesson());
  const auto& step = GENERATE(kOneWay, kSplit);
  check_ring(
      lesson06::lesson(), kSlots,
      [](int steps) {
        return Shape{256, 256, 2 * 64 * steps};
      },
      step, 2);
  for (const int steps : {3, 4, 5, 13}) check_gemm_by_turns(lesson06::lesson(), {256, 256, 64 * steps}, step);
}

TEST_CASE("06: clusters go on from tile to tile") {
  skip_unless_runnable(lesson06::lesson());
  const auto& step = GENERATE(kMulticast, kNarrow, kOneWay, kSplit);
  const auto shape = GENERATE(Shape{256, 256 * 9, 128}, Shape{256 * 5, 256 * 2, 192});
  if (shape.k == 128)
    check_gemm_on_three_schedules(lesson06::lesson(), shape, step, 1);
  else
    check_gemm_by_turns(lesson06::lesson(), shape, step);
}

TEST_CASE("06: edges are cut, and a block without rows shares all the same") {
  skip_unless_runnable(lesson06::lesson());
  const auto& step = GENERATE(kMulticast, kNarrow, kOneWay, kSplit);
  const auto shape = GENERATE(Shape{1, 8, 72},        // one row: the second block has none
                              Shape{1, 264, 136},     // one row, one more than a tile
                              Shape{130, 8, 128},     // the fewest columns
                              Shape{65, 136, 200},    // the second warpgroup has one row
                              Shape{257, 520, 136});  // nothing fits
  check_gemm_by_turns(lesson06::lesson(), shape, step);
}

TEST_CASE("06: rows that TMA cannot copy, and too few steps to split, are refused") {
  skip_unless_runnable(lesson06::lesson());
  expect_refused(lesson06::lesson(), {128, 132, 128}, {}, {"n = 132", "multiple of 8"});
  expect_refused(lesson06::lesson(), {128, 128, 63}, {}, {"k = 63", "multiple of 8"});
  for (const ladder::Settings& step : {kOneWay, kSplit})
    expect_refused(lesson06::lesson(), {128, 128, 64}, step, {"k = 64", "more than 64"});
}

TEST_CASE("06: clusters are taken where they pay, and elsewhere the kernel of an earlier step") {
  skip_unless_runnable(lesson06::lesson());
  const ladder::Lesson& lesson = lesson06::lesson();
  const auto taken = [&](const Shape& shape, const ladder::Settings& chosen) {
    const std::string remark = lesson.remark(shape, lesson.settings(chosen));
    return remark.empty() ? "its own" : remark.substr(remark.rfind(' ') + 1);
  };
  const int rows = 256 * 16, columns = 256 * 24;  // more tiles than a GPU holds; rows of whole cache lines
  const ladder::Settings multicast{{"step", "multicast"}}, narrow{{"step", "narrow_tile"}},
      one_way{{"step", "one_way"}};
  CHECK(taken({200, 128, 320}, {}) == "its own");       // one cluster
  CHECK(taken({200, 128, 64}, {}) == "05.2");           // one step of K
  CHECK(taken({200, 128, 320}, one_way) == "its own");  // by the same rule
  CHECK(taken({200, 128, 64}, one_way) == "05.2");
  CHECK(taken({rows, columns + 8, 128}, one_way) == "06.1");
  CHECK(taken({200, 128, 320}, multicast) == "05.2");         // too few tiles for wide ones
  CHECK(taken({rows, columns, 128}, {}) == "05");             // too many to split K
  CHECK(taken({rows, columns, 128}, multicast) == "05");      // whole lines
  CHECK(taken({rows, columns + 8, 128}, {}) == "06.1");       // B straddles cache lines
  CHECK(taken({rows, columns, 72}, multicast) == "its own");  // and A
  CHECK(taken({rows, columns, 72}, narrow) == "06.1");
  CHECK(taken({200, 128, 320}, narrow) == "05.2");
  CHECK(taken({rows, columns, 128}, kMulticast) == "its own");
  CHECK(taken({rows, columns, 128}, kNarrow) == "its own");
  CHECK(taken({rows, columns, 128}, kOneWay) == "its own");
  CHECK(taken({rows, columns, 128}, kSplit) == "its own");
  for (const Shape& shape : {Shape{200, 128, 320}, Shape{200, 128, 64}, Shape{520, 264, 72}})
    for (const ladder::Settings& chosen : {{}, multicast, narrow, one_way}) check_gemm(lesson, shape, chosen);
}
