/// @file
/// Lesson 05 with consumers that take turns: no tile, one, an even and an odd number of them for a block, and
/// trip counts around a ring whose slots one warpgroup leaves to the other.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "05_ws_double_buffer/variants/ping_pong.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Settings;
using ladder::Shape;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_by_turns;
using ladder::testing::check_gemm_on_three_schedules;
using ladder::testing::check_ring;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;

namespace {
const Settings kPingPong = {{"consumers", "ping-pong"}};
constexpr int kSlots = lesson05::ping_pong::Shape::kSlots;
}  // namespace

TEST_CASE("05: ping-pong survives any number of steps, for one tile, two and three of a block") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  // On the CPU device four blocks are resident: the first gets this many tiles, the last may get one fewer.
  const int tile_rows = GENERATE(1, 4, 6, 9);
  check_ring(
      lesson05::lesson(), kSlots,
      [&](int steps) {
        return Shape{128 * tile_rows, 128, 64 * steps};
      },
      kPingPong);
}

TEST_CASE("05: ping-pong leaves out half a lap of the ring, whole laps and more") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const int steps = GENERATE(kSlots / 2, kSlots, 2 * kSlots - 1, 2 * kSlots, 2 * kSlots + 1);
  check_gemm_on_three_schedules(lesson05::lesson(), {128, 128 * 17, 64 * steps}, kPingPong, 1);
}

TEST_CASE("05: ping-pong has its edges cut by TMA") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto shape = GENERATE(Shape{1, 8, 8},          // the smallest: the second warpgroup has nothing to do
                              Shape{1, 264, 72},       // one row, the second fragment none
                              Shape{130, 8, 64},       // the fewest columns
                              Shape{65, 136, 200},     // the second fragment has one row
                              Shape{257, 520, 136},    // nothing fits
                              Shape{700, 1000, 456});  // several ragged tiles for each warpgroup
  check_gemm_by_turns(lesson05::lesson(), shape, kPingPong);
}

TEST_CASE("05: ping-pong covers C in every order of tiles") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto group = GENERATE("1", "4", "8", "16");
  check_gemm(lesson05::lesson(), {128 * 9 + 8, 128 * 3, 64}, {{"consumers", "ping-pong"}, {"group", group}});
}

TEST_CASE("05: ping-pong finishes every element with the epilogue") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const auto epilogue = GENERATE("bias_relu", "bias_gelu");
  const auto shape = GENERATE(Shape{256, 384, 128}, Shape{65, 136, 200}, Shape{1, 8, 8}, Shape{257, 520, 16});
  check_gemm_by_turns(lesson05::lesson(), shape, {{"consumers", "ping-pong"}, {"epilogue", epilogue}});
}

TEST_CASE("05: ping-pong has as many slots as fit, six, and no other shape") {
  skip_unless_runnable(lesson05::lesson(), "wgmma");
  const ladder::Lesson& lesson = lesson05::lesson();
  static_assert(kSlots == 6);
  const ladder::Resources ping_pong = lesson.resources(lesson.settings(kPingPong));
  CHECK(ping_pong.tile == "128x128");
  CHECK(ping_pong.shared_bytes > 192 * 1024);
  expect_refused(lesson, {128, 256, 64}, {{"consumers", "ping-pong"}, {"slots", "3"}},
                 {"--slots 3", "ping-pong", "as fit, 6"});
  expect_refused(lesson, {128, 256, 64}, {{"consumers", "ping-pong"}, {"ratio", "1:1"}},
                 {"--ratio 1:1", "ping-pong", "two warpgroups"});
}
