/// @file
/// Exercise 06.a: to which blocks of a cluster a tile goes.
///
/// A cluster of rows x columns blocks computes as many tiles of C, beside and below each other. The block in
/// row r and column c of the cluster has the rank r * columns + c. The blocks of a row need the same tile of
/// A, those of a column the same tile of B. A multicast takes a mask: bit i stands for the block of rank i.
#pragma once
#include <cstdint>

namespace exercise {

/// The blocks that need the same tile of A, or of B, as the block of that rank; itself among them.
// Read docs/concepts/clusters_and_dsmem.md and common/ptx/tma.cuh.
// >>> yours
constexpr uint16_t receivers_of_a(int rank, int rows, int columns) {
  (void)rows;
  return static_cast<uint16_t>(((1 << columns) - 1) << rank / columns * columns);
}
constexpr uint16_t receivers_of_b(int rank, int rows, int columns) {
  int receivers = 0;
  for (int row = 0; row < rows; ++row) receivers |= 1 << (row * columns + rank % columns);
  return static_cast<uint16_t>(receivers);
}
// <<<

}  // namespace exercise
