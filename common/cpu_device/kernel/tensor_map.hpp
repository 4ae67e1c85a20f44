/// @file
/// What is in a CUtensorMap of the CPU device, and the boxes that TMA copies with it. Private to the engine.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cpu_device {

constexpr uint32_t kMaxTensorDimensions = 5;

/// A tensor in global memory, and the boxes into which its copies are cut. The elements of dimension 0 are
/// adjacent. Fits into a CUtensorMap.
struct TensorMap {
  uint64_t tag = 0;  ///< kTensorMapTag, in every map that was encoded
  std::byte* base = nullptr;
  uint64_t extents[kMaxTensorDimensions] = {1, 1, 1, 1, 1};
  uint64_t strides[kMaxTensorDimensions - 1] = {};  ///< in bytes, of dimensions 1 to 4
  uint16_t box[kMaxTensorDimensions] = {1, 1, 1, 1, 1};
  uint8_t dimensions = 0, element_bytes = 0;
  uint8_t type = 0;          ///< CUtensorMapDataType
  uint8_t swizzle_bits = 0;  ///< of an address that the swizzle changes: 0, 0x10, 0x30, 0x70
};
constexpr uint64_t kTensorMapTag = 0x70616d20726f736e;

/// A box that TMA copies. `coordinates` are those of its first element and may lie outside the tensor. In
/// shared memory the rows of dimension 0 are contiguous.
struct TmaBox {
  TensorMap map;
  int coordinates[kMaxTensorDimensions] = {};
  uint32_t shared_offset = 0;
  bool is_bulk = false;  ///< no tensor map, but bytes that follow each other

  uint32_t row_bytes() const { return uint32_t{map.box[0]} * map.element_bytes; }
  uint32_t rows() const { return uint32_t{map.box[1]} * map.box[2] * map.box[3] * map.box[4]; }
  /// What a whole box counts at its mbarrier, zeros included.
  uint32_t bytes() const { return row_bytes() * rows(); }
  /// Bytes of shared memory from shared_offset on among which the swizzle moves those of the box.
  uint32_t shared_bytes() const;
  /// Offset in shared memory of 16 bytes of the box, `byte` bytes into a row.
  uint32_t chunk_offset(uint32_t box_row, uint32_t byte) const;

  /// The part of a row that lies inside the tensor; empty if no part does.
  struct Piece {
    std::byte* global = nullptr;
    uint32_t first_byte = 0, bytes = 0;  ///< in the row
  };
  Piece inside(uint32_t box_row) const;
  /// The sum over all rows.
  uint32_t bytes_inside() const;
};

/// The box of `bytes` bytes at `global`, a multiple of 16.
TmaBox make_bulk_box(const void* global, uint32_t bytes);

constexpr uint32_t kTmaChunkBytes = 16;
constexpr uint32_t kMaxBoxExtent = 256;
constexpr uint32_t kMaxBoxRowBytes = kMaxBoxExtent * 8;

}  // namespace cpu_device
