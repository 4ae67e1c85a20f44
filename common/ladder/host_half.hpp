/// @file
/// The host's half of the climb: what the last lesson gains around the kernels, from host memory to host
/// memory.
#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "common/host/device/execution.hpp"
#include "common/host/problem/lesson.hpp"
#include "common/host/problem/shape.hpp"
#include "common/host/program/results.hpp"

namespace ladder {

struct HostHalf {
  std::string lesson;  ///< its directory's name
  /// m: rows of a batch on average; n, k: the weights. The quickest comes first.
  std::vector<Shape> shapes;
  /// "1 streams": what each level that runs here has and the one before has not. Asks the device.
  std::function<std::vector<std::string>()> levels;
  /// Runs every level on batches of this shape, compares the results, and times them and their bounds in one
  /// interleaved run. @returns a run for each level, in order. @throws if a result is wrong
  std::function<std::vector<Run>(const Shape& shape, int rounds)> run;
};

/// The shapes whose levels take minutes at most, where this core multiplies. With CUDA cores that is the
/// first alone: the kernels of the others would take a small GPU, such as a T4, about half an hour.
std::vector<Shape> shapes_in_minutes(const HostHalf& half, const std::string& core);

/// Runs it for each of these shapes and each schedule, prints a table for each, and adds the runs to the
/// results. Says which shapes are left out.
void run_host_half(std::ostream& out, const HostHalf& half, const Execution& execution, int rounds,
                   ResultFile& results);

}  // namespace ladder
