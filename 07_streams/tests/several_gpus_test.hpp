/// @file
/// What the tests of experiments with several GPUs share.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "07_streams/experiments/devices.hpp"
#include "07_streams/experiments/experiment.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/lesson_registry.hpp"
#include "common/testing/gemm_checks.hpp"

namespace lesson07 {

const Experiment& peers_experiment();
const Experiment& allreduce_experiment();
const Experiment& engines_experiment();

/// For the CPU device, before a test program makes its first call; GPUs do not care.
[[maybe_unused]] static const int kFourDevices = setenv("LADDER_CPU_DEVICES", "4", 1);

constexpr uint64_t kDataSeed = 7;

/// Ends the test case where there are fewer GPUs. The CPU device has as many as the line above asks for.
inline void skip_unless_devices(int count) {
  ladder::testing::skip_unless_runnable(*ladder::all_lessons().front());
  if (ladder::on_cpu_device()) REQUIRE(count_devices() >= count);
  if (count_devices() < count) SKIP("needs " << count << " GPUs");
}

/// What an experiment prints, and its rows.
struct Output {
  std::ostringstream text;
  ladder::ResultFile results;
  /// Three batches, one sample of each measurement.
  Context context(const ladder::Shape& shape) { return {text, results, shape, 3, 1}; }
};

}  // namespace lesson07
