/// @file
/// What is in a CUtensorMap of the CPU device, and the boxes that TMA copies with it. Private to the engine.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cpu_device {

/// A row-major matrix in global memory, and the boxes into which its copies are cut. Fits into a CUtensorMap.
struct TensorMap {
  uint64_t tag = 0;  ///< kTensorMapTag, in every map that was encoded
  std::byte* base = nullptr;
  uint64_t columns = 0, rows = 0;
  uint64_t row_stride = 0;  ///< in bytes
  uint32_t box_columns = 0, box_rows = 0;
  uint32_t element_bytes = 0;
  bool swizzled = false;  ///< with the 128-byte swizzle
};
constexpr uint64_t kTensorMapTag = 0x70616d20726f736e;

/// The box of a tensor map whose first element is (row, column), either of which may lie outside, and its
/// place in shared memory, where rows follow each other without a gap.
struct TmaBox {
  TensorMap map;
  int column = 0, row = 0;
  uint32_t shared_offset = 0;

  uint32_t row_bytes() const { return map.box_columns * map.element_bytes; }
  /// What a whole box counts at its mbarrier, zeros included.
  uint32_t bytes() const { return row_bytes() * map.box_rows; }
  /// Bytes of shared memory from shared_offset on among which the swizzle moves those of the box.
  uint32_t shared_bytes() const;
  /// Offset in shared memory of 16 bytes of the box, `byte` bytes into a row.
  uint32_t chunk_offset(uint32_t box_row, uint32_t byte) const;

  /// What of a row of the box lies inside the tensor; empty where nothing does.
  struct Piece {
    std::byte* global = nullptr;
    uint32_t first_byte = 0, bytes = 0;  ///< in the row
  };
  Piece inside(uint32_t box_row) const;
  /// The sum over all rows.
  uint32_t bytes_inside() const;
};

constexpr uint32_t kTmaChunkBytes = 16;
constexpr uint32_t kMaxBoxExtent = 256;
constexpr uint32_t kMaxBoxRowBytes = kMaxBoxExtent * 8;

}  // namespace cpu_device
