/// @file
/// What attention computes: O = softmax(Q · K^T / sqrt(d)) · V, for each head.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <string>

namespace lesson05::attention {

constexpr int kDim = 128;  ///< of a head

/// How much there is to compute.
struct Extent {
  int batch, heads, kv_heads, length;
  bool causal;  ///< query i sees keys 0 to i, else all of them

  /// Multiplications and additions of both products; of a causal problem half, as papers count them.
  double flops() const;
  /// "length 512, 4 heads of which each 2 share K and V, batch 1, causal".
  std::string name() const;
  /// @throws std::invalid_argument naming the argument that breaks a rule
  void check() const;
};

/// Row-major bf16 arrays: q and o [batch, heads, length, kDim], k and v [batch, kv_heads, length, kDim]. Each
/// group of heads / kv_heads query heads that follow each other shares one head of K and V.
struct Attention : Extent {
  const __nv_bfloat16 *q, *k, *v;
  __nv_bfloat16* o;
};

/// K and V of a head are matrices of [length, kDim]; TMA fills with zero what lies outside of one.
struct TensorMaps {
  CUtensorMap q, k, v;
};

/// Describes the arrays to TMA, for tiles of `queries` rows of Q and `keys` rows of K and V.
/// @throws std::invalid_argument if TMA cannot describe them
TensorMaps make_tensor_maps(const Attention& p, int queries, int keys);

}  // namespace lesson05::attention
