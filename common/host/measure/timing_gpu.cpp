/// @file
/// Times launches with CUDA events; short ones through CUDA graphs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <utility>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/host/device/device.hpp"
#include "common/host/measure/sm_clock.hpp"
#include "common/host/measure/timing.hpp"
#include "common/host/problem/fill.hpp"

namespace ladder {
namespace {

/// Inputs and outputs for one launch after another, in turn.
class InputSets {
 public:
  InputSets(const Shape& shape, int count, uint64_t seed, bool zeros) : shape_(shape) {
    for (int i = 0; i < count; ++i) {
      Buffers set{DeviceBuffer<__nv_bfloat16>(size_t(shape.m) * shape.k),
                  DeviceBuffer<__nv_bfloat16>(size_t(shape.k) * shape.n * shape.b_matrices),
                  DeviceBuffer<__nv_bfloat16>(size_t(shape.m) * shape.n),
                  DeviceBuffer<__nv_bfloat16>(shape.n)};
      fill(set.a.data(), set.a.size(), NormalValues{2 * (seed + i)});
      fill(set.b.data(), set.b.size(), NormalValues{2 * (seed + i) + 1});
      fill(set.bias.data(), set.bias.size(), NormalValues{~(seed + i)});
      if (zeros)
        for (DeviceBuffer<__nv_bfloat16>* operand : {&set.a, &set.b})
          fill_on_device(operand->data(), 0, operand->size() * sizeof(__nv_bfloat16));
      sets_.push_back(std::move(set));
    }
  }

  int count() const { return static_cast<int>(sets_.size()); }

  Gemm operator[](int i) {
    Buffers& set = sets_[i % sets_.size()];
    return {set.a.data(), set.b.data(), set.c.data(), shape_.m, shape_.n, shape_.k, set.bias.data()};
  }

 private:
  struct Buffers {
    DeviceBuffer<__nv_bfloat16> a, b, c, bias;
  };
  Shape shape_;
  std::vector<Buffers> sets_;
};

/// Watts while it lives: between the first and the last step of the energy counter, which a thread of its own
/// watches, since the host waits in its queue of launches.
class EnergyMeter {
 public:
  EnergyMeter() : watcher_([this] { watch(); }) {}
  ~EnergyMeter() {
    if (watcher_.joinable()) stop();
  }

  /// @returns nothing where the GPU has no such counter, or where it advanced only once
  std::optional<double> stop() {
    stopped_ = true;
    watcher_.join();
    if (steps_.size() < 2) return std::nullopt;
    const auto [first, last] = std::pair(steps_.front(), steps_.back());
    return (last.joules - first.joules) / std::chrono::duration<double>(last.at - first.at).count();
  }

 private:
  struct Step {
    std::chrono::steady_clock::time_point at;
    double joules;
  };

  void watch() {
    std::optional<double> before = read_energy_joules();
    while (before && !stopped_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::optional<double> now = read_energy_joules();
      if (now && *now != *before) steps_.push_back({std::chrono::steady_clock::now(), *now});
      before = now;
    }
  }

  std::vector<Step> steps_;
  std::atomic<bool> stopped_ = false;
  std::thread watcher_;  ///< the last member: it uses the others
};

/// What the GPU did during the samples of one contender.
struct Vitals {
  std::vector<double> mhz, watts, eager_us;
};

/// One contender, ready to be sampled.
class Stopwatch {
 public:
  Stopwatch(const Contender& contender, InputSets& inputs, cudaStream_t stream, const TimingOptions& options)
      : contender_(contender), inputs_(inputs), stream_(stream), begin_(make_event()), end_(make_event()) {
    for (int i = 0; i < inputs.count() && contender.prepare; ++i) contender.prepare(inputs[i]);
    launch(1);  // The first launch loads the kernel.
    double launch_us = time_us(1);
    if (launch_us < kSlowLaunchUs) launch_us = time_us(3);
    launches_ = std::max(1, static_cast<int>(std::ceil(options.sample_ms * 1000 / launch_us)));
    // What runs for long gets to its own clock by itself.
    if (launch_us < kSlowLaunchUs)
      warm_up_launches_ = static_cast<int>(std::ceil(options.warm_up_ms * 1000 / launch_us));
    if (launch_us < options.graph_below_us) capture();
  }

  /// Microseconds of one launch, on average over a sample. Appends what the GPU did while it ran.
  double sample(Vitals& vitals) {
    std::optional<double> watts;
    // Untimed first, so that the GPU reaches the clock at which it runs this kernel, not the one before it.
    launch(warm_up_launches_);
    clock_.before(stream_);
    const double us = time_us(launches_, [&] {
      clock_.after(stream_);
      watts = read_power_watts();
    });
    vitals.mhz.push_back(clock_.read().mhz);
    if (watts) vitals.watts.push_back(*watts);
    if (graph_) vitals.eager_us.push_back(time_eager_us());
    return us;
  }

