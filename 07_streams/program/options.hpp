/// @file
/// The command line of `07_streams`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/host/device/execution.hpp"
#include "common/host/problem/shape.hpp"

namespace lesson07 {

/// What the reader chose, with the device's defaults for the rest.
struct Options {
  bool list = false;
  std::vector<std::string> experiments;  ///< in the order given; the table of levels is "levels"
  std::vector<int> levels;               ///< ascending
  std::vector<ladder::Shape> shapes;     ///< m: rows of a batch on average
  int batches = 0, streams = 0, slots = 0, rounds = 0;
  uint64_t data_seed = 0;
  std::string json_path;   ///< empty: no result file
  std::string trace_path;  ///< empty: no timelines
  ladder::Execution execution;
};

/// @returns false if help was all that was wanted
/// @throws ladder::BadArguments, std::invalid_argument naming the option, its value and the rule
bool read_options(int argc, char** argv, Options& options);

}  // namespace lesson07
