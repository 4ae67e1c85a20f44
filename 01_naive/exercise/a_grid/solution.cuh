/// @file
/// Exercise 01.a: how many blocks cover C.
///
/// C has m rows and n columns. A block has block.x threads along the columns, as in lesson 01, and block.y
/// along the rows. Each thread computes rows_each elements of a column, one below the other.
#pragma once

namespace exercise {

struct Extent {
  int x, y;
};

/// grid_of: the fewest blocks that cover C. idle_threads: how many threads of that grid have no element of C.
// Read 01_naive/README.md and common/device/tile_shape.cuh.
// >>> yours
constexpr Extent grid_of(int m, int n, Extent block, int rows_each) {
  const int height = block.y * rows_each;
  return {(n + block.x - 1) / block.x, (m + height - 1) / height};
}
constexpr int idle_threads(int m, int n, Extent block, int rows_each) {
  const Extent grid = grid_of(m, n, block, rows_each);
  return grid.x * block.x * grid.y * block.y - n * ((m + rows_each - 1) / rows_each);
}
// <<<

}  // namespace exercise
