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
#include "common/host/measure/sm_clock.hpp"
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

/// The figures of one measurement, in device memory.
class Figures {
 public:
  Figures(int figures, const LaunchConfig& config)
      : name_(config.name), count_(size_t{config.grid.x} * kRepetitions), buffer_(figures * count_) {
    fill_on_device(buffer_.data(), 0xff, buffer_.size() * sizeof(float));  // not a number: not noted
  }
  Notes notes() { return Notes(buffer_.data()); }

  /// Waits for the kernels, and returns the quartiles of each figure.
  std::vector<Quartiles> read() {
    wait_for(name_);
    const std::vector<float> all = download(buffer_.data(), buffer_.size());
    std::vector<Quartiles> result;
    for (auto first = all.begin(); first != all.end(); first += count_) {
      const std::vector<double> samples(first, first + count_);
      for (const double sample : samples)
        if (!(sample > 0)) throw std::logic_error(name_ + ": a block noted no clocks");
      result.push_back(quartiles(samples));
    }
    return result;
  }

 private:
  std::string name_;
  size_t count_;
  DeviceBuffer<float> buffer_;
};

/// Launches kernel(Notes, args...) `launches` times in a row, and returns the quartiles of each figure of the
/// last.
template <class... Params, class... Args>
std::vector<Quartiles> measured_after(int launches, int figures, void (*kernel)(Notes, Params...),
                                      const LaunchConfig& config, const Args&... args) {
  Figures noted(figures, config);
  for (int i = 0; i < launches; ++i) launch(kernel, config, noted.notes(), args...);
  return noted.read();
}

/// The same of one launch.
template <class... Params, class... Args>
std::vector<Quartiles> measured(int figures, void (*kernel)(Notes, Params...), const LaunchConfig& config,
                                const Args&... args) {
  return measured_after(1, figures, kernel, config, args...);
}

/// What a kernel noted, and the clock of the multiprocessors meanwhile.
struct Clocked {
  std::vector<Quartiles> figures;
  double mhz;
};
/// The same of one launch between two stamps.
template <class... Params, class... Args>
Clocked measured_with_clock(int figures, void (*kernel)(Notes, Params...), const LaunchConfig& config,
                            const Args&... args) {
  static ClockStamps stamps;
  Figures noted(figures, config);
  stamps.before(config.stream);
  launch(kernel, config, noted.notes(), args...);
  stamps.after(config.stream);
  const std::vector<Quartiles> clocks = noted.read();
  return {clocks, stamps.read().mhz};
}

/// One block alone on the GPU, or one on every multiprocessor.
struct Blocks {
  int count;
  std::string name;
};
/// The two grids that most parts are measured with.
inline std::vector<Blocks> alone_and_everywhere() {
  return {{1, "one SM"}, {device_info().multiprocessors, "all SMs"}};
}

/// Writes more than L2 holds: afterwards it holds nothing else.
inline void empty_l2() {
  static DeviceBuffer<unsigned char> flush(4 * device_info().l2_bytes);
  fill_on_device(flush.data(), 0, flush.size());
}

/// "16 KB"
inline std::string kilobytes(int bytes) { return std::to_string(bytes / 1024) + " KB"; }

}  // namespace ladder::parts
