/// @file
/// Runs contenders on one shape.
#include "common/host/measure/comparison.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "common/host/device/device.hpp"
#include "common/host/measure/timing.hpp"
#include "common/host/verify/verifier.hpp"

namespace ladder {
namespace {

Outcome run_once(const Contender& contender, const Shape& shape, const ComparisonOptions& options,
                 const std::string& schedule, Verifier& verifier) {
  Outcome outcome;
  outcome.contender = &contender;
  outcome.schedule = schedule;
  outcome.run.lesson = contender.lesson;
  outcome.run.core = contender.core;
  outcome.run.shape = shape;
  outcome.run.settings = contender.settings;
  if (contender.choice) outcome.run.choice = contender.choice(shape);
  if (contender.resources) outcome.run.resources = contender.resources();
  if (contender.global_bytes)
    outcome.run.global_bytes = contender.global_bytes({nullptr, nullptr, nullptr, shape.m, shape.n, shape.k});

  use_schedule(options.execution, schedule);
  const Multiply multiply = [&](const Gemm& gemm) { multiply_and_wait(contender, gemm); };
  if (options.verify) {
    const Verdict verdict = verifier.check(multiply, contender.epilogue);
    outcome.run.verified = verdict.passed();
    if (verdict.passed()) outcome.run.rel_error = verdict.rel_error;
    outcome.sampled = verdict.sampled;
    outcome.rows = verdict.rows;
    outcome.complaint = verdict.complaint;
  } else if (on_cpu_device()) {
    verifier.run_unverified(multiply);
  }
  outcome.run.counters = last_launch_counters();
  return outcome;
}

void add_timing(Run& run, const Timing& timing) {
  run.time_us_median = timing.time_us.median;
  run.time_us_q1 = timing.time_us.q1;
  run.time_us_q3 = timing.time_us.q3;
  run.tflops = run.shape.flops() / timing.time_us.median * 1e-6;
  run.sm_clock_mhz = timing.sm_clock_mhz;
  run.power_watts = timing.power_watts;
}

/// The time of the faster cublasGemmEx among the outcomes; nothing if none was timed.
std::optional<double> fastest_cublas_us(const std::vector<Outcome>& outcomes) {
  std::optional<double> fastest;
  for (const Outcome& outcome : outcomes) {
    const Run& run = outcome.run;
    if (run.lesson != "cublas_gemmex" || !run.time_us_median) continue;
    fastest = std::min(fastest.value_or(*run.time_us_median), *run.time_us_median);
  }
  return fastest;
}

}  // namespace

void compare(const std::vector<Contender>& contenders, const Shape& shape, const ComparisonOptions& options,
             Progress& progress, const std::function<void(const Outcome&)>& report) {
  std::vector<Outcome> outcomes;
  {
    Verifier verifier(shape, options.data_seed);
    for (const Contender& contender : contenders)
      for (const std::string& schedule : options.execution.schedules) {
        progress.show(contender.lesson + " " + shape.name() + (options.verify ? ": verifying" : ": running") +
                      (schedule.empty() ? "" : ", " + schedule));
        outcomes.push_back(run_once(contender, shape, options, schedule, verifier));
        if (!on_cpu_device()) continue;
        progress.clear();
        report(outcomes.back());
      }
  }  // Frees the verifier's matrices: timing needs room for its own.
  if (on_cpu_device()) return;

  TimingOptions timing;
  timing.rounds = options.rounds;
  timing.data_seed = options.data_seed;
  if (options.sample_ms > 0) timing.sample_ms = timing.warm_up_ms = options.sample_ms;
  timing.hot_inputs = options.hot_inputs;
  timing.on_round = [&](int round) {
    progress.show(fmt::format("{}: timing, round {} of {}", shape.name(), round + 1, options.rounds));
  };
  progress.show(shape.name() + ": warming up");
  const std::vector<Timing> timings = time_interleaved(contenders, shape, timing);
  progress.clear();
  for (size_t i = 0; i < outcomes.size(); ++i) {
    add_timing(outcomes[i].run, timings[i]);
    outcomes[i].run.inputs = options.hot_inputs ? "hot" : "cold";
  }
  const std::optional<double> cublas_us = fastest_cublas_us(outcomes);
  for (Outcome& outcome : outcomes) {
    if (cublas_us) outcome.percent_of_cublas = *cublas_us / *outcome.run.time_us_median * 100;
    report(outcome);
  }
}

}  // namespace ladder
