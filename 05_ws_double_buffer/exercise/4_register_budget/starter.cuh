/// @file
/// Exercise 05.4: the registers of a new ratio of roles.
///
/// Here one warpgroup loads for four that compute: 640 threads are launched on an SM of 65,536 registers.
/// Each compute warpgroup multiplies 64 rows of A by 128 columns of B. At launch all threads have the same
/// number of registers, too few for those that compute. Choose what each role gets, and move the registers.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/cores.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace exercise {

constexpr int kComputeWarpgroups = 4, kWarpgroups = kComputeWarpgroups + 1;
constexpr int kRows = 64 * kComputeWarpgroups, kColumns = 128, kDepth = 64;
constexpr int kSlots = 2;
constexpr int kComputeThreads = kComputeWarpgroups * ladder::kWarpgroup;
constexpr int kThreads = kWarpgroups * ladder::kWarpgroup;
using Core = ladder::WgmmaCore<kColumns>;

/// Registers that a thread of each role needs; with fewer it would spill. Take it that the compiler has
/// counted 44 in a compute thread beside its sums.
constexpr int kLoaderNeeds = 26, kComputeNeeds = sizeof(Core::d) / sizeof(float) + 44;

// Read 05_ws_double_buffer/README.md and common/ptx/registers.cuh.
// >>> yours
constexpr int kLoaderRegisters = 0, kComputeRegisters = 0;

/// All threads of a block call it before their roles begin. The last warpgroup loads.
__device__ inline void share_registers() {}
// <<<

struct SharedStorage {
  ladder::SwizzledTile<kRows, kDepth> a[kSlots];
  ladder::SwizzledTile<kDepth, kColumns> b[kSlots];
  ladder::Pipeline<kSlots> pipe_lc;
};

struct TensorMaps {
  CUtensorMap a, b;
};

/// One thread of the last warpgroup.
__device__ inline void load_tiles(SharedStorage& smem, const TensorMaps& maps, int k_steps) {
  ladder::Producer<kSlots> pipe_lc(smem.pipe_lc);
  for (int step = 0; step < k_steps; ++step) {
    const int slot = pipe_lc.producer_acquire();
    auto* const full = pipe_lc.expect_bytes(sizeof(smem.a[slot]) + sizeof(smem.b[slot]));
    ptx::tma_load(&smem.a[slot], &maps.a, step * kDepth, 0, full);
    for (int column = 0; column < kColumns; column += 64)
      ptx::tma_load(&smem.b[slot].panels[column / 64], &maps.b, column, step * kDepth, full);
    pipe_lc.producer_commit_bytes();
  }
}

/// Each of the other warpgroups multiplies 64 rows.
__device__ inline void compute_tile(SharedStorage& smem, __nv_bfloat16* c, int k_steps) {
  const int my_rows = 64 * ladder::warpgroup_index();
  ladder::Consumer<kSlots> pipe_lc(smem.pipe_lc);
  Core core;
  for (int step = 0; step < k_steps; ++step) {
    const int slot = pipe_lc.consumer_wait();
    core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
    core.finish<0>();
    pipe_lc.consumer_release(threadIdx.x % ladder::kWarpgroup == 0);
  }
  ladder::store_fragment(core.d, c, my_rows, 0, kRows, kColumns);
}

/// c [kRows, kColumns] = a · b, with k_steps * kDepth columns of a; one block.
__global__ void __launch_bounds__(kThreads, 1)
    multiply(const __grid_constant__ TensorMaps maps, __nv_bfloat16* c, const int k_steps) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kComputeWarpgroups);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  share_registers();
  if (threadIdx.x < kComputeThreads)
    compute_tile(smem, c, k_steps);
  else if (threadIdx.x == kComputeThreads)
    load_tiles(smem, maps, k_steps);
}

inline void launch_multiply(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int k_steps) {
  ladder::launch(multiply,
                 {.name = "one_loads_for_four",
                  .grid = dim3(1),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage)},
                 TensorMaps{ladder::make_tensor_map(a, kRows, k_steps * kDepth, kRows, kDepth),
                            ladder::make_tensor_map(b, k_steps * kDepth, kColumns, kDepth, 64)},
                 c, k_steps);
}

}  // namespace exercise
