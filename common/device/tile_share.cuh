/// @file
/// Who copies what: a block's threads share the copying of a tile, in chunks of 16 bytes.
#pragma once
#include <cuda_bf16.h>

#include "common/device/swizzled_tile.cuh"

namespace ladder {

/// One thread's share of the tiles of a row-major matrix, which are brought to shared memory one after the
/// other.
///
/// Neighbouring threads take neighbouring chunks of a row, so that global memory is read in whole 128-byte
/// lines. A thread's chunks are kRowStep rows apart. The address of the first is kept from tile to tile;
/// those of the others follow from it with one multiply-add each. That matters in a loop that does little
/// but issue copies and products.
template <class Tile, int kThreads>
class TileShare {
 public:
  static constexpr int kChunks = Tile::kChunks / kThreads;         ///< chunks that a thread copies
  static constexpr int kRowStep = kThreads / Tile::kChunksPerRow;  ///< rows between two of them
  /// Elements between their places in shared memory: rows that are a multiple of 8 apart are swizzled alike.
  static constexpr int kDestinationStep = kRowStep * 64;
  static_assert(Tile::kChunks % kThreads == 0 && kThreads % Tile::kChunksPerRow == 0 && kRowStep % 8 == 0);

  /// The first tile starts at (first_row, first_column) of the matrix [rows, columns]. It starts at a
  /// multiple of 16 bytes, and `columns` is a multiple of 8.
  __device__ TileShare(const __nv_bfloat16* matrix, int rows, int columns, int first_row, int first_column)
      : row_(static_cast<int>(threadIdx.x) / Tile::kChunksPerRow),
        column_(static_cast<int>(threadIdx.x) % Tile::kChunksPerRow * Tile::kChunk),
        rows_left_(rows - first_row),
        columns_left_(columns - first_column),
        pitch_(columns),
        first_(matrix + static_cast<size_t>(first_row + row_) * columns + first_column + column_) {}

  /// Calls move(i, source, inside) for each chunk i, whose 8 elements at `source` all lie inside the matrix
  /// or all outside. What lies outside must not be read.
  template <class Move>
  __device__ __forceinline__ void for_each(Move&& move) const {
    if (rows_left_ >= Tile::kRows &&
        columns_left_ >= Tile::kColumns) {  // no edge: no tests; true of the whole block
#pragma unroll
      for (int i = 0; i < kChunks; ++i) move(i, source(i), true);
    } else {
#pragma unroll
      for (int i = 0; i < kChunks; ++i)
        move(i, source(i), row_ + i * kRowStep < rows_left_ && column_ < columns_left_);
    }
  }

  /// Loads this thread's chunks to registers. What lies outside the matrix becomes zero.
  __device__ __forceinline__ void load(uint4 (&chunks)[kChunks]) const {
    for_each([&](int i, const __nv_bfloat16* source, bool inside) {
      chunks[i] = inside ? *reinterpret_cast<const uint4*>(source) : make_uint4(0, 0, 0, 0);
    });
  }
  /// Stores them to shared memory.
  __device__ __forceinline__ void store(const uint4 (&chunks)[kChunks], Tile& tile) const {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) *destination(tile, i) = chunks[i];
  }
  /// Where chunk i goes.
  __device__ __forceinline__ uint4* destination(Tile& tile, int i) const {
    return reinterpret_cast<uint4*>(tile.chunk(row_, column_) + i * kDestinationStep);
  }

  /// Goes on to the tile to the right.
  __device__ __forceinline__ void next_right() {
    columns_left_ -= Tile::kColumns;
    first_ += Tile::kColumns;
  }
  /// Goes on to the tile below.
  __device__ __forceinline__ void next_down() {
    rows_left_ -= Tile::kRows;
    first_ += static_cast<size_t>(Tile::kRows) * pitch_;
  }

 private:
  __device__ __forceinline__ const __nv_bfloat16* source(int i) const {
    return first_ + static_cast<size_t>(i * kRowStep) * pitch_;
  }

  int row_, column_;              // of the first chunk, within the tile
  int rows_left_, columns_left_;  // of the matrix, from the tile's first row and column on
  int pitch_;                     // elements from a row of the matrix to the next: BLAS's leading dimension
  const __nv_bfloat16* first_;    // the first chunk
};

}  // namespace ladder
