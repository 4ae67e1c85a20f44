/// @file
/// Lesson 03's kernel. A ring goes wrong where the number of steps meets the number of slots, so those are
/// tried first.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>

#include "common/cuda/device_buffer.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/testing/gemm_checks.hpp"
#ifdef LADDER_CPU_DEVICE
#include "common/cpu_device/cpu_device.hpp"
#endif

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using ladder::Shape;
using ladder::testing::check_gemm_by_turns;
using ladder::testing::check_gemm_on_three_schedules;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;
using ladder::testing::trip_counts;

TEST_CASE("03: a ring of any depth survives any number of steps") {
  skip_unless_runnable(lesson03::lesson());
  const int slots = GENERATE(1, 2, 3, 4, 5);
  for (const int steps : trip_counts(slots))
    check_gemm_on_three_schedules(lesson03::lesson(), {128, 128, 64 * steps},
                                  {{"slots", std::to_string(slots)}}, 2);
}

/// CUDA cores, which GPUs older than sm_80 multiply with, have one way to copy.
void skip_without_other_ways() {
  skip_unless_runnable(lesson03::lesson());
  if (ladder::resolve_core("auto") == "fma") SKIP("--core fma: only with --copy primitives");
}

TEST_CASE("03: the first step, whose copies all go through L1, waits for each tile") {
  skip_unless_runnable(lesson03::lesson());
  const ladder::Settings first = lesson03::lesson().rungs.front().settings;
  for (const int steps : trip_counts(1))
    check_gemm_on_three_schedules(lesson03::lesson(), {128, 128, 64 * steps}, first, 2);
}

TEST_CASE("03: every way to copy hands the slots over") {
  skip_without_other_ways();
  const auto copy = GENERATE("memcpy_async", "block", "cg", "registers");
  const int slots = GENERATE(1, 2, 3);
  for (const int steps : trip_counts(slots))
    check_gemm_on_three_schedules(lesson03::lesson(), {64, 128, 64 * steps},
                                  {{"slots", std::to_string(slots)}, {"copy", copy}}, 1);
}

TEST_CASE("03: narrow copies bring the same tile") {
  skip_without_other_ways();
  const auto bytes = GENERATE("8", "4");
  check_gemm_by_turns(lesson03::lesson(), {129, 136, 200}, {{"copy", "memcpy_async"}, {"bytes", bytes}});
}

TEST_CASE("03: edges are cut, on every core") {
  const auto core = GENERATE("wgmma", "mma_sync", "fma");
  skip_unless_runnable(lesson03::lesson(), core);
  ladder::Settings settings = GENERATE(from_range(lesson03::lesson().rungs)).settings;
  const auto shape = GENERATE(Shape{1, 8, 8},         // the smallest
                              Shape{1, 136, 72},      // one row
                              Shape{130, 8, 64},      // the fewest columns
                              Shape{129, 136, 200});  // nothing fits, and more steps than slots
  settings["core"] = core;
  check_gemm_by_turns(lesson03::lesson(), shape, settings);
}

TEST_CASE("03: copies through L1 and past it bring the same tiles, wherever rows begin") {
  skip_unless_runnable(lesson03::lesson(), "wgmma");
  const auto l1 = GENERATE("auto", "always", "never");
  const int slots = GENERATE(1, 2, 3, 4, 5);
  const auto shape = GENERATE(Shape{128, 128, 256},   // all rows begin at a sector
                              Shape{129, 136, 208},   // of A alone
                              Shape{130, 144, 200},   // of B alone
                              Shape{131, 264, 328});  // of neither; more steps than slots
  check_gemm_by_turns(lesson03::lesson(), shape, {{"l1", l1}, {"slots", std::to_string(slots)}});
}

