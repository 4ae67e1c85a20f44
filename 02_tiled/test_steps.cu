/// @file
/// The steps of lesson 02 before its kernel: right also at edges, and each gains what it is there for.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#ifdef LADDER_CPU_DEVICE
#include "common/cpu_device/cpu_device.hpp"
#endif
#include "common/cuda/device_buffer.hpp"
#include "common/host/device/execution.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/testing/gemm_checks.hpp"

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using ladder::LaunchCounters;
using ladder::Settings;
using ladder::Shape;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_by_turns;
using ladder::testing::check_gemm_on_three_schedules;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;

namespace {

constexpr int kSize = 128;  // of the matrices that are counted

/// What one launch does with matrices of kSize x kSize, on the CPU device; the GPU does not count.
LaunchCounters counted(const std::string& step, const std::string& core = "auto") {
  const std::vector<__nv_bfloat16> zeros(kSize * kSize, __float2bfloat16(0));
  const ladder::DeviceBuffer<__nv_bfloat16> a(zeros), b(zeros);
  ladder::DeviceBuffer<__nv_bfloat16> c(zeros);
  ladder::use_schedule({}, "");
  lesson02::lesson().launch({.a = a.data(), .b = b.data(), .c = c.data(), .m = kSize, .n = kSize, .k = kSize},
                            lesson02::lesson().settings({{"step", step}, {"core", core}}), nullptr);
  CUDA_CHECK(cudaDeviceSynchronize());
  return ladder::last_launch_counters().value();
}

/// Skips the test where nobody counts ordinary accesses.
void skip_unless_counted() {
#ifdef LADDER_CPU_DEVICE
  if (!cpu_device::instrumented()) SKIP("the kernels are not instrumented");
#else
  SKIP("the GPU does not count");
#endif
}

/// Times that an element of A and of B is read from global memory, in the mean.
double reads_of_an_element(const LaunchCounters& counters) {
  return static_cast<double>(counters.global_read_sectors) * 32 /
         (2.0 * kSize * kSize * sizeof(__nv_bfloat16));
}

}  // namespace

TEST_CASE("02: any shape is multiplied with a shared tile") {
  skip_unless_runnable(lesson02::lesson());
  const auto shape = GENERATE(Shape{1, 1, 1},      // one element
                              Shape{1, 70, 33},    // one row
                              Shape{70, 1, 33},    // one column
                              Shape{32, 32, 32},   // exactly one tile, one step
                              Shape{33, 40, 40},   // one more
                              Shape{67, 45, 97});  // nothing fits
  check_gemm_by_turns(lesson02::lesson(), shape, {{"step", "shared_tile"}});
}

TEST_CASE("02: any shape is multiplied with register tiles") {
  skip_unless_runnable(lesson02::lesson());
  const auto shape = GENERATE(Shape{1, 1, 1},       // one element
                              Shape{1, 136, 40},    // one row
                              Shape{130, 1, 33},    // one column
                              Shape{128, 128, 32},  // exactly one tile, one step
                              Shape{129, 136, 40},  // one more, rows aligned
                              Shape{67, 133, 67});  // nothing aligned
  check_gemm_by_turns(lesson02::lesson(), shape, {{"step", "register_tile"}});
}

TEST_CASE("02: edges are cut from tiles of chunks, whatever multiplies") {
  skip_unless_runnable(lesson02::lesson());
  const auto step = GENERATE("chunks", "tensor_cores", "loads_in_flight");
  const auto shape = GENERATE(Shape{1, 8, 8},        // one chunk
                              Shape{1, 136, 72},     // one row
                              Shape{130, 8, 64},     // the fewest columns
                              Shape{128, 128, 64},   // exactly one tile, whole steps
                              Shape{129, 264, 72});  // two by three tiles
  check_gemm_by_turns(lesson02::lesson(), shape, {{"step", step}});
}

TEST_CASE("02: in the steps before the core load and compute take turns") {
  skip_unless_runnable(lesson02::lesson());
  check_gemm_on_three_schedules(lesson02::lesson(), {32, 32, 96}, {{"step", "shared_tile"}}, 1);
  const auto step = GENERATE("register_tile", "chunks", "tensor_cores", "loads_in_flight");
  check_gemm_on_three_schedules(lesson02::lesson(), {128, 128, 128}, {{"step", step}}, 1);
}

