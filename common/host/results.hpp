/// @file
/// Result files: what `--json` writes and documents are generated from. The format is stable; fields are only
/// added.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/host/contender.hpp"
#include "common/host/execution.hpp"
#include "common/host/shape.hpp"

namespace ladder {

/// One contender on one shape. What was not measured is null in the file.
struct Run {
  std::string lesson;  ///< its directory's name; or "cublas_gemmex", "cublaslt"
  std::string core;
  Shape shape;
  Settings settings;
  std::optional<double> time_us_median, time_us_q1, time_us_q3;
  std::optional<double> tflops;
  std::optional<double> sm_clock_mhz, power_watts;
  std::string choice;  ///< of lessons that choose; see Lesson::choice
  std::string inputs;  ///< "cold" or "hot" (in the L2 cache) where timed, else empty
  std::optional<bool> verified;
  std::optional<double> rel_error;         ///< Frobenius norm, on normal data
  std::optional<LaunchCounters> counters;  ///< only on the CPU device
  std::optional<Resources> resources;      ///< of lessons that say so
  std::optional<double> global_bytes;      ///< likewise; see Lesson::global_bytes
  std::optional<double> bound_us;          ///< of schedules: the time that no schedule can be shorter than
};

struct ResultFile {
  std::string date;  ///< "2026-11-21", UTC
  std::string commit;
  std::string gpu, driver, toolkit;
  std::vector<Run> runs;
};

/// A file without runs that says where and when it was made.
ResultFile new_result_file();

/// The commit that this was built from: the environment variable LADDER_COMMIT, else what the build found
/// out.
std::string build_commit();

/// The text of a result file.
std::string to_json(const ResultFile& results);
/// @throws std::invalid_argument naming what is wrong
ResultFile from_json(const std::string& text);

/// @throws std::invalid_argument naming `argument` and the path
void write_results(const std::string& argument, const std::string& path, const ResultFile& results);
ResultFile read_results(const std::string& argument, const std::string& path);

/// The path of the newest result file in a directory, by its name (DATE-GPU.json); nothing if there is none.
std::optional<std::string> newest_result_file(const std::string& directory);

}  // namespace ladder
