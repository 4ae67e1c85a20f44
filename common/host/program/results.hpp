/// @file
/// Result files: what `--json` writes and documents are generated from. The format is stable; fields are only
/// added.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/host/measure/run.hpp"

namespace ladder {

struct ResultFile {
  std::string date;  ///< "2026-11-21", UTC
  std::string commit;
  std::string gpu, driver, toolkit;
  std::vector<Run> runs;
  double max_clock_mhz = 0;  ///< of the GPU's multiprocessors; 0 where not known
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

/// @throws std::invalid_argument naming `argument` and the path; std::runtime_error as
/// write_file_atomically() does
void write_results(const std::string& argument, const std::string& path, const ResultFile& results);
/// The same for a run that goes on: what comes later may fail, and loses nothing of this. Does nothing where
/// the results to come could not take the place of these, as in a pipe; and with an empty path.
void write_results_so_far(const std::string& argument, const std::string& path, const ResultFile& results);
/// @param path or, of a file that holds several, path#record
/// @throws std::invalid_argument naming `argument` and the path
ResultFile read_results(const std::string& argument, const std::string& path);

/// The path of the newest result file in a directory, by its name (DATE-GPU.json, or one with another
/// ending); nothing if there is none.
std::optional<std::string> newest_result_file(const std::string& directory,
                                              const std::string& ending = ".json");

}  // namespace ladder
