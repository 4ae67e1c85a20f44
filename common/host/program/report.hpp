/// @file
/// Prints comparisons as a table: the cells, the lines around them, and the exit code that follows from them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/host/base/table.hpp"
#include "common/host/measure/comparison.hpp"
#include "common/host/program/command_line.hpp"
#include "common/host/program/results.hpp"

namespace ladder {

/// The widest label among the contenders, and the longest name among the shapes and the schedules: what the
/// columns of words must hold, so that the table is aligned.
int widest_label(const std::vector<Contender>& contenders);
int widest_shape(const std::vector<Shape>& shapes);
/// 0 if the device's default schedule is the only one: then there is nothing to say.
int widest_schedule(const Execution& execution);

/// One cell each. A figure that was not measured is "-".
std::string time_cell(const Run& run);
std::string spread_cell(const Run& run);  ///< half the distance of the quartiles, in percent of the median
std::string tflops_cell(const Run& run);
std::string percent_cell(const std::optional<double>& percent);
std::string verified_cell(const Outcome& outcome);
/// "258 of 1024 rows of 1024x8192x8192": what "sampled" means; empty where all rows, or none, were compared.
std::string sample_of(const Outcome& outcome);
std::string count_cell(uint64_t count);
/// Bytes that crossed from global memory (32-byte sectors, after coalescing) for each element of C.
std::string bytes_per_output_cell(const Run& run);
/// Floating-point operations for each of those bytes.
std::string flops_per_byte_cell(const Run& run);
/// Bytes that came from another block of the cluster instead, for each element of C.
std::string cluster_bytes_per_output_cell(const Run& run);
/// The share of the copies' virtual time in which something was computed.
std::string overlap_cell(const Run& run);

/// What a block takes. Unknown figures are "-".
std::string shared_kb_cell(const Run& run);
std::string registers_cell(const Run& run);
std::string blocks_cell(const Run& run);

/// What a program's table looks like.
struct Report {
  std::string program;  ///< begins the lines on stderr
  std::string title;    ///< stands above everything, followed by the device
  std::vector<Column> columns;
  std::function<std::vector<std::string>(const Outcome&)> cells;
  bool table_for_each_shape = false;  ///< each under its shape; else all rows are in one table
  /// What follows the tables; may add runs to the result file, before it is written. May be empty.
  std::function<void(ResultFile&)> afterwards = {};
  /// What follows the rows of each shape, given the runs so far. May be empty.
  std::function<void(const Shape&, const std::vector<Run>&)> after_shape = {};
};

/// Which contenders there are for a shape.
using ContendersOf = std::function<std::vector<Contender>(const Shape&)>;

/// Compares the contenders, and on the GPU the libraries, on every shape of the options; prints a row for
/// each and writes the result file, after every shape.
/// @returns kExitOk, or kExitFailure if a result was wrong; the complaints are on stderr
int report_comparisons(const Report& report, const ContendersOf& contenders, const CommonOptions& options);
/// The same contenders for all shapes.
int report_comparisons(const Report& report, const std::vector<Contender>& contenders,
                       const CommonOptions& options);

}  // namespace ladder
