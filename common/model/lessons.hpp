/// @file
/// The cost model applied to the lessons' kernels: predicted beside measured, from recorded files.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/host/program/results.hpp"
#include "common/model/calibration.hpp"
#include "common/model/model.hpp"

namespace ladder::model {

/// Steps of the lessons' kernels, in any one unit: copies are asynchronous, one may start wherever a slot is
/// free.
Pipeline ring_of(int slots, double load, double compute, Release release);

/// What the model must know of a kernel; everything follows from its source.
struct Kernel {
  int tile_m, tile_n, tile_k;
  int slots;
  int blocks_per_sm;
  bool persistent;  ///< one pipeline over all tiles of a block, else a new one for each
  /// The threads that multiply also start the copies and meet at a barrier, in turn with their products.
  bool all_warps_copy = false;
  /// 05 drains its products before it releases their slot. 03 refills a slot after the barrier of the next
  /// step, and the kernels for any shape release it after the start of the next step: both have waited for
  /// the next tile by then.
  Release release = Release::after_compute;

  /// Clocks to multiply one step's tiles on the tensor cores of one SM, without a pause.
  double step_cycles() const;
};

/// Nothing for runs without a pipeline that the model covers: CUDA cores, mma_sync, other tiles, other
/// epilogues.
std::optional<Kernel> kernel_of(const Run& run);

/// What is taken from timelines, in clocks of an SM.
struct Parameters {
  double load = 0;     ///< from the release of a slot until the next tile has landed in it
  double load_03 = 0;  ///< the same of 03, which copies half as much by other means
  double turn_03 = 0;  ///< that all warps of 03 need in each step besides their products
  /// Between the last step of a tile of C and the first of the next. 02 and 03, which have no timeline, are
  /// given that of 04, whose tile of C is as large.
  double epilogue_04 = 0, epilogue_05 = 0, epilogue_06 = 0;
  double clock_mhz = 0;         ///< of the timelines
  bool clock_recorded = false;  ///< else it is the highest clock of the result file
  /// What load_03 and turn_03 were read from: runs that are no predictions.
  std::vector<Run> read_from = {};
};

/// @param one_slot of lesson 04, where every load is seen
/// @param ring of lesson 05
/// @param clusters of lesson 06
/// @throws std::invalid_argument if the first has more than one slot
Parameters parameters_from(const Calibration& one_slot, const Calibration& ring, const Calibration& clusters,
                           const ResultFile& climb);

/// Reads what 03 needs from its runs at 4096 cubed with one slot, where each step is a load and a product,
/// and with five, where only one block fits and no load is waited for. Without them 03's load is that of 04.
void read_03(Parameters& parameters, const ResultFile& slots);

/// A kernel's time on one shape.
struct Prediction {
  Run run;
  Kernel kernel{};
  double cycles = 0;         ///< predicted
  double us = 0;             ///< the same at the clock that was measured: the model knows nothing of power
  double error_percent = 0;  ///< of `us` against run.time_us_median
  std::string
      bound;  ///< what takes the time: "tensor cores", "load", "load + compute" or "copy, then compute"
};

/// @param gpu as ResultFile::gpu says it
/// @throws std::invalid_argument if that is a GPU that the model does not know
Prediction predict(const Run& run, const Kernel& kernel, const Parameters& parameters,
                   const std::string& gpu);

/// Of lesson 01: its load units, which serve one line of 128 bytes a clock, are always busy. Of lesson 07: so
/// is the busiest engine, whose time alone the run says; what one batch needs of the others is left out.
/// @returns nothing for other lessons, and for 07's level 0, which takes turns
std::optional<Prediction> predict_bound(const Run& run, const std::string& gpu);

/// Predictions for what a directory of results holds (docs/results).
struct Report {
  ResultFile climb;  ///< the newest one, and what was calibrated from the timelines beside it
  Calibration one_slot, ring, clusters;
  Parameters parameters;
  std::vector<Prediction> climb_predictions;
  std::vector<Prediction> slot_predictions;   ///< of the experiments with the slots of 03, 04 and 05
  std::vector<Prediction> bound_predictions;  ///< of lessons 01 and 07
};

/// At 4096, 8192 and 16384 cubed. Of an experiment the newest file counts; one that was not recorded is left
/// out.
/// @throws std::invalid_argument naming --results and what is missing
Report report_on(const std::string& directory);

}  // namespace ladder::model
