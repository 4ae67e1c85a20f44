/// @file
/// Exercise 03.a: which slot a step reads, and what it loads into which slot.
///
/// The ring of lesson 03. Tiles 0, 1, 2, ... take the slots in turn, and are copied in this order. Before the
/// loop the copies into all slots but one are started. Step s waits for tile s, starts the copy of one more
/// tile, and then multiplies tile s.
#pragma once
#include <algorithm>

namespace exercise {

struct Step {
  int read_slot;                 ///< of the tile that is multiplied
  int loaded_tile, loaded_slot;  ///< of the copy that is started; both -1 if no tile is left
};

/// loaded_before: how many tiles' copies start before the loop. in_step: what a step of the loop does.
// Read 03_double_buffer/README.md and 03_double_buffer/gemm.cuh.
// >>> yours
constexpr int loaded_before(int slots, int tiles) { return std::min(slots - 1, tiles); }
constexpr Step in_step(int step, int slots, int tiles) {
  const int tile = step + slots - 1;
  if (tile >= tiles) return {step % slots, -1, -1};
  return {step % slots, tile, tile % slots};
}
// <<<

}  // namespace exercise