TEST_CASE("02: a grid of more tile rows than a group has is covered by the order of tiles") {
  skip_unless_runnable(lesson02::lesson());
  check_gemm(lesson02::lesson(), {17 * 128 + 1, 2 * 128, 64});
}

TEST_CASE("02: a tile in shared memory is read once for as many products as it is wide") {
  skip_unless_counted();
  // Without tiles, every product reads its elements.
  CHECK(reads_of_an_element(counted("shared_tile")) == Approx(kSize / 32));
  for (const char* step : {"register_tile", "chunks", "tensor_cores", "loads_in_flight", "core"})
    CHECK(reads_of_an_element(counted(step)) == Approx(kSize / 128));
}

TEST_CASE("02: sums in registers spare shared memory") {
  skip_unless_counted();
  CHECK(counted("register_tile").shared_wavefronts < counted("shared_tile").shared_wavefronts / 4);
}

TEST_CASE("02: at swizzled places nobody waits for a bank") {
  skip_unless_counted();
  CHECK(counted("core", "fma").bank_conflicts == 0);
  CHECK(counted("core", "mma_sync").bank_conflicts == 0);
}

TEST_CASE("02: more blocks than a grid has along its second axis are refused by the steps that have two") {
  skip_unless_runnable(lesson02::lesson());
  expect_refused(lesson02::lesson(), {65535 * 32 + 1, 8, 8}, {{"step", "shared_tile"}},
                 {"m = 2097121", "at most 2097120"});
  const auto step = GENERATE("register_tile", "chunks", "tensor_cores", "loads_in_flight");
  expect_refused(lesson02::lesson(), {65535 * 128 + 1, 8, 8}, {{"step", step}},
                 {"m = 8388481", "at most 8388480"});
}

TEST_CASE("02: rows that chunks do not fit into are refused by the steps that copy chunks") {
  skip_unless_runnable(lesson02::lesson());
  const auto step = GENERATE("chunks", "tensor_cores", "loads_in_flight", "core");
  expect_refused(lesson02::lesson(), {128, 132, 64}, {{"step", step}}, {"n = 132", "multiple of 8"});
  expect_refused(lesson02::lesson(), {128, 128, 63}, {{"step", step}}, {"k = 63", "multiple of 8"});
}

TEST_CASE("02: a matrix that does not start at a whole chunk is refused") {
  const ladder::Lesson& lesson = lesson02::lesson();
  skip_unless_runnable(lesson);
  const ladder::DeviceBuffer<__nv_bfloat16> a(std::vector<__nv_bfloat16>(8 * 8 + 1));
  ladder::DeviceBuffer<__nv_bfloat16> c(8 * 8);
  const ladder::Gemm p{.a = a.data() + 1, .b = a.data(), .c = c.data(), .m = 8, .n = 8, .k = 8};
  for (const char* step : {"chunks", "tensor_cores", "loads_in_flight", "core"})
    CHECK_THROWS_WITH(lesson.launch(p, lesson.settings({{"step", step}}), nullptr),
                      StartsWith("a = 0x") && ContainsSubstring("must start at a multiple of 16 bytes"));
  CHECK_NOTHROW(lesson.check(p, lesson.settings({{"step", "register_tile"}})));
}

TEST_CASE("02: a core that a step does not have is refused") {
  skip_unless_runnable(lesson02::lesson());
  const auto core = GENERATE("wgmma", "mma_sync");
  const auto step = GENERATE("shared_tile", "register_tile", "chunks");
  expect_refused(lesson02::lesson(), {128, 128, 64}, {{"step", step}, {"core", core}},
                 {"--core " + std::string(core), "--step core", "--step " + std::string(step)});
}

TEST_CASE("02: results name the core that multiplied") {
  skip_unless_runnable(lesson02::lesson());
  const auto core_of = [](const Settings& settings) {
    return ladder::contender_of(lesson02::lesson(), "", settings).core;
  };
  CHECK(core_of({{"step", "shared_tile"}}) == "fma");
  CHECK(core_of({{"step", "register_tile"}, {"core", "fma"}}) == "fma");
  CHECK(core_of({{"step", "tensor_cores"}}) == core_of({}));
  CHECK(core_of({{"step", "tensor_cores"}, {"core", "mma_sync"}}) == "mma_sync");
  CHECK(core_of({{"core", "fma"}}) == "fma");
  CHECK(core_of({{"core", "mma_sync"}}) == "mma_sync");
  CHECK(core_of({}) == core_of({{"step", "core"}}));
}
