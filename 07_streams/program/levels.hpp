/// @file
/// The levels of overlap, each switched on in turn: between batches, then inside the kernel.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "07_streams/experiments/experiment.hpp"
#include "07_streams/pipeline.hpp"

namespace lesson07 {

struct Level {
  int number;
  std::string added;  ///< since the level before, in a few words
  Kernel kernel;
  bool overlaps_batches;
};

/// Levels 0 to 4.
std::vector<Level> levels();

/// Checks every level on batches of small integers, then times all of them and their bounds in one
/// interleaved run on normal data. Prints a table with a row for each, and adds a result row for each.
/// @param numbers of the levels, ascending
/// @throws WrongResult, and what run_batches throws
void run_levels(const Context& context, const std::vector<int>& numbers, uint64_t data_seed);

}  // namespace lesson07
