/// @file
/// Exercise 02.a: what tiles in shared memory save.
///
/// C = A · B, where C has m rows and n columns. Each block computes tile.m x tile.n elements of C. In each
/// step of k it loads a tile of A, tile.m x tile.k, and one of B, tile.k x tile.n.
#pragma once
#include "common/device/tile_shape.cuh"

namespace exercise {

/// elements_of_a_step: how many elements of A and B a block loads in a step of k.
/// times_loaded: how many times all blocks together load one element of A.
// Read 02_tiled/README.md and common/device/tile_shape.cuh.
// >>> yours
constexpr int elements_of_a_step(ladder::TileShape tile) { return tile.m * tile.k + tile.k * tile.n; }
constexpr int times_loaded(int m, int n, ladder::TileShape tile) {
  return (void)m, ladder::tiles_over(n, tile.n);
}
// <<<

}  // namespace exercise
