/// @file
/// Times contenders against each other. What settles a comparison is the ratio within one run: a GPU at its
/// power limit slows down over a run, so contenders take turns, in changing order, each after a warm-up of
/// its own.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/host/base/statistics.hpp"
#include "common/host/measure/contender.hpp"

namespace ladder {

/// Where timed launches find A and B, and what is in them.
enum class Inputs {
  cold,  ///< normal data in global memory: a launch takes another set than the one before
  hot,   ///< normal data, one set: the L2 cache may keep it from launch to launch
  zeros  ///< as cold, but zeros, whose bits do not switch: an experiment on power, never a benchmark
};

struct TimingOptions {
  int rounds = 11;         ///< samples of each contender
  double sample_ms = 12;   ///< aimed at; a sample is as many launches as fill it
  double warm_up_ms = 40;  ///< untimed launches before each sample
  double graph_below_us =
      150;  ///< shorter launches are timed through a CUDA graph, or we would time the host
  uint64_t data_seed = 1;
  Inputs inputs = Inputs::cold;
  bool energy = false;                      ///< measure joules, which takes 1.3 s more for each contender
  std::function<void(int round)> on_round;  ///< progress; may be empty
};

/// Microseconds of one launch.
struct Timing {
  Quartiles time_us;
  std::optional<double> clock_mhz;  ///< median over the samples, by the stamps around each (ClockStamps)
  std::optional<double> power_watts;
  /// Median, where time_us is of launches through a graph: of launches by a call each. The host bounds these.
  std::optional<double> eager_us = std::nullopt;
  std::optional<double> joules = std::nullopt;  ///< of one launch
};

/// Takes `rounds` samples of each of `count` contenders. Every round has an order of its own, so that nobody
/// always follows a contender that leaves the GPU cool, or hot. The orders are the same in every run.
/// @returns samples by contender
std::vector<std::vector<double>> interleave(size_t count, int rounds,
                                            const std::function<double(size_t)>& sample);

/// "cold", "hot" or "zeros".
std::string name_of(Inputs inputs);

/// Sets of inputs to rotate over, so that no operand of one launch is still in the L2 cache from the launch
/// before: one where a problem is at least twice the cache, else as many as together are, at most 256.
int input_sets(const Shape& shape, size_t l2_bytes);

/// Decides for each contender that has candidates which of them it launches: the fastest of a run of their
/// own. `time` is time_interleaved() with the inputs and the samples that the contenders will be timed with,
/// because what wins on operands in the L2 cache, or before the clock falls, need not win there.
std::vector<Contender> with_fastest_candidates(
    const std::vector<Contender>& contenders,
    const std::function<std::vector<Timing>(const std::vector<Contender>&)>& time);

/// Times all contenders in one interleaved run on normal data. Only in the GPU build.
/// @throws CudaError, OutOfDeviceMemory
std::vector<Timing> time_interleaved(const std::vector<Contender>& contenders, const Shape& shape,
                                     const TimingOptions& options);

}  // namespace ladder
