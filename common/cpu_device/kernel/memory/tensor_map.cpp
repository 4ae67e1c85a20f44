/// @file
/// Encodes tensor maps as the driver would, and knows where the bytes of their boxes are.
#include "common/cpu_device/kernel/tensor_map.hpp"

#include <algorithm>
#include <cstring>

#include "common/cpu_device/declarations/driver_api.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"

namespace cpu_device {
namespace {

uint32_t element_bytes(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 8;
  }
  return 0;
}

/// The driver's rules for a map of two dimensions.
bool is_valid(const TensorMap& map) {
  constexpr uint64_t kMaxExtent = uint64_t{1} << 32, kMaxStride = uint64_t{1} << 40;
  const auto in_range = [](uint64_t value, uint64_t most) { return value >= 1 && value <= most; };
  const uint32_t row_bytes = map.box_columns * map.element_bytes;
  return map.element_bytes && reinterpret_cast<uintptr_t>(map.base) % 16 == 0 && map.base &&
         in_range(map.columns, kMaxExtent) && in_range(map.rows, kMaxExtent) && map.row_stride % 16 == 0 &&
         in_range(map.row_stride, kMaxStride - 1) && in_range(map.box_columns, kMaxBoxExtent) &&
         in_range(map.box_rows, kMaxBoxExtent) && row_bytes % kTmaChunkBytes == 0 &&
         (!map.swizzled || row_bytes <= kSwizzleRowBytes);
}

}  // namespace

uint32_t TmaBox::shared_bytes() const {
  return map.swizzled ? (bytes() + kSwizzleRowBytes - 1) / kSwizzleRowBytes * kSwizzleRowBytes : bytes();
}

uint32_t TmaBox::chunk_offset(uint32_t box_row, uint32_t byte) const {
  const uint32_t address = kSharedWindowBase + shared_offset + box_row * row_bytes() + byte;
  const uint32_t swizzled = map.swizzled ? address ^ (address >> 3 & 0x70) : address;
  return swizzled - kSharedWindowBase;
}

TmaBox::Piece TmaBox::inside(uint32_t box_row) const {
  const int64_t tensor_row = int64_t{row} + box_row;
  const int64_t first = std::max<int64_t>(column, 0);
  const int64_t end = std::min(int64_t{column} + map.box_columns, static_cast<int64_t>(map.columns));
  if (tensor_row < 0 || tensor_row >= static_cast<int64_t>(map.rows) || first >= end) return {};
  return {map.base + static_cast<uint64_t>(tensor_row) * map.row_stride +
              static_cast<uint64_t>(first) * map.element_bytes,
          static_cast<uint32_t>(first - column) * map.element_bytes,
          static_cast<uint32_t>(end - first) * map.element_bytes};
}

uint32_t TmaBox::bytes_inside() const {
  uint32_t bytes = 0;
  for (uint32_t r = 0; r < map.box_rows; ++r) bytes += inside(r).bytes;
  return bytes;
}

}  // namespace cpu_device

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill fill) {
  static_assert(sizeof(cpu_device::TensorMap) <= sizeof(CUtensorMap));
  if (!map || reinterpret_cast<uintptr_t>(map) % alignof(CUtensorMap) || rank != 2 || !extents || !strides ||
      !box || !element_strides || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
      fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || element_strides[0] != 1 || element_strides[1] != 1 ||
      (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && swizzle != CU_TENSOR_MAP_SWIZZLE_128B)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  cpu_device::TensorMap encoded;
  encoded.tag = cpu_device::kTensorMapTag;
  encoded.base = static_cast<std::byte*>(base);
  encoded.columns = extents[0];
  encoded.rows = extents[1];
  encoded.row_stride = strides[0];
  encoded.box_columns = box[0];
  encoded.box_rows = box[1];
  encoded.element_bytes = cpu_device::element_bytes(type);
  encoded.swizzled = swizzle == CU_TENSOR_MAP_SWIZZLE_128B;
  if (!cpu_device::is_valid(encoded)) return CUDA_ERROR_INVALID_VALUE;
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, &encoded, sizeof encoded);
  return CUDA_SUCCESS;
}
