/// @file
/// Exercise 02.2: add a bias while the sums are still in registers.
///
/// Lesson 02's kernel ends with store_sums(), which rounds the sums and stores them. A bias could be
/// added by another kernel, which would read and write all of C again. Write the epilogue that adds it on the
/// way: which element of C does each of a thread's 32 sums belong to?
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/cores.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/thread_ids.cuh"

namespace exercise {

constexpr ladder::TileShape kTile{64, 64, 64};
/// Each warp multiplies 16 rows.
using Core = ladder::MmaSyncCore<kTile.n, 16, kTile.n>;
constexpr int kSums = 32;  ///< that each of the 128 threads holds: Core::d

/// C [m, n], row-major.
struct Output {
  __nv_bfloat16* c;
  int m, n;
};

/// One element for each column of C. There is none after the last column, and nothing may be read there.
class Bias {
 public:
  __device__ explicit Bias(const __nv_bfloat16* elements) : elements_(elements) {}

  __device__ float of(int column) const { return __bfloat162float(__ldg(&elements_[column])); }

 private:
  const __nv_bfloat16* elements_;
};

/// Stores d + bias, rounded once to bf16, at (first_row, first_column) of C. What lies outside of C is left
/// out. The head of common/device/cores.cuh says which element d[i] of a thread is.
__device__ inline void store_with_bias(const float (&d)[kSums], const Output& out, const Bias& bias,
                                       int first_row, int first_column) {
  // Read docs/concepts/tensor_core_fragments.md and common/device/cores.cuh.
  // >>> yours
  (void)d, (void)out, (void)bias, (void)first_row, (void)first_column;
  // <<<
}

struct SharedStorage {
  ladder::SwizzledTile<kTile.m, kTile.k> a;
  ladder::SwizzledTile<kTile.k, kTile.n> b;
};

/// c = a · b + bias, a tile of C for each block; k is 64.
__global__ void gemm(const ladder::Gemm p) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const int first_row = blockIdx.y * kTile.m, first_column = blockIdx.x * kTile.n;
  const __nv_bfloat16 zero = __float2bfloat16(0);
  for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) {
    const int row = i / 64, column = i % 64;
    smem.a.at(row, column) = first_row + row < p.m ? p.a[(first_row + row) * p.k + column] : zero;
    smem.b.at(row, column) = first_column + column < p.n ? p.b[row * p.n + first_column + column] : zero;
  }
  __syncthreads();
  Core core;
  core.start(smem.a, 0, smem.b, true);
  core.finish<0>();
  store_with_bias(core.d, {p.c, p.m, p.n}, Bias(p.bias), first_row, first_column);
}

inline void launch_gemm(const ladder::Gemm& p) {
  ladder::launch(gemm,
                 {.name = "bias_epilogue",
                  .grid = dim3(ladder::tiles_over(p.n, kTile.n), ladder::tiles_over(p.m, kTile.m)),
                  .block = dim3(ladder::kWarpgroup),
                  .shared_bytes = sizeof(SharedStorage)},
                 p);
}

}  // namespace exercise
