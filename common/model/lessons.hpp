/// @file
/// The cost model applied to the lessons' kernels: predicted beside measured, from recorded files.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/host/program/results.hpp"
#include "common/model/parts.hpp"

namespace ladder::model {

/// Nothing for runs that the model does not cover: CUDA cores, mma_sync, other tiles, other epilogues, shapes
/// for which the kernel takes another tile.
std::optional<StepKind> kernel_of(const Run& run);

/// A kernel's time on one shape.
struct Prediction {
  Run run;
  StepKind kernel;
  double cycles = 0;         ///< predicted
  double us = 0;             ///< the same at the clock that was measured: the model knows nothing of power
  double error_percent = 0;  ///< of `us` against run.time_us_median
  std::string bound;         ///< what takes the time: as bound_of_step() says it, or an engine
};

/// Steps and epilogues of the busiest SM, at the clock that was measured. What begins and ends a launch is
/// left out.
/// @param gpu as ResultFile::gpu says it
/// @throws std::invalid_argument if that is a GPU that the model does not know
Prediction predict(const Run& run, StepKind kernel, const Parts& parts, const std::string& gpu);

/// Of lesson 01: its load units, which serve one line of 128 bytes a clock, are always busy. Of lesson 07: so
/// is the busiest engine, whose time alone the run says; what one batch needs of the others is left out.
/// @returns nothing for other lessons, and for 07's level 0, which takes turns
std::optional<Prediction> predict_bound(const Run& run, const std::string& gpu);

/// Predictions for what a directory of results holds (docs/results).
struct Report {
  ResultFile climb;  ///< the newest one
  Parts parts;
  std::vector<Prediction> climb_predictions;
  std::vector<Prediction> slot_predictions;   ///< of the experiments with slots, and without roles
  std::vector<Prediction> bound_predictions;  ///< of lessons 01 and 07
};

/// At 4096, 8192 and 16384 cubed. Of an experiment the newest file counts; one that was not recorded is left
/// out.
/// @throws std::invalid_argument naming --results and what is missing
Report report_on(const std::string& directory);

}  // namespace ladder::model
