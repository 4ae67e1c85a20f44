/// @file
/// The rules of an attention problem, and its arrays as TMA knows them.
#include "05_ws_double_buffer/attention/problem.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <stdexcept>

#include "common/cuda/tensor_map_encoder.hpp"

namespace lesson05::attention {
namespace {

/// Of `matrices` matrices [length, kDim], boxes of rows x 64 columns, with the 128-byte swizzle.
CUtensorMap make_map(const char* name, const __nv_bfloat16* array, int matrices, int length, int rows) {
  static const ladder::TensorMapEncoder encode = ladder::tensor_map_encoder();
  if (reinterpret_cast<uintptr_t>(array) % 16)
    throw std::invalid_argument(fmt::format("{}: must begin at a multiple of 16 bytes", name));
  constexpr cuuint64_t kRowBytes = kDim * sizeof(__nv_bfloat16);
  const cuuint64_t extent[] = {kDim, cuuint64_t(length), cuuint64_t(matrices)};
  const cuuint64_t stride[] = {kRowBytes, kRowBytes * length};
  const cuuint32_t box[] = {64, cuuint32_t(rows), 1}, element_stride[] = {1, 1, 1};
  struct {  // as in common/cuda/tensor_map.cpp, so that it is aligned
    CUtensorMap map;
  } aligned;
  const CUresult result =
      encode(&aligned.map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<__nv_bfloat16*>(array), extent,
             stride, box, element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::invalid_argument(fmt::format("{}: TMA cannot describe {} matrices of {} x {} (error {})", name,
                                            matrices, length, kDim, static_cast<int>(result)));
  return aligned.map;
}

}  // namespace

double Extent::flops() const { return 4.0 * length * length * kDim * heads * batch * (causal ? 0.5 : 1); }

std::string Extent::name() const {
  return fmt::format("length {}, heads {}, K and V heads {}, batch {}, {}", length, heads, kv_heads, batch,
                     causal ? "causal" : "full");
}

void Extent::check() const {
  const struct {
    const char* name;
    int value;
  } counts[] = {{"--length", length}, {"--heads", heads}, {"--kv-heads", kv_heads}, {"--batch", batch}};
  for (const auto& [name, value] : counts)
    if (value < 1) throw std::invalid_argument(fmt::format("{} {}: must be at least 1", name, value));
  if (heads % kv_heads)
    throw std::invalid_argument(
        fmt::format("--kv-heads {}: must divide --heads, which is {}", kv_heads, heads));
  constexpr int64_t kMostRows = int64_t{1} << 30;
  if (int64_t{batch} * heads * length > kMostRows)
    throw std::invalid_argument(
        fmt::format("--length {}: with {} heads and batch {} there are more than {} rows", length, heads,
                    batch, kMostRows));
}

TensorMaps make_tensor_maps(const Attention& p, int queries, int keys) {
  p.check();
  return {make_map("q", p.q, p.batch * p.heads, p.length, queries),
          make_map("k", p.k, p.batch * p.kv_heads, p.length, keys),
          make_map("v", p.v, p.batch * p.kv_heads, p.length, keys)};
}

}  // namespace lesson05::attention
