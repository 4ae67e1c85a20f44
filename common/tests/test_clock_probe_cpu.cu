/// @file
/// The clock of the multiprocessors is read after the probe that measures it has run: the GPU's source, on
/// the CPU device and with a made-up counter of cycles.
#include <cuda_runtime.h>

namespace {

/// Between the probe's two readings of it, so many cycles pass.
long long made_up_cycles() {
  static long long cycles = 0;
  return cycles += 75'000;
}

}  // namespace

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "common/cuda/cuda_handles.hpp"
#define clock64 made_up_cycles  // the CPU device counts readings, not cycles
#include "common/host/measure/clock_probe_gpu.cu"
#undef clock64
#include "common/testing/gemm_checks.hpp"

TEST_CASE("The clock is read when it has been measured, by every schedule") {
  ladder::testing::for_each_schedule([&] {
    const ladder::Stream stream = ladder::make_stream();
    ladder::ClockProbe probe;
    CHECK_THROWS_AS(probe.mhz(), std::logic_error);
    for (int round = 0; round < 2; ++round) {
      probe.start(stream.get());
      // 75000 cycles between two readings, 50 us apart.
      CHECK(probe.mhz() == Catch::Approx(1500));
      CHECK(probe.mhz() == Catch::Approx(1500));
    }
  });
}