  /// Joules of one launch, averaged over more than a second of launches; nothing where the GPU does not count
  /// them.
  std::optional<double> joules() {
    launch(warm_up_launches_);
    EnergyMeter meter;
    const double us = time_us(std::max(launches_, static_cast<int>(kEnergyMs * 1000 / time_us(launches_))));
    const std::optional<double> watts = meter.stop();
    return watts ? std::optional(*watts * us * 1e-6) : std::nullopt;
  }

 private:
  static constexpr int kMaxNodes = 512;
  static constexpr double kEnergyMs = 1200;        ///< some ten steps of the counter
  static constexpr int kEagerLaunches = 200;       ///< fewer than a stream's queue holds
  static constexpr double kSlowLaunchUs = 50'000;  // long enough to be measured by one launch

  /// Turns rotations over all sets into one graph, which the GPU starts without the host's help.
  void capture() {
    const int nodes = std::min(kMaxNodes, std::max(launches_, inputs_.count()));
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < nodes; ++i) contender_.launch(inputs_[i], stream_);
    CUDA_CHECK(cudaStreamEndCapture(stream_, &graph));
    const Graph owner(graph);
    cudaGraphExec_t exec = nullptr;
    CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    graph_.reset(exec);
    nodes_ = nodes;
    launches_ = (launches_ + nodes - 1) / nodes * nodes;
    CUDA_CHECK(cudaGraphUpload(exec, stream_));
    launch(nodes);
  }

  void launch(int count) {
    if (graph_) {
      for (int i = 0; i < count; i += nodes_) CUDA_CHECK(cudaGraphLaunch(graph_.get(), stream_));
    } else {
      launch_eagerly(count);
    }
  }

  /// By a call each, as a program without graphs launches.
  void launch_eagerly(int count) {
    for (int i = 0; i < count; ++i) contender_.launch(inputs_[next_set_++ % inputs_.count()], stream_);
  }

  double time_us(int launches, const std::function<void()>& meanwhile = {}) {
    CUDA_CHECK(cudaEventRecord(begin_.get(), stream_));
    launch(launches);
    CUDA_CHECK(cudaEventRecord(end_.get(), stream_));
    if (meanwhile) meanwhile();
    return elapsed_ms(begin_, end_) * 1000 / launches;
  }

  /// Microseconds of one launch by a call each: what the host or the GPU takes, whichever is slower.
  double time_eager_us() {
    CUDA_CHECK(cudaEventRecord(begin_.get(), stream_));
    launch_eagerly(kEagerLaunches);
    CUDA_CHECK(cudaEventRecord(end_.get(), stream_));
    return elapsed_ms(begin_, end_) * 1000 / kEagerLaunches;
  }

  const Contender& contender_;
  InputSets& inputs_;
  cudaStream_t stream_;
  Event begin_, end_;
  GraphExec graph_;
  ClockStamps clock_;
  int launches_ = 1, warm_up_launches_ = 0, nodes_ = 1, next_set_ = 0;
};

std::optional<double> median_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return quartiles(values).median;
}

}  // namespace

std::vector<Timing> time_interleaved(const std::vector<Contender>& contenders, const Shape& shape,
                                     const TimingOptions& options) {
  const Stream stream = make_stream();
  const int sets = options.inputs == Inputs::hot ? 1 : input_sets(shape, device_info().l2_bytes);
  InputSets inputs(shape, sets, options.data_seed, options.inputs == Inputs::zeros);
  std::vector<Stopwatch> stopwatches;
  stopwatches.reserve(contenders.size());
  for (const Contender& contender : contenders)
    stopwatches.emplace_back(contender, inputs, stream.get(), options);

  std::vector<Vitals> vitals(contenders.size());
  size_t turns = 0;
  const auto samples = interleave(contenders.size(), options.rounds, [&](size_t i) {
    if (turns++ % contenders.size() == 0 && options.on_round)
      options.on_round(static_cast<int>((turns - 1) / contenders.size()));
    return stopwatches[i].sample(vitals[i]);
  });

  std::vector<Timing> timings;
  for (size_t i = 0; i < contenders.size(); ++i)
    timings.push_back({quartiles(samples[i]), median_of(vitals[i].mhz), median_of(vitals[i].watts),
                       median_of(vitals[i].eager_us),
                       options.energy ? stopwatches[i].joules() : std::nullopt});
  return timings;
}

}  // namespace ladder
