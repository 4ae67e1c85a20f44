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

/// The driver's rules.
bool is_valid(const TensorMap& map) {
  constexpr uint64_t kMaxExtent = uint64_t{1} << 32, kMaxStride = uint64_t{1} << 40;
  const auto in_range = [](uint64_t value, uint64_t most) { return value >= 1 && value <= most; };
  for (unsigned d = 0; d < map.dimensions; ++d) {
    if (!in_range(map.extents[d], kMaxExtent) || !in_range(map.box[d], kMaxBoxExtent)) return false;
    if (d && (map.strides[d - 1] % 16 || !in_range(map.strides[d - 1], kMaxStride - 1))) return false;
  }
  const uint32_t row_bytes = uint32_t{map.box[0]} * map.element_bytes;
  return map.element_bytes && reinterpret_cast<uintptr_t>(map.base) % 16 == 0 && map.base &&
         row_bytes % kTmaChunkBytes == 0 &&
         (!map.swizzle_bits || row_bytes <= map.swizzle_bits + kTmaChunkBytes);
}

}  // namespace

uint32_t TmaBox::shared_bytes() const {
  const uint32_t line = map.swizzle_bits + kTmaChunkBytes;
  return (bytes() + line - 1) / line * line;
}

uint32_t TmaBox::chunk_offset(uint32_t box_row, uint32_t byte) const {
  const uint32_t address = kSharedWindowBase + shared_offset + box_row * row_bytes() + byte;
  return (address ^ (address >> 3 & map.swizzle_bits)) - kSharedWindowBase;
}

TmaBox::Piece TmaBox::inside(uint32_t box_row) const {
  const auto extent = static_cast<int64_t>(map.extents[0]);
  const int64_t first = std::max<int64_t>(coordinates[0], 0);
  const int64_t end = std::min(int64_t{coordinates[0]} + map.box[0], extent);
  if (first >= end) return {};
  std::byte* global = map.base + static_cast<uint64_t>(first) * map.element_bytes;
  for (unsigned d = 1; d < map.dimensions; ++d) {
    const int64_t at = int64_t{coordinates[d]} + box_row % map.box[d];
    if (at < 0 || at >= static_cast<int64_t>(map.extents[d])) return {};
    global += static_cast<uint64_t>(at) * map.strides[d - 1];
    box_row /= map.box[d];
  }
  return {global, static_cast<uint32_t>(first - coordinates[0]) * map.element_bytes,
          static_cast<uint32_t>(end - first) * map.element_bytes};
}

uint32_t TmaBox::bytes_inside() const {
  uint32_t bytes = 0;
  for (uint32_t r = 0; r < rows(); ++r) bytes += inside(r).bytes;
  return bytes;
}

TmaBox make_bulk_box(const void* global, uint32_t bytes) {
  TmaBox box;
  box.is_bulk = true;
  box.map.base = static_cast<std::byte*>(const_cast<void*>(global));
  box.map.dimensions = 2;
  box.map.element_bytes = 1;
  uint32_t row = kTmaChunkBytes;
  while (row < kMaxBoxRowBytes && bytes % (2 * row) == 0) row *= 2;
  box.map.box[0] = static_cast<uint16_t>(row);
  box.map.box[1] = static_cast<uint16_t>(bytes / row);
  box.map.extents[0] = box.map.strides[0] = row;
  box.map.extents[1] = bytes / row;
  return box;
}

}  // namespace cpu_device

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill fill) {
  static_assert(sizeof(cpu_device::TensorMap) <= sizeof(CUtensorMap));
  constexpr uint8_t kSwizzleBits[] = {0, 0x10, 0x30, 0x70};
  if (!map || reinterpret_cast<uintptr_t>(map) % alignof(CUtensorMap) || rank < 1 ||
      rank > cpu_device::kMaxTensorDimensions || !extents || (rank > 1 && !strides) || !box ||
      !element_strides || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
      fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
      static_cast<unsigned>(swizzle) > CU_TENSOR_MAP_SWIZZLE_128B) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  cpu_device::TensorMap encoded;
  encoded.tag = cpu_device::kTensorMapTag;
  encoded.base = static_cast<std::byte*>(base);
  encoded.dimensions = static_cast<uint8_t>(rank);
  for (cuuint32_t d = 0; d < rank; ++d) {
    if (element_strides[d] != 1 || box[d] > cpu_device::kMaxBoxExtent) return CUDA_ERROR_INVALID_VALUE;
    encoded.extents[d] = extents[d];
    encoded.box[d] = static_cast<uint16_t>(box[d]);
    if (d) encoded.strides[d - 1] = strides[d - 1];
  }
  encoded.type = static_cast<uint8_t>(type);
  encoded.element_bytes = static_cast<uint8_t>(cpu_device::element_bytes(type));
  encoded.swizzle_bits = kSwizzleBits[swizzle];
  if (!cpu_device::is_valid(encoded)) return CUDA_ERROR_INVALID_VALUE;
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, &encoded, sizeof encoded);
  return CUDA_SUCCESS;
}
