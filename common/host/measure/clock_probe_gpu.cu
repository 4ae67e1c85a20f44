/// @file
/// Counts the cycles of one multiprocessor against the wall clock.
#include "common/cuda/launch.cuh"
#include "common/host/measure/clock_probe.hpp"
#include "common/ptx/timer.cuh"

namespace ladder {
namespace {

constexpr uint64_t kProbeNs = 50'000;  // many steps of the timer, and too short for the clock to change

__global__ void measure_clock(float* mhz) {
  const uint64_t before = ptx::globaltimer_ns();
  uint64_t begin = before;
  while (begin == before) begin = ptx::globaltimer_ns();  // a step of the timer begins here
  const long long first_cycle = clock64();
  uint64_t end = begin;
  while (end - begin < kProbeNs) end = ptx::globaltimer_ns();
  *mhz = static_cast<float>(clock64() - first_cycle) * 1000.f / static_cast<float>(end - begin);
}

}  // namespace

void ClockProbe::start(cudaStream_t stream) {
  launch(measure_clock, {.name = "measure_clock", .grid = 1, .block = 1, .stream = stream}, mhz_.data());
}

double ClockProbe::mhz() const {
  float mhz = 0;
  CUDA_CHECK(cudaMemcpy(&mhz, mhz_.data(), sizeof mhz, cudaMemcpyDeviceToHost));
  return mhz;
}

}  // namespace ladder
