/// @file
/// The same epilogue as a kernel of its own: what a fused one is compared with. C is written, read and
/// written again, and rounded twice.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/epilogue_functors.cuh"
#include "common/device/tile_shape.cuh"
#include "common/host/problem/lesson.hpp"

namespace lesson05 {

constexpr int kElementwiseThreads = 256;
constexpr int kElementsPerThread = 8;  ///< 16 bytes

/// C = epilogue(C), in place. n is a multiple of 8, so that what a thread changes lies in one row.
template <class Epilogue>
__global__ void __launch_bounds__(kElementwiseThreads)
    apply_epilogue(__nv_bfloat16* const c, const int chunks, const int chunks_per_row,
                   const Epilogue epilogue) {
  const int chunk = static_cast<int>(blockIdx.x * kElementwiseThreads + threadIdx.x);
  if (chunk >= chunks) return;
  const int column = chunk % chunks_per_row * kElementsPerThread;
  uint4* const place = reinterpret_cast<uint4*>(c) + chunk;
  uint4 packed = *place;
  auto* const pairs = reinterpret_cast<__nv_bfloat162*>(&packed);
#pragma unroll
  for (int i = 0; i < kElementsPerThread / 2; ++i) {
    const float2 sums = __bfloat1622float2(pairs[i]), bias = epilogue.bias_pair(column + 2 * i);
    pairs[i] = __floats2bfloat162_rn(epilogue(sums.x, bias.x), epilogue(sums.y, bias.y));
  }
  *place = packed;
}

/// Replaces C [m, n] by epilogue(C), in a kernel of its own; n is a multiple of 8.
template <class Epilogue>
void launch_epilogue(const ladder::Gemm& p, const Epilogue& epilogue, cudaStream_t stream) {
  const int chunks_per_row = p.n / kElementsPerThread, chunks = p.m * chunks_per_row;
  ladder::launch(apply_epilogue<Epilogue>,
                 {.name = "05_separate_epilogue",
                  .grid = dim3(ladder::tiles_over(chunks, kElementwiseThreads)),
                  .block = dim3(kElementwiseThreads),
                  .stream = stream},
                 p.c, chunks, chunks_per_row, epilogue);
}

}  // namespace lesson05
