/// @file
/// What the fused dual GEMM is compared with does this in a kernel of its own: two matrices are read, one is
/// written.
#pragma once
#include "05_ws_double_buffer/variants/separate_epilogue.cuh"

namespace lesson05::dual {

/// C[row][j] = combine(gate[row][j], up[row][j]). A thread does 8 elements; n is a multiple of 8.
/// @param stride elements from one row of `gate` and `up` to the next; those of C have n
template <class Combine>
__global__ void __launch_bounds__(kElementwiseThreads)
    fold(const __nv_bfloat16* const gate, const __nv_bfloat16* const up, const int stride,
         __nv_bfloat16* const c, const int chunks, const int chunks_per_row, const Combine combine) {
  const int chunk = static_cast<int>(blockIdx.x * kElementwiseThreads + threadIdx.x);
  if (chunk >= chunks) return;
  const size_t place = size_t(chunk / chunks_per_row) * stride + chunk % chunks_per_row * kElementsPerThread;
  uint4 packed_gate = *reinterpret_cast<const uint4*>(gate + place);
  const uint4 packed_up = *reinterpret_cast<const uint4*>(up + place);
  auto* const gates = reinterpret_cast<__nv_bfloat162*>(&packed_gate);
  const auto* const ups = reinterpret_cast<const __nv_bfloat162*>(&packed_up);
#pragma unroll
  for (int i = 0; i < kElementsPerThread / 2; ++i) {
    const float2 g = __bfloat1622float2(gates[i]), u = __bfloat1622float2(ups[i]);
    gates[i] = __floats2bfloat162_rn(combine(g.x, u.x), combine(g.y, u.y));
  }
  reinterpret_cast<uint4*>(c)[chunk] = packed_gate;
}

/// C [m, n] = combine(gate, up), whose rows are `stride` elements apart, in a kernel of its own; n is a
/// multiple of 8.
template <class Combine>
void launch_fold(const __nv_bfloat16* gate, const __nv_bfloat16* up, int stride, const ladder::Gemm& p,
                 const Combine& combine, cudaStream_t stream) {
  const int chunks_per_row = p.n / kElementsPerThread, chunks = p.m * chunks_per_row;
  ladder::launch(fold<Combine>,
                 {.name = "05_separate_fold",
                  .grid = dim3(ladder::tiles_over(chunks, kElementwiseThreads)),
                  .block = dim3(kElementwiseThreads),
                  .stream = stream},
                 gate, up, stride, p.c, chunks, chunks_per_row, combine);
}

}  // namespace lesson05::dual
