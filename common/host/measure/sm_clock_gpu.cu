/// @file
/// Stamps of all multiprocessors.
#include "common/host/measure/sm_clock.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "common/cuda/launch.cuh"
#include "common/host/base/statistics.hpp"
#include "common/ptx/multiprocessor.cuh"
#include "common/ptx/timer.cuh"

namespace ladder {
namespace {

// Longer than it takes to start all blocks: each multiprocessor gets its own, as the next block goes to the
// emptiest.
constexpr uint64_t kStampNs = 2'000;

/// One thread a multiprocessor. @param stamps [count], by the number of the multiprocessor
__global__ void take_stamps(ClockStamp* stamps, uint32_t count) {
  const uint64_t first = ptx::globaltimer_ns();
  uint64_t ns = first;
  while (ns == first) ns = ptx::globaltimer_ns();  // a step of the timer begins here
  const ClockStamp stamp{ptx::clock_cycles(), ns};
  const uint32_t sm = ptx::multiprocessor();
  if (sm < count) stamps[sm] = stamp;
  while (ptx::globaltimer_ns() - first < kStampNs) continue;
}

}  // namespace

ClockStamps::ClockStamps(int multiprocessors)
    : multiprocessors_(multiprocessors), stamps_(size_t(kStamps) * multiprocessors_) {}

void ClockStamps::before(cudaStream_t stream) {
  // Where a multiprocessor takes no stamp, there is none from an earlier time.
  CUDA_CHECK(cudaMemsetAsync(stamps_.data(), 0, stamps_.size() * sizeof(ClockStamp), stream));
  stamp(kBefore, stream);
  has_before_ = true;
  has_both_ = false;
}

void ClockStamps::after(cudaStream_t stream) {
  stamp(kAfter, stream);
  has_both_ = has_before_;
}

void ClockStamps::stamp(int which, cudaStream_t stream) {
  stream_ = stream;
  launch(
      take_stamps,
      {.name = "take_stamps", .grid = static_cast<unsigned>(multiprocessors_), .block = 1, .stream = stream},
      stamps_.data() + size_t(which) * multiprocessors_, static_cast<uint32_t>(multiprocessors_));
}

SmClock ClockStamps::read() const {
  if (!has_both_) throw std::logic_error("a clock is read that no two stamps enclose");
  std::vector<ClockStamp> stamps(stamps_.size());
  // In the work's own stream: cudaMemcpy waits for no stream that was made with cudaStreamNonBlocking.
  CUDA_CHECK(cudaMemcpyAsync(stamps.data(), stamps_.data(), stamps.size() * sizeof(ClockStamp),
                             cudaMemcpyDeviceToHost, stream_));
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  std::vector<double> mhz;
  for (int sm = 0; sm < multiprocessors_; ++sm) {
    const ClockStamp &begin = stamps[sm], &end = stamps[multiprocessors_ + sm];
    if (begin.ns && end.ns > begin.ns)
      mhz.push_back(static_cast<double>(end.cycles - begin.cycles) * 1000 /
                    static_cast<double>(end.ns - begin.ns));
  }
  if (mhz.empty()) throw std::logic_error("no multiprocessor has both stamps");
  return {quartiles(mhz).median, static_cast<int>(mhz.size())};
}

}  // namespace ladder
