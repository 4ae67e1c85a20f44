/// @file
/// Runs a kernel that reads the clock, and collects what it noted.
///
/// All kernels here have the same form. Each block repeats what it measures kWarmUp + kRepetitions times,
/// reads clock64 before and after, and notes the difference. What is measured ends with an instruction that
/// waits (a barrier, wait_group), so that no work is left when the clock is read again. Assembler in
/// common/ptx is volatile, which keeps its order; what would be the same in every repetition and have no
/// effect is kept by keep_in_registers() or by a store.
#pragma once
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/cuda/warps.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/base/statistics.hpp"
#include "common/host/device/device.hpp"
#include "common/parts/part.hpp"
#include "common/ptx/timer.cuh"

namespace ladder::parts {

constexpr int kWarmUp = 4, kRepetitions = 16;
constexpr int kRounds = kWarmUp + kRepetitions;
constexpr auto kLongestRun = std::chrono::seconds(10);  // these kernels take less than a millisecond

/// Where blocks note what they measured.
class Notes {
 public:
  explicit Notes(float* figures) : figures_(figures) {}

  /// Figure `figure` of a round; those of the warm-up are dropped.
  __device__ void add(int figure, int round, float clocks) const {
    if (round >= kWarmUp)
      figures_[(figure * gridDim.x + blockIdx.x) * kRepetitions + round - kWarmUp] = clocks;
  }

 private:
  float* figures_;
};

/// Waits until the GPU is idle, but not for ever: a wait in a kernel has no bound of its own, which would
/// take clocks. A kernel that hangs ends with the program; to free its memory would wait for it.
inline void wait_for(const std::string& kernel) {
  const auto begin = std::chrono::steady_clock::now();
  cudaError_t state;
  while ((state = cudaStreamQuery(nullptr)) == cudaErrorNotReady) {
    if (std::chrono::steady_clock::now() - begin > kLongestRun) {
      std::fprintf(stderr, "ladder parts: error: the kernel '%s' hangs\n", kernel.c_str());
      std::_Exit(kExitFailure);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  CUDA_CHECK(state);
}

/// Launches kernel(Notes, args...) `launches` times in a row, and returns the quartiles of each figure of the
/// last.
template <class... Params, class... Args>
std::vector<Quartiles> measured_after(int launches, int figures, void (*kernel)(Notes, Params...),
                                      const LaunchConfig& config, const Args&... args) {
  const size_t count = size_t{config.grid.x} * kRepetitions;
  DeviceBuffer<float> buffer(figures * count);
  fill_on_device(buffer.data(), 0xff, buffer.size() * sizeof(float));  // not a number: not noted
  for (int i = 0; i < launches; ++i) launch(kernel, config, Notes(buffer.data()), args...);
  wait_for(config.name);
  const std::vector<float> all = download(buffer.data(), buffer.size());
  std::vector<Quartiles> result;
  for (int figure = 0; figure < figures; ++figure) {
    const std::vector<double> samples(all.begin() + figure * count, all.begin() + (figure + 1) * count);
    for (const double sample : samples)
      if (!(sample > 0)) throw std::logic_error(std::string(config.name) + ": a block noted no clocks");
    result.push_back(quartiles(samples));
  }
  return result;
}

/// The same of one launch.
template <class... Params, class... Args>
std::vector<Quartiles> measured(int figures, void (*kernel)(Notes, Params...), const LaunchConfig& config,
                                const Args&... args) {
  return measured_after(1, figures, kernel, config, args...);
}

/// One block alone on the GPU, or one on every multiprocessor.
struct Blocks {
  int count;
  std::string name;
};
inline std::vector<Blocks> alone_and_everywhere() {
  return {{1, "one SM"}, {device_info().multiprocessors, "all SMs"}};
}

inline std::string kilobytes(int bytes) { return std::to_string(bytes / 1024) + " KB"; }

}  // namespace ladder::parts