TEST_CASE("03: copies go through L1 where rows straddle sectors") {
  const ladder::Lesson& lesson = lesson03::lesson();
  skip_unless_runnable(lesson, "wgmma");
  const auto remark = [&](const Shape& shape, const ladder::Settings& settings) {
    return lesson.remark(shape, lesson.settings(settings));
  };
  for (const char* slots : {"1", "3"}) {
    CHECK(remark({5000, 4096, 4096}, {{"slots", slots}}).empty());  // the number of rows does not matter
    CHECK_THAT(remark({4096, 5000, 4096}, {{"slots", slots}}), ContainsSubstring("through L1"));
    CHECK_THAT(remark({4096, 4096, 5000}, {{"slots", slots}}), ContainsSubstring("through L1"));
    CHECK(remark({4096, 5008, 4112}, {{"slots", slots}}).empty());
  }
  CHECK(remark({5000, 5000, 5000}, {{"l1", "never"}}).empty());
  CHECK(remark({5000, 5000, 5000}, {{"copy", "block"}}).empty());
}

TEST_CASE("03: what copies of 16 bytes cannot move is refused") {
  skip_unless_runnable(lesson03::lesson());
  expect_refused(lesson03::lesson(), {128, 132, 64}, {}, {"n = 132", "multiple of 8"});
  expect_refused(lesson03::lesson(), {128, 128, 63}, {}, {"k = 63", "multiple of 8"});
}

TEST_CASE("03: a matrix that does not start at a whole chunk is refused") {
  const ladder::Lesson& lesson = lesson03::lesson();
  skip_unless_runnable(lesson);
  const ladder::DeviceBuffer<__nv_bfloat16> a(std::vector<__nv_bfloat16>(8 * 8));
  ladder::DeviceBuffer<__nv_bfloat16> c(8 * 8 + 1);
  const ladder::Gemm p{.a = a.data(), .b = a.data(), .c = c.data() + 1, .m = 8, .n = 8, .k = 8};
  for (const char* slots : {"1", "3"})
    CHECK_THROWS_WITH(lesson.launch(p, lesson.settings({{"slots", slots}}), nullptr),
                      StartsWith("c = 0x") && ContainsSubstring("must start at a multiple of 16 bytes"));
}

TEST_CASE("03: combinations that do not exist are refused") {
  skip_unless_runnable(lesson03::lesson());
  expect_refused(lesson03::lesson(), {128, 128, 64}, {{"bytes", "4"}, {"copy", "cg"}},
                 {"--bytes 4", "memcpy_async"});
  expect_refused(lesson03::lesson(), {128, 128, 64},
                 {{"bytes", "8"}, {"copy", "memcpy_async"}, {"slots", "2"}}, {"--slots 2", "8 bytes"});
  expect_refused(lesson03::lesson(), {128, 128, 64}, {{"copy", "block"}, {"slots", "4"}},
                 {"--slots 4", "primitives"});
  expect_refused(lesson03::lesson(), {128, 128, 64}, {{"core", "fma"}, {"copy", "block"}}, {"--core fma"});
  for (const char* l1 : {"always", "never"}) {
    expect_refused(lesson03::lesson(), {128, 128, 64}, {{"l1", l1}, {"copy", "cg"}},
                   {"--l1", l1, "--copy primitives"});
    expect_refused(lesson03::lesson(), {128, 128, 64}, {{"l1", l1}, {"core", "mma_sync"}},
                   {"--l1", l1, "--core wgmma"});
  }
}

#ifdef LADDER_CPU_DEVICE
TEST_CASE("03: halving the width of a copy doubles the copies, and moves the same bytes") {
  constexpr int kSize = 128;
  const ladder::DeviceBuffer<__nv_bfloat16> a(std::vector<__nv_bfloat16>(kSize * kSize)),
      b(std::vector<__nv_bfloat16>(kSize * kSize));
  ladder::DeviceBuffer<__nv_bfloat16> c(kSize * kSize);
  const auto count = [&](const char* bytes) {
    const ladder::Lesson& lesson = lesson03::lesson();
    lesson.launch({a.data(), b.data(), c.data(), kSize, kSize, kSize},
                  lesson.settings({{"copy", "memcpy_async"}, {"bytes", bytes}}), nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    return cpu_device::last_launch();
  };
  const cpu_device::Counters wide = count("16"), half = count("8"), quarter = count("4");
  CHECK(wide.async_copies > 0);
  CHECK(half.async_copies == 2 * wide.async_copies);
  CHECK(quarter.async_copies == 4 * wide.async_copies);
  CHECK(half.global_bytes_read == wide.global_bytes_read);
  CHECK(quarter.global_bytes_read == wide.global_bytes_read);
}
#endif
