/// @file
/// Exercise 03.b: how many batches may be unfinished.
///
/// A thread copies its part of tiles 0, 1, 2, ..., and closes a batch for each tile: `ahead` batches before
/// the loop, and in step s that of tile s + ahead, before or after the wait for tile s. Where no tile is
/// left, it closes an empty batch, or none.
#pragma once
#include <algorithm>

namespace exercise {

/// When a step starts its copies and closes their batch.
enum class Loads { after_the_wait, before_the_wait };

/// The n for the __pipeline_wait_prior(n) of step `step`: the largest with which its tile has landed.
/// @param empty_batches whether the thread closes an empty batch where no tile is left; before the loop, too
// Read 03_double_buffer/README.md and common/cpu_device/shadow/cuda_pipeline_primitives.h.
// >>> yours
constexpr int unfinished(int step, int tiles, int ahead, Loads loads, bool empty_batches) {
  int closed = step + ahead + (loads == Loads::before_the_wait ? 1 : 0);
  if (!empty_batches) closed = std::min(closed, tiles);
  return closed - (step + 1);
}
// <<<

}  // namespace exercise
