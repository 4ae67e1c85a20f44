/// @file
/// Exercise 02.4: start a wgmma yourself.
///
/// A warpgroup multiplies one tile of A by one tile of B. B lies transposed: both tiles have k contiguous, as
/// torch stores the weights of a linear layer. The threads have stored both tiles in shared memory; do all
/// that is left until the sums can be read. wgmma takes each operand by a 64-bit descriptor, whose bits you
/// put together here.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/device/tile_shape.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/wgmma.cuh"

namespace exercise {

constexpr ladder::TileShape kTile{64, 128, 128};  ///< of C = A · B: m, n, k
constexpr int kStep = 16;                         ///< of k, for one wgmma
constexpr int kSums = kTile.n / 2;                ///< that each of the 128 threads holds

struct SharedStorage {
  ladder::SwizzledTile<kTile.m, kTile.k> a;  ///< two panels of 64 columns of k, each with 64 rows
  ladder::SwizzledTile<kTile.n, kTile.k> b;  ///< B transposed: two panels of 64 columns of k, with 128 rows
};

/// d = A · B. Called by all 128 threads of the block, as soon as each has stored its part of both tiles; when
/// it returns, d may be read. Nothing is in d before. The descriptors are put together here, without
/// ptx::matrix_descriptor; ptx::shared_address(p) is the address of p that they want.
/// ptx::wgmma_m64n128k16<kBRowMajor> starts the product of one step of k.
__device__ inline void multiply(const SharedStorage& smem, float (&d)[kSums]) {
  // Read docs/concepts/tensor_core_fragments.md and common/ptx/wgmma.cuh.
  // >>> yours
  (void)smem;
  for (float& sum : d) sum = 0;
  // <<<
}

/// c [m, n] = a [m, k] · transposed b [n, k], all row-major.
__global__ void __launch_bounds__(ladder::kWarpgroup)
    gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const int k = threadIdx.x;  // a thread stores column k of both tiles
  for (int row = 0; row < kTile.m; ++row) smem.a.at(row, k) = a[row * kTile.k + k];
  for (int row = 0; row < kTile.n; ++row) smem.b.at(row, k) = b[row * kTile.k + k];
  float d[kSums];
  multiply(smem, d);
  ladder::store_fragment(d, c, 0, 0, kTile.m, kTile.n);
}

inline void launch_gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  ladder::launch(gemm,
                 {.name = "descriptor",
                  .grid = dim3(1),
                  .block = dim3(ladder::kWarpgroup),
                  .shared_bytes = sizeof(SharedStorage)},
                 a, b, c);
}

}  // namespace exercise
