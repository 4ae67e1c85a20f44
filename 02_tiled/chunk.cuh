/// @file
/// A chunk: 16 bytes, 8 elements of a row, which a thread moves with one load and one store.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace lesson02 {

constexpr int kChunk = 8;  ///< elements of a chunk

/// The chunk of a row-major matrix [rows, columns] that begins at (row, column), or zeros outside it. As
/// `columns` and `column` are multiples of kChunk, a chunk lies inside or outside as a whole.
__device__ __forceinline__ uint4 chunk(const __nv_bfloat16* matrix, int rows, int columns, int row,
                                       int column) {
  const bool inside = row < rows && column < columns;
  const __nv_bfloat16* const source = matrix + static_cast<size_t>(row) * columns + column;
  return inside ? *reinterpret_cast<const uint4*>(source) : make_uint4(0, 0, 0, 0);
}

/// The chunk of a tile in shared memory that begins with `first`.
__device__ __forceinline__ uint4& chunk_at(__nv_bfloat16& first) { return reinterpret_cast<uint4&>(first); }

}  // namespace lesson02
