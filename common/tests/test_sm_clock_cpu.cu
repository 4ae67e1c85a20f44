/// @file
/// The clock of the multiprocessors is that between two stamps: the GPU's source, on the CPU device and with
/// made-up counters.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

#include "common/ptx/timer.cuh"

namespace ptx {

std::atomic<uint64_t> made_up_ns{0};

/// A nanosecond passes between two readings.
inline uint64_t next_ns() { return ++made_up_ns; }
/// 1.5 cycles a nanosecond, and a beginning of its own for each multiprocessor.
inline uint64_t cycles_now() { return made_up_ns * 3 / 2 + 1'000'000 * blockIdx.x; }

}  // namespace ptx

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "common/cuda/cuda_handles.hpp"
#define globaltimer_ns next_ns
#define clock_cycles cycles_now
#include "common/host/measure/sm_clock_gpu.cu"
#undef clock_cycles
#undef globaltimer_ns
#include "common/testing/gemm_checks.hpp"

TEST_CASE("The clock is that between two stamps, by every schedule") {
  ladder::testing::for_each_schedule([&] {
    const ladder::Stream stream = ladder::make_stream();
    ladder::ClockStamps clock(3);
    CHECK_THROWS_AS(clock.read(), std::logic_error);
    clock.after(stream.get());
    CHECK_THROWS_AS(clock.read(), std::logic_error);
    for (int round = 0; round < 2; ++round) {
      clock.before(stream.get());
      CHECK_THROWS_AS(clock.read(), std::logic_error);
      ptx::made_up_ns += 1'000'000;  // the work
      clock.after(stream.get());
      for (int reading = 0; reading < 2; ++reading) {
        const ladder::SmClock read = clock.read();
        CHECK(read.mhz == Catch::Approx(1500).epsilon(1e-4));
        CHECK(read.multiprocessors == 3);
      }
    }
  });
}
