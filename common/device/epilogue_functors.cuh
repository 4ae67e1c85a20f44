/// @file
/// What a kernel does to a sum of products before it rounds it to bf16 and stores it.
///
/// An epilogue is a functor with two functions:
///   bias_pair(column)   what it adds in this column of C and the next; column is even
///   operator()(sum, bias) the element of C
#pragma once
#include <cuda_bf16.h>

#include <string_view>

#include "common/ptx/tanh.cuh"

namespace ladder {

/// C = A · B, as it is. Compiles to no instruction.
struct Identity {
  /// The bias of a column and of the next one.
  __device__ __forceinline__ float2 bias_pair(int) const { return {0, 0}; }
  __device__ __forceinline__ float operator()(float sum, float) const { return sum; }
};

/// max(x, 0).
struct Relu {
  __device__ __forceinline__ float operator()(float x) const { return x > 0 ? x : 0; }
};

/// The tanh form of GELU (Hendrycks, Gimpel 2016): x/2 · (1 + tanh(sqrt(2/pi) · (x + 0.044715 x^3))).
struct Gelu {
  __device__ __forceinline__ float operator()(float x) const {
    constexpr float kSqrt2OverPi = 0.7978845608f, kCubic = 0.044715f;
    const float half = 0.5f * x;
    return half + half * ptx::tanh_approx(x * (kSqrt2OverPi + kSqrt2OverPi * kCubic * x * x));
  }
};

/// activation(A · B + bias): bias is a bf16 vector of n elements in global memory, one for each column of C;
/// n is even.
template <class Activation>
struct BiasThen {
  const __nv_bfloat16* bias;
  int n;

  __device__ __forceinline__ float2 bias_pair(int column) const {
    if (column >= n) return {0, 0};  // a tile may stick out of C
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(bias + column));
  }
  __device__ __forceinline__ float operator()(float sum, float bias_of_column) const {
    return Activation{}(sum + bias_of_column);
  }
};

/// On the host: calls visit(epilogue) with the functor of that name, one of "none", "bias_relu", "bias_gelu".
template <class Visit>
void visit_epilogue(std::string_view name, const __nv_bfloat16* bias, int n, const Visit& visit) {
  if (name == "none") visit(Identity());
  if (name == "bias_relu") visit(BiasThen<Relu>{bias, n});
  if (name == "bias_gelu") visit(BiasThen<Gelu>{bias, n});
}

}  // namespace ladder
