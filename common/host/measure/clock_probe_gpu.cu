/// @file
/// Counts the cycles of one multiprocessor against the wall clock.
#include <stdexcept>

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
  stream_ = stream;
  started_ = true;
  // Not a number, so that a value that was read too early is no clock.
  CUDA_CHECK(cudaMemsetAsync(mhz_.data(), 0xff, sizeof(float), stream));
  launch(measure_clock, {.name = "measure_clock", .grid = 1, .block = 1, .stream = stream}, mhz_.data());
}

double ClockProbe::mhz() const {
  if (!started_) throw std::logic_error("a clock is read that nobody has measured");
  float mhz = 0;
  // In the probe's own stream: cudaMemcpy waits for no stream that was made with cudaStreamNonBlocking.
  CUDA_CHECK(cudaMemcpyAsync(&mhz, mhz_.data(), sizeof mhz, cudaMemcpyDeviceToHost, stream_));
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  if (!(mhz > 0)) throw std::logic_error("a clock is read before it has been measured");
  return mhz;
}

}  // namespace ladder
