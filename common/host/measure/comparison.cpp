/// @file
/// Runs contenders on one shape.
#include "common/host/measure/comparison.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <vector>

#include "common/host/device/device.hpp"
#include "common/host/measure/timing.hpp"
#include "common/host/verify/verifier.hpp"

namespace ladder {
namespace {

constexpr int kRoundsToChoose = 5;  ///< among a library's algorithms; their samples are as long as all

Outcome run_once(const Contender& contender, const Shape& shape, const ComparisonOptions& options,
                 const std::string& schedule, Verifier& verifier) {
  Outcome outcome;
  outcome.contender = &contender;
  outcome.schedule = schedule;
  outcome.run.lesson = contender.lesson;
  outcome.run.core = contender.core;
  outcome.run.shape = shape;
  outcome.run.settings = contender.settings;
  outcome.run.rung = contender.rung;
  if (contender.choice) outcome.run.choice = contender.choice(shape);
  if (contender.resources) outcome.run.resources = contender.resources();
  if (contender.global_bytes)
    outcome.run.global_bytes = contender.global_bytes({nullptr, nullptr, nullptr, shape.m, shape.n, shape.k});

  use_schedule(options.execution, schedule);
  const Multiply multiply = [&](const Gemm& gemm) { multiply_and_wait(contender, gemm); };
  if (options.verify) {
    const Verdict verdict = options.integers_alone && contender.epilogue.exact
                                ? verifier.check_exact(multiply, contender.epilogue)
                                : verifier.check(multiply, contender.epilogue);
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

/// Between two runs of a contender only the schedule differs, so what is right must have the same bits.
/// @param first the C of the first run, made by it
void check_bits(Outcome& outcome, const ComparisonOptions& options, const Verifier& verifier,
                std::vector<__nv_bfloat16>& first) {
  if (options.execution.schedules.size() == 1 || !outcome.run.verified.value_or(false)) return;
  if (first.empty()) {
    first = verifier.last_c();
    return;
  }
  outcome.complaint =
      compare_bits(verifier.last_c(), first, outcome.run.shape, options.execution.schedules.front());
  outcome.run.verified = outcome.complaint.empty();
}

void add_timing(Run& run, const Timing& timing) {
  run.time_us_median = timing.time_us.median;
  run.time_us_q1 = timing.time_us.q1;
  run.time_us_q3 = timing.time_us.q3;
  run.tflops = run.shape.flops() / timing.time_us.median * 1e-6;
  run.clock_mhz = timing.clock_mhz;
  run.power_watts = timing.power_watts;
  run.joules = timing.joules;
  run.eager_us = timing.eager_us;
}

/// Compares all with the fastest variant of the libraries among them, if there is one.
void compare_with_library(std::vector<Outcome>& outcomes) {
  std::vector<Run> runs;
  for (const Outcome& outcome : outcomes) runs.push_back(outcome.run);
  const Run* library = runs.empty() ? nullptr : fastest_library(runs, runs.front().shape);
  if (!library) return;
  const std::string& label = outcomes[library - runs.data()].contender->label;
  for (Outcome& outcome : outcomes) {
    outcome.percent_of_library = *library->time_us_median / *outcome.run.time_us_median * 100;
    outcome.fastest_variant = label;
  }
}

}  // namespace

void compare(const std::vector<Contender>& contenders, const Shape& shape, const ComparisonOptions& options,
             Progress& progress, const std::function<void(const Outcome&)>& report) {
  TimingOptions timing;
  timing.rounds = options.rounds;
  timing.data_seed = options.data_seed;
  if (options.sample_ms > 0) timing.sample_ms = timing.warm_up_ms = options.sample_ms;
  timing.inputs = options.inputs;
  // What is verified is what will be timed.
  const std::vector<Contender> chosen =
      with_fastest_candidates(contenders, [&](const std::vector<Contender>& candidates) {
        progress.show(shape.name() + ": choosing among the algorithms of " + candidates.front().label);
        TimingOptions fewer = timing;
        fewer.rounds = std::min(timing.rounds, kRoundsToChoose);
        fewer.warm_up_ms =
            timing.warm_up_ms / 3;  // which of them is fastest shows before the clock has settled
        return time_interleaved(candidates, shape, fewer);
      });
  std::vector<Outcome> outcomes;
  {
    progress.show(shape.name() + ": making the matrices");
    Verifier verifier(shape, options.data_seed);
    for (size_t i = 0; i < chosen.size(); ++i) {
      std::vector<__nv_bfloat16> first_c;
      for (const std::string& schedule : options.execution.schedules) {
        progress.show(chosen[i].lesson + " " + shape.name() + (options.verify ? ": verifying" : ": running") +
                      (schedule.empty() ? "" : ", " + schedule));
        outcomes.push_back(run_once(chosen[i], shape, options, schedule, verifier));
        outcomes.back().contender = &contenders[i];
        check_bits(outcomes.back(), options, verifier, first_c);
        if (!on_cpu_device()) continue;
        progress.clear();
        report(outcomes.back());
      }
    }
  }  // Frees the verifier's matrices: timing needs room for its own.
  if (on_cpu_device()) return;

  timing.on_round = [&](int round) {
    progress.show(fmt::format("{}: timing, round {} of {}", shape.name(), round + 1, options.rounds));
  };
  timing.energy = options.energy;  // not where candidates are chosen
  progress.show(shape.name() + ": warming up");
  const std::vector<Timing> timings = time_interleaved(chosen, shape, timing);
  progress.clear();
  for (size_t i = 0; i < outcomes.size(); ++i) {
    add_timing(outcomes[i].run, timings[i]);
    outcomes[i].run.inputs = name_of(options.inputs);
  }
  compare_with_library(outcomes);
  for (const Outcome& outcome : outcomes) report(outcome);
}

}  // namespace ladder
