/// @file
/// The extent of a block's tile.
#pragma once
#include <cuda_runtime.h>

namespace ladder {

/// A block computes m x n outputs at a time; each step brings k columns of A and k rows of B.
struct TileShape {
  int m, n, k;
};

/// Tiles that cover `extent`; the last one may stick out. extent + tile must fit into an int: checked_shape()
/// (common/host/problem/shape.hpp) refuses larger sizes.
__host__ __device__ constexpr int tiles_over(int extent, int tile) { return (extent + tile - 1) / tile; }

}  // namespace ladder
