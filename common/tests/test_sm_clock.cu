/// @file
/// The clock between two stamps is the one that a kernel between them reads itself. Needs a GPU.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <vector>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/launch.cuh"
#include "common/host/base/statistics.hpp"
#include "common/host/measure/sm_clock.hpp"
#include "common/host/program/program.hpp"
#include "common/ptx/mma_sync.cuh"
#include "common/ptx/timer.cuh"

namespace {

constexpr uint64_t kLongNs = 20'000'000;  // a step of the timer is nothing beside it
constexpr int kThreads = 512;
constexpr double kTolerance = 0.02;

/// Keeps the tensor cores of each multiprocessor busy, which lowers the clock, and reads the clock meanwhile.
/// @param mhz [gridDim.x]
__global__ void multiply_for_long(double* mhz, float* sink) {
  float sums[4][4]{};
  const uint32_t a[4] = {threadIdx.x * 2654435761u, ~threadIdx.x * 40503u, 0x3f913eabu, 0xbf123f45u};
  const uint64_t first_ns = ptx::globaltimer_ns(), first_cycle = ptx::clock_cycles();
  uint64_t ns = first_ns;
  for (; ns - first_ns < kLongNs; ns = ptx::globaltimer_ns())
    for (int i = 0; i < 64; ++i)
      for (float(&sum)[4] : sums) ptx::mma_m16n8k16(sum, a, a[0], a[1]);
  if (threadIdx.x == 0)
    mhz[blockIdx.x] =
        static_cast<double>(ptx::clock_cycles() - first_cycle) * 1000 / static_cast<double>(ns - first_ns);
  for (const float(&sum)[4] : sums)
    if (sum[0] == 1.25f) *sink = sum[1];  // so that nothing is left out
}

}  // namespace

TEST_CASE(
    "The clock between two stamps is within 2 % of the one that a kernel reads, and none is above the "
    "card's") {
  try {
    ladder::require_device();
  } catch (const ladder::BadInput& missing) {
    SKIP(missing.what());
  }
  const ladder::DeviceInfo& device = ladder::device_info();
  if (device.code.architecture < 80) SKIP("the code is not for sm_80 or later");
  const ladder::Stream stream = ladder::make_stream();
  const int sms = device.multiprocessors;
  ladder::DeviceBuffer<double> inside(sms);
  ladder::DeviceBuffer<float> sink(1);
  ladder::ClockStamps clock;
  CHECK_THROWS_AS(clock.read(), std::logic_error);
  for (int round = 0; round < 3; ++round) {
    clock.before(stream.get());
    ladder::launch(multiply_for_long,
                   {.name = "multiply_for_long",
                    .grid = static_cast<unsigned>(sms),
                    .block = kThreads,
                    .stream = stream.get()},
                   inside.data(), sink.data());
    clock.after(stream.get());
    const ladder::SmClock outside = clock.read();
    std::vector<double> mhz(sms);
    CUDA_CHECK(cudaMemcpy(mhz.data(), inside.data(), sms * sizeof(double), cudaMemcpyDeviceToHost));
    CAPTURE(round, outside.mhz, outside.multiprocessors);
    CHECK(outside.mhz == Catch::Approx(ladder::quartiles(mhz).median).epsilon(kTolerance));
    CHECK(outside.mhz <= device.max_clock_mhz * 1.001);  // what a step of the timer is of 20 ms
    CHECK(outside.multiprocessors >= sms * 9 / 10);
  }
}
