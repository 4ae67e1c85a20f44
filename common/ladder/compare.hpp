/// @file
/// What changed between two result files, beyond the noise of their samples.
#pragma once
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "common/host/program/results.hpp"

namespace ladder {

/// The same contender on the same problem in both files. Percentages are of the first file's figures.
struct Change {
  const Run* before;
  const Run* after;
  double time_percent;                   ///< of the median time; negative: faster
  std::optional<double> cycles_percent;  ///< of the median time in clocks, where both files know the clock
  /// Half the distance of the quartiles of either file, added up: medians that are closer may be the same.
  double noise_percent;

  bool beyond_noise() const { return time_percent > noise_percent || time_percent < -noise_percent; }
};

struct Comparison {
  std::vector<Change> changes;  ///< in the order of the second file
  std::vector<const Run*> only_before, only_after;
};

/// Matches runs with times by lesson, core, shape, inputs and settings; a knob that one file does not have
/// yet makes no difference. The result points into the files.
Comparison compare_results(const ResultFile& before, const ResultFile& after);

/// Prints where the files come from and a row for each change beyond the noise; with `all` for each pair.
/// @throws std::invalid_argument naming the path, for what is no result file or holds no times
void compare_files(std::ostream& out, const std::string& before_path, const std::string& after_path,
                   bool all);

}  // namespace ladder
