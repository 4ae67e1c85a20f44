/// @file
/// Exercise 02.b: where an element lies in a swizzled tile.
///
/// The tile is a SwizzledTile<rows, columns> of bf16, of 2 bytes each: panels of 64 columns, one behind the
/// other, whose rows are 128 bytes, in eight chunks of 16 bytes each.
#pragma once

namespace exercise {

/// Where the element (row, column) begins, in bytes from the tile's begin.
// Read docs/concepts/swizzle.md and common/device/swizzled_tile.cuh.
// >>> yours
constexpr int byte_of(int rows, int row, int column) {
  const int panel = column / 64, chunk = column % 64 / 8;
  return panel * rows * 128 + row * 128 + (chunk ^ row % 8) * 16 + column % 8 * 2;
}
// <<<

}  // namespace exercise
