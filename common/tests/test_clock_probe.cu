/// @file
/// The clock of the multiprocessors is read after the probe that measures it has run. Needs a GPU.
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/launch.cuh"
#include "common/host/device/device.hpp"
#include "common/host/measure/clock_probe.hpp"
#include "common/host/program/program.hpp"
#include "common/ptx/timer.cuh"

namespace {

constexpr uint64_t kLongNs = 20'000'000;  ///< longer than a copy takes to overtake
constexpr double kSlowestMhz = 100, kFastestMhz = 5000;

__global__ void wait_for_long() {
  const uint64_t begin = ptx::globaltimer_ns();
  while (ptx::globaltimer_ns() - begin < kLongNs) __nanosleep(1000);
}

void check_plausible(double mhz) {
  CHECK(mhz > kSlowestMhz);
  CHECK(mhz < kFastestMhz);
}

}  // namespace

TEST_CASE("The clock is read when it has been measured, also in a stream that no other waits for") {
  try {
    ladder::require_device();
  } catch (const ladder::BadInput& missing) {
    SKIP(missing.what());
  }
  const ladder::Stream stream = ladder::make_stream();
  ladder::ClockProbe probe;
  CHECK_THROWS_AS(probe.mhz(), std::logic_error);
  for (int round = 0; round < 2; ++round) {
    ladder::launch(wait_for_long, {.name = "wait_for_long", .grid = 1, .block = 1, .stream = stream.get()});
    probe.start(stream.get());
    check_plausible(probe.mhz());
    check_plausible(probe.mhz());  // and may be read again
  }
}
