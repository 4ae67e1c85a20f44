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

/// What is run where no option says otherwise. On the GPU two shapes: with weights of 4096 x 4096 the copies
/// take longest, with 16384 x 16384 the kernels.
std::string default_shapes();
int default_batches();

/// Of levels 0 to 4 those whose kernels run here. Level 3 has the ring of 03 where that of 05 does not run.
/// @throws ladder::BadInput if there is no device
std::vector<Level> levels();

/// Checks every level on batches of small integers, then times all of them and their bounds in one
/// interleaved run on normal data. Prints a table with a row for each, and adds a result row for each.
/// @param numbers of the levels, ascending; what does not run here is named and left out
/// @throws ladder::BadInput if none runs here, WrongResult, and what run_batches throws
void run_levels(const Context& context, const std::vector<int>& numbers, uint64_t data_seed);

/// The same of all levels with the program's defaults, and without the table: for `ladder`.
/// @returns a run for each level, in order
std::vector<ladder::Run> measured_levels(const ladder::Shape& shape, int rounds);

}  // namespace lesson07
