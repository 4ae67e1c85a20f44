/// @file
/// Runs contenders on one shape: verifies each, times all of them against each other.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/host/base/progress.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/measure/run.hpp"
#include "common/host/measure/timing.hpp"

namespace ladder {

struct ComparisonOptions {
  bool verify = true;
  bool integers_alone = false;  ///< without normal data, where small integers are exact
  uint64_t data_seed = 1;
  int rounds = 11;
  int sample_ms = 0;  ///< 0: as TimingOptions says
  Inputs inputs = Inputs::cold;
  bool energy = false;
  Execution execution;
};

/// A contender's run, and what there is to say about it beyond the results' format.
struct Outcome {
  const Contender* contender = nullptr;
  std::string schedule;  ///< of the CPU device; "" for its default, and on the GPU
  Run run;
  bool sampled = false;   ///< only some rows were verified
  size_t rows = 0;        ///< how many
  std::string complaint;  ///< why the result is wrong
  /// Of the speed of the fastest variant of the libraries in the same interleaved run, which is named.
  std::optional<double> percent_of_library;
  std::string fastest_variant;
};

/// On the CPU device every contender runs once for each schedule, and its outcome is reported as soon as it
/// is there. On the GPU all are verified, then timed in one interleaved run, then reported in order. A wrong
/// result is reported, not thrown. @throws CudaError, cpu_device::Failure, OutOfDeviceMemory
void compare(const std::vector<Contender>& contenders, const Shape& shape, const ComparisonOptions& options,
             Progress& progress, const std::function<void(const Outcome&)>& report);

}  // namespace ladder
