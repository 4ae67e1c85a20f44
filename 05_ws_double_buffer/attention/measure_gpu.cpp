/// @file
/// Times the kernels of attention with CUDA events.
#include "05_ws_double_buffer/attention/measure.hpp"

#include <algorithm>
#include <cmath>

#include "common/cuda/cuda_handles.hpp"
#include "common/host/measure/sm_clock.hpp"
#include "common/host/measure/timing.hpp"

namespace lesson05::attention {

std::vector<Timing> time_steps(const std::vector<const Step*>& steps, const Attention& p, int rounds) {
  constexpr double kSampleUs = 12'000;  // as long as a warm-up
  const ladder::Stream stream = ladder::make_stream();
  const ladder::Event begin = ladder::make_event(), end = ladder::make_event();
  ladder::ClockStamps clock;
  const auto run = [&](size_t step, int launches) {
    CUDA_CHECK(cudaEventRecord(begin.get(), stream.get()));
    for (int i = 0; i < launches; ++i) steps[step]->launch(p, stream.get());
    CUDA_CHECK(cudaEventRecord(end.get(), stream.get()));
    return ladder::elapsed_ms(begin, end) * 1000 / launches;
  };
  std::vector<int> launches;
  std::vector<std::vector<double>> mhz(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    run(i, 1);  // loads the kernel
    launches.push_back(std::max(1, static_cast<int>(std::ceil(kSampleUs / run(i, 2)))));
  }
  const auto samples = ladder::interleave(steps.size(), rounds, [&](size_t i) {
    run(i, launches[i]);
    clock.before(stream.get());
    const double us = run(i, launches[i]);
    clock.after(stream.get());
    mhz[i].push_back(clock.read().mhz);
    return us;
  });
  std::vector<Timing> timings;
  for (size_t i = 0; i < steps.size(); ++i)
    timings.push_back({ladder::quartiles(samples[i]), ladder::quartiles(mhz[i]).median});
  return timings;
}

}  // namespace lesson05::attention
