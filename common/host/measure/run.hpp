/// @file
/// What is known of a contender once it has run.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/host/device/execution.hpp"
#include "common/host/problem/lesson.hpp"
#include "common/host/problem/shape.hpp"

namespace ladder {

/// What stands for the core of a library.
inline constexpr char kLibraryCore[] = "cublas";

/// One contender on one shape. What was not measured is not in the file.
struct Run {
  std::string lesson;  ///< its directory's name; or "cublas_gemmex", "cublaslt"
  std::string core;
  Shape shape;
  Settings settings;
  std::optional<double> time_us_median, time_us_q1, time_us_q3;
  std::optional<double> eager_us;  ///< by a call for each launch, where time_us is through a graph
  std::optional<double> tflops;
  std::optional<double> clock_mhz, power_watts;
  std::optional<double> joules;  ///< of one launch, where that was asked for and the GPU counts them
  std::string rung;              ///< of the climb: the id of the rung, as "04.1"; else empty
  std::string choice;            ///< of lessons that choose; see Lesson::choice
  std::string inputs;            ///< "cold", "hot" or "zeros" (see Inputs) where timed, else empty
  std::optional<bool> verified;
  std::optional<double> rel_error;         ///< Frobenius norm, on normal data
  std::optional<LaunchCounters> counters;  ///< only on the CPU device
  std::optional<Resources> resources;      ///< of lessons that say so
  std::optional<double> global_bytes;      ///< likewise; see Lesson::global_bytes
  std::optional<double> bound_us;          ///< of schedules: the time that no schedule can be shorter than
};

/// Is it cuBLAS, in one of its variants?
inline bool is_library(const Run& run) { return run.core == kLibraryCore; }
/// The fastest variant of the libraries among the runs of this shape; nullptr if none was timed.
inline const Run* fastest_library(const std::vector<Run>& runs, const Shape& shape) {
  const Run* fastest = nullptr;
  for (const Run& run : runs)
    if (is_library(run) && run.shape == shape && run.tflops && (!fastest || *run.tflops > *fastest->tflops))
      fastest = &run;
  return fastest;
}

}  // namespace ladder
