/// @file
/// The one layout of a tile in shared memory, from lesson 02 on.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace ladder {

inline constexpr int kPanelColumns = 64;  ///< columns of a panel: a row of it is 128 bytes

/// A tile of kRows x kColumns bf16 with the 128-byte swizzle that wgmma and TMA understand. The columns are
/// cut into panels of 64; a row of a panel is 128 bytes, all 32 banks once, in eight chunks of 16 bytes.
/// Chunk c of row r is stored at c XOR (r % 8). Reading a row stays contiguous, and eight rows of one column,
/// which ldmatrix and wgmma read together, lie in eight different groups of banks, without padding.
template <int kTileRows, int kTileColumns>
struct alignas(1024) SwizzledTile {  // the swizzle is a function of address bits: 8 rows x 128 bytes
  static_assert(kTileRows % 8 == 0 && kTileColumns % 64 == 0);
  static constexpr int kRows = kTileRows, kColumns = kTileColumns;
  static constexpr int kChunk = 8;  ///< elements in 16 bytes
  static constexpr int kChunksPerRow = kColumns / kChunk;
  static constexpr int kChunks = kRows * kChunksPerRow;
  static constexpr int kPanels = kColumns / kPanelColumns;
  static constexpr int kPanelBytes = kRows * 128;

  __nv_bfloat16 panels[kPanels][kRows][kPanelColumns];

  /// The 16-byte chunk that holds (row, column) up to column + 7; column is a multiple of 8.
  __device__ __forceinline__ __nv_bfloat16* chunk(int row, int column) {
    return &panels[column / 64][row][((column / kChunk) ^ row) % 8 * kChunk];
  }
  __device__ __forceinline__ const __nv_bfloat16* chunk(int row, int column) const {
    return &panels[column / 64][row][((column / kChunk) ^ row) % 8 * kChunk];
  }
  /// One element.
  __device__ __forceinline__ __nv_bfloat16& at(int row, int column) {
    return chunk(row, column)[column % kChunk];
  }
  __device__ __forceinline__ const __nv_bfloat16& at(int row, int column) const {
    return chunk(row, column)[column % kChunk];
  }
};

}  // namespace ladder
