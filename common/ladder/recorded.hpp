/// @file
/// Figures that were measured on a GPU before, to be shown where there is none.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "common/host/program/results.hpp"

namespace ladder {

/// A committed result file, or why there is none.
class Recorded {
 public:
  /// The newest file of the directory of results that this program was built with; none is fine.
  static Recorded newest();
  /// @throws std::invalid_argument naming --results if it is no result file
  static Recorded from_file(const std::string& path);

  /// One line that says what the figures are; or that there are none.
  std::string description() const;
  bool is_missing() const { return !file_; }

  const Shape& shape() const { return shape_; }
  /// Of a lesson with these settings, at shape().
  std::optional<double> tflops(const Lesson& lesson, const Settings& settings) const;
  /// The same in percent of the fastest variant of the libraries in that run.
  std::optional<double> percent_of_library(const Lesson& lesson, const Settings& settings) const;

 private:
  /// The cube that most runs share, the larger one if there are two.
  void choose_shape();
  const Run* find(const Lesson& lesson, const Settings& settings) const;

  std::optional<ResultFile> file_;
  std::string missing_;
  Shape shape_;
};

/// The levels of the host's half that were measured on a GPU before.
struct RecordedLevels {
  std::string description;          ///< one line that says what the figures are; or that there are none
  std::map<std::string, Run> runs;  ///< by the level's number

  /// Of the newest file of that experiment, where it has several shapes those of the last.
  static RecordedLevels newest();
};

}  // namespace ladder
