/// @file
/// What copies by threads and products take from each other, where both need the way to shared memory.
///
/// Half of a block's threads copy tiles, as lessons 02 and 03 do, the other half multiplies tiles of its own.
/// Nobody waits for the other half: what one takes longer beside the other is due to what they share.
#include <cuda_pipeline.h>

#include "common/device/shared_storage.cuh"
#include "common/device/tile_share.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/fill.hpp"
#include "common/parts/groups.hpp"
#include "common/parts/measured_gpu.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/named_barrier.cuh"

namespace ladder::parts {
namespace {

using TileA = SwizzledTile<128, 64>;
using TileB = SwizzledTile<64, 128>;
constexpr int kHalf = 2 * kWarpgroup;  ///< threads that copy, and threads that multiply
constexpr int kCopyBarrier = 1, kMultiplyBarrier = 2;
constexpr int kStepsOfRound = 8;  ///< copies; products where nobody copies

/// Blocks share rows of A and columns of B, as those of a product do: a tile comes from memory once.
constexpr int kRowsOfBlocks = 12, kColumnsOfBlocks = 11;
constexpr int kM = kRowsOfBlocks * TileA::kRows, kN = kColumnsOfBlocks * TileB::kColumns,
              kK = kRounds * kStepsOfRound * TileA::kColumns;

/// A [kM, kK] and B [kK, kN].
struct Operands {
  const __nv_bfloat16 *a, *b;
};

struct Tiles {
  TileA a;
  TileB b;
};
struct Storage {
  Tiles copied, multiplied;
  volatile int copied_rounds;
};

enum class Way { registers, async_through_l1, async };

template <Way kWay, class Share, class Tile>
__device__ __forceinline__ void start_copies(const Share& share, Tile& tile) {
  share.for_each([&](int i, const __nv_bfloat16* source, bool) {
    if constexpr (kWay == Way::async)
      __pipeline_memcpy_async(share.destination(tile, i), source, sizeof(uint4));
    else
      ptx::cp_async_ca_16(share.destination(tile, i), source);
  });
}

/// Copies a step's tiles, until all threads of this half have theirs.
template <Way kWay, class ShareA, class ShareB>
__device__ __forceinline__ void copy_step(const ShareA& a_share, const ShareB& b_share, Tiles& tiles) {
  if constexpr (kWay == Way::registers) {
    uint4 a[a_share.kChunks], b[b_share.kChunks];
    a_share.load(a);
    b_share.load(b);  // all loads are under way before the first store waits for one
    a_share.store(a, tiles.a);
    b_share.store(b, tiles.b);
  } else {
    start_copies<kWay>(a_share, tiles.a);
    start_copies<kWay>(b_share, tiles.b);
    __pipeline_commit();
    __pipeline_wait_prior(0);
  }
  ptx::named_barrier_sync(kCopyBarrier, kHalf);
}

/// Figure 0: the clocks of a copy. Figure 1: the clocks of a product that is waited for, and of a barrier.
/// What a half does not do takes one clock.
template <Way kWay>
__global__ void __launch_bounds__(2 * kHalf, 1)
    copy_beside_products(Notes notes, const Operands p, bool copies, bool multiplies) {
  auto& smem = shared_storage<Storage>();
  const int block_row = static_cast<int>(blockIdx.x) % kRowsOfBlocks,
            block_column = static_cast<int>(blockIdx.x) / kRowsOfBlocks;
  const bool is_copier = threadIdx.x < kHalf;
  if (threadIdx.x == 0) smem.copied_rounds = 0;
  if (is_copier) {
    TileShare<TileA, kHalf> a_share(p.a, kM, kK, block_row * TileA::kRows, 0);
    TileShare<TileB, kHalf> b_share(p.b, kK, kN, 0, block_column * TileB::kColumns);
    copy_step<Way::registers>(a_share, b_share, smem.multiplied);  // numbers, not zeros
    ptx::fence_proxy_async();
    __syncthreads();
    for (int round = 0; round < kRounds; ++round) {
      __syncthreads();
      const uint64_t begin = ptx::clock_cycles();
      for (int step = 0; copies && step < kStepsOfRound; ++step) {
        copy_step<kWay>(a_share, b_share, smem.copied);
        a_share.next_right();
        b_share.next_down();
      }
      const uint64_t clocks = ptx::clock_cycles() - begin;
      if (threadIdx.x == 0) {
        smem.copied_rounds = round + 1;
        notes.add(0, round, copies ? static_cast<float>(clocks) / kStepsOfRound : 1);
      }
      __syncthreads();
    }
  } else {
    WgmmaCore<TileB::kColumns> core;
    clear(core.d);
    const int my_rows = 64 * (warpgroup_index() - kHalf / kWarpgroup);
    __syncthreads();
    for (int round = 0; round < kRounds; ++round) {
      __syncthreads();
      const uint64_t begin = ptx::clock_cycles();
      int products = 0;
      for (bool more = multiplies; more; ++products) {
        core.start(smem.multiplied.a, my_rows, smem.multiplied.b, false);
        core.finish();
        const bool is_last = copies ? smem.copied_rounds > round : products + 1 == kStepsOfRound;
        more = !ptx::named_barrier_or(kMultiplyBarrier, kHalf, is_last);
      }
      const uint64_t clocks = ptx::clock_cycles() - begin;
      if (threadIdx.x == kHalf)
        notes.add(1, round, multiplies ? static_cast<float>(clocks) / static_cast<float>(products) : 1);
      __syncthreads();
    }
    float sum = 0;  // ptxas leaves out products whose sums nobody needs
    for (const float one : core.d) sum += one;
    if (sum == 1.25f) notes.add(1, kWarmUp, sum);
  }
}

template <Way kWay>
void add_ways(const AddRow& add, const char* way, const Operands& operands) {
  const LaunchConfig config = {.name = "copy_beside_products",
                               .grid = dim3(kRowsOfBlocks * kColumnsOfBlocks),
                               .block = dim3(2 * kHalf),
                               .shared_bytes = sizeof(Storage)};
  const auto rows = [&](bool copies, bool multiplies) {
    empty_l2();
    lower_the_clock();  // else copies alone would have a higher clock than copies beside products
    const auto [clocks, mhz] =
        measured_with_clock(2, copy_beside_products<kWay>, config, operands, copies, multiplies);
    const auto row = [&](const char* what, const char* beside, const Quartiles& of_one, double ideal) {
      add({"path", {{"way", way}, {"what", what}, {"beside", beside}}, of_one, sizeof(Tiles), ideal, mhz});
    };
    if (copies) row("a copy", multiplies ? "beside products" : "alone", clocks[0], 0);
    if (multiplies) row("a product", copies ? "beside copies" : "alone", clocks[1], 512);
  };
  rows(true, false);
  rows(false, true);
  rows(true, true);
}

}  // namespace

void measure_shared_path(const AddRow& add) {
  if (device_info().multiprocessors < kRowsOfBlocks * kColumnsOfBlocks) return;  // they would take turns
  DeviceBuffer<__nv_bfloat16> a(size_t{kM} * kK), b(size_t{kK} * kN);
  fill(a.data(), a.size(), NormalValues{1});
  fill(b.data(), b.size(), NormalValues{2});
  const Operands operands = {a.data(), b.data()};
  add_ways<Way::registers>(add, "through registers", operands);
  add_ways<Way::async_through_l1>(add, "cp.async through L1", operands);
  add_ways<Way::async>(add, "cp.async", operands);
}

}  // namespace ladder::parts
