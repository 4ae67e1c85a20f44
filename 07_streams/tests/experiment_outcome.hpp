/// @file
/// What tests of experiments share: an experiment is run on a small problem, and its rows are found by their
/// settings.
#pragma once
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "07_streams/experiments/experiment.hpp"
#include "common/host/problem/lesson_registry.hpp"
#include "common/testing/gemm_checks.hpp"

namespace lesson07 {

inline void skip_unless_runnable() { ladder::testing::skip_unless_runnable(*ladder::all_lessons().front()); }

inline const Experiment& experiment_called(const std::string& name) {
  for (const Experiment* experiment : experiments())
    if (experiment->name == name) return *experiment;
  FAIL("no experiment is called " << name);
  throw;  // not reached
}

/// What an experiment printed and recorded.
struct Outcome {
  std::string text;
  std::vector<ladder::Run> runs;
};

inline Outcome run_small(const std::string& name, int batches = 4) {
  std::ostringstream out;
  ladder::ResultFile results;
  experiment_called(name).run({out, results, {80, 128, 128}, batches, 1, 3, 4});
  return {out.str(), results.runs};
}

/// A copy of the row with these settings, among others.
inline ladder::Run row(const Outcome& outcome, const ladder::Settings& settings) {
  for (const ladder::Run& run : outcome.runs)
    if (std::includes(run.settings.begin(), run.settings.end(), settings.begin(), settings.end())) return run;
  FAIL("no row has these settings");
  throw;  // not reached
}

/// A setting that is a number.
inline double number(const ladder::Run& run, const std::string& setting) {
  return std::stod(run.settings.at(setting));
}

}  // namespace lesson07
