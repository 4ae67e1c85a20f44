/// @file
/// The part of the command line that the lessons' programs and `ladder` have in common.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "common/host/measure/comparison.hpp"
#include "common/host/problem/lesson.hpp"
#include "common/host/problem/shape.hpp"
#include "common/host/program/multiply_files.hpp"

namespace ladder {

class Arguments;

/// Options that every program has. Everything is read as text and checked by us, so that each complaint names
/// the argument, its value and the rule.
class CommonOptions {
 public:
  /// Adds the options to a program.
  void add_to(Arguments& arguments);
  /// After parsing: what the options mean together. @throws std::invalid_argument
  void check();

  std::vector<Shape> shapes;  ///< empty: the program's default
  ComparisonOptions comparison;
  bool with_library = true;  ///< run baselines(shape) beside it
  std::string json_path;     ///< empty: no result file
  FileNames files;           ///< all empty: problems are made up

 private:
  /// Those of measurements: the CPU device, which has none, says so to who gives one.
  void add_timing_options(Arguments& arguments);

  std::vector<std::string> size_texts_, shape_texts_;
  std::string rounds_, sample_ms_, data_seed_, inputs_;
  ExecutionOptions execution_;
};

/// One option for each knob of a lesson, each of which takes a list.
class KnobOptions {
 public:
  /// Adds an option for each knob of the lesson.
  void add_to(Arguments& arguments, const Lesson& lesson);
  /// Every combination of the values given, the last knob varying fastest; one that is empty if none was
  /// given.
  /// @throws std::invalid_argument for a value that is no choice
  std::vector<Settings> combinations(const Lesson& lesson) const;

 private:
  std::map<std::string, std::vector<std::string>> texts_;
};

/// Empty; or one line, if the GPU is too old for the lesson.
std::string why_not_runnable(const Lesson& lesson);

/// @throws std::invalid_argument if the lesson cannot run this shape
void check_lesson(const Lesson& lesson, const Settings& settings, const Shape& shape);

}  // namespace ladder
