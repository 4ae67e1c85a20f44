/// @file
/// Times whole schedules: by the host's clock on the GPU, by the virtual clock on the CPU device.
#include "07_streams/measure/measure.hpp"

#include <cuda_runtime.h>

#include <chrono>

#include "07_streams/measure/trace_recorder.hpp"
#include "common/cuda/error.hpp"
#include "common/host/base/interrupt.hpp"
#include "common/host/base/statistics.hpp"
#include "common/host/device/device.hpp"
#include "common/host/measure/timing.hpp"
#ifdef LADDER_CPU_DEVICE
#include "common/cpu_device/cpu_device.hpp"
#endif

namespace lesson07 {
namespace {

double now_us() {
#ifdef LADDER_CPU_DEVICE
  return cpu_device::stream_time_us();
#else
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
#endif
}

/// Microseconds of one run, which begins when the device is idle.
double time_us(const Variant& variant) {
  if (ladder::interrupted())
    throw ladder::Interrupted("interrupted between two runs; nothing is left in flight");
  CUDA_CHECK(cudaDeviceSynchronize());
  const double begin = now_us();
  variant.run();
  return now_us() - begin;
}

}  // namespace

std::vector<Measured> measure_interleaved(const std::vector<Variant>& variants, int rounds) {
  // Virtual time is the same in every run, and the first run has nothing to warm up.
  const bool is_virtual = ladder::on_cpu_device();
  if (!is_virtual)
    for (const Variant& variant : variants) time_us(variant);
  const auto samples = ladder::interleave(variants.size(), is_virtual ? 1 : rounds,
                                          [&](size_t variant) { return time_us(variants[variant]); });
  std::vector<Measured> measured;
  for (const std::vector<double>& times : samples) {
    const ladder::Quartiles quartiles = ladder::quartiles(times);
    measured.push_back({quartiles.median, quartiles.q1, quartiles.q3});
  }
  if (TraceRecorder* recorder = TraceRecorder::current()) recorder->record(variants);
  return measured;
}

ladder::Run result_row(const std::string& experiment, const Variant& variant, const ladder::Shape& shape,
                       const Measured& measured) {
  ladder::Run run;
  run.lesson = "07_streams";
  run.core = ladder::resolve_core("auto");
  run.shape = shape;
  run.settings = variant.settings;
  run.settings["experiment"] = experiment;
  run.time_us_median = measured.median_us;
  run.time_us_q1 = measured.q1_us;
  run.time_us_q3 = measured.q3_us;
  return run;
}

}  // namespace lesson07
