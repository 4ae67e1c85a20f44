/// @file
/// What 256 threads take to bring the tiles of a step to shared memory without TMA: through registers, as in
/// lesson 02, and by cp.async, as in lesson 03.
#include <cuda_pipeline.h>

#include <algorithm>

#include "common/device/shared_storage.cuh"
#include "common/device/tile_share.cuh"
#include "common/parts/groups.hpp"
#include "common/parts/measured_gpu.cuh"

namespace ladder::parts {
namespace {

using TileA = SwizzledTile<128, 64>;
using TileB = SwizzledTile<64, 128>;
constexpr int kThreads = 2 * kWarpgroup;
/// Blocks share rows of A and columns of B, as those of a product do: a tile comes from memory once.
constexpr int kRowsOfBlocks = 12, kColumnsOfBlocks = 11;
constexpr int kM = kRowsOfBlocks * TileA::kRows, kN = kColumnsOfBlocks * TileB::kColumns,
              kK = kRounds * TileA::kColumns;

/// A [kM, kK] and B [kK, kN].
struct Operands {
  const __nv_bfloat16 *a, *b;
};

/// Lesson 02 and 03 bring one tile of each.
struct CopyStorage {
  TileA a;
  TileB b;
};

/// A thread's shares of both tiles of step `step`.
struct Shares {
  TileShare<TileA, kThreads> a;
  TileShare<TileB, kThreads> b;

  __device__ Shares(const Operands& p, int step)
      : a(p.a, kM, kK, static_cast<int>(blockIdx.x) % kRowsOfBlocks * TileA::kRows, step * TileA::kColumns),
        b(p.b, kK, kN, step * TileB::kRows, static_cast<int>(blockIdx.x) / kRowsOfBlocks * TileB::kColumns) {}
};

template <class Share, class Tile>
__device__ __forceinline__ void start_copies(const Share& share, Tile& tile) {
  share.for_each([&](int i, const __nv_bfloat16* source, bool) {
    __pipeline_memcpy_async(share.destination(tile, i), source, sizeof(uint4));
  });
}

/// Figure 0: until this thread has asked for its chunks. Figure 1: until all threads have theirs.
/// @param next_step from round to round: 0 stays in L2
template <bool kBoth>
__global__ void __launch_bounds__(kThreads) copy_async(Notes notes, const Operands p, int next_step) {
  auto& smem = shared_storage<CopyStorage>();
  for (int round = 0; round < kRounds; ++round) {
    const Shares shares(p, round * next_step);
    __syncthreads();
    const uint64_t begin = ptx::clock_cycles();
    start_copies(shares.a, smem.a);
    if constexpr (kBoth) start_copies(shares.b, smem.b);
    __pipeline_commit();
    const uint64_t asked = ptx::clock_cycles();
    __pipeline_wait_prior(0);
    __syncthreads();
    const uint64_t landed = ptx::clock_cycles();
    if (threadIdx.x != 0) continue;
    notes.add(0, round, static_cast<float>(asked - begin));
    notes.add(1, round, static_cast<float>(landed - begin));
  }
}

/// Figure 0: until all threads have stored their chunks.
template <bool kBoth>
__global__ void __launch_bounds__(kThreads)
    copy_through_registers(Notes notes, const Operands p, int next_step) {
  auto& smem = shared_storage<CopyStorage>();
  for (int round = 0; round < kRounds; ++round) {
    const Shares shares(p, round * next_step);
    __syncthreads();
    const uint64_t begin = ptx::clock_cycles();
    uint4 a[shares.a.kChunks], b[shares.b.kChunks];
    shares.a.load(a);
    if constexpr (kBoth) shares.b.load(b);  // all loads are under way before the first store waits for one
    shares.a.store(a, smem.a);
    if constexpr (kBoth) shares.b.store(b, smem.b);
    __syncthreads();
    const uint64_t stored = ptx::clock_cycles();
    if (threadIdx.x == 0) notes.add(0, round, static_cast<float>(stored - begin));
  }
}

template <bool kBoth>
void add_copies(const AddRow& add, const Operands& operands) {
  constexpr int kBytes = kBoth ? sizeof(CopyStorage) : sizeof(TileA);
  for (const Blocks& blocks : alone_and_everywhere())
    for (const bool in_l2 : {true, false}) {
      const LaunchConfig config = {.name = "copy",
                                   .grid = dim3(std::min(blocks.count, kRowsOfBlocks * kColumnsOfBlocks)),
                                   .block = dim3(kThreads),
                                   .shared_bytes = sizeof(CopyStorage)};
      const auto row = [&](const char* way, const Quartiles& clocks) {
        add({"copy",
             {{"way", way},
              {"size", kilobytes(kBytes)},
              {"blocks", blocks.name},
              {"from", in_l2 ? "L2" : "memory"}},
             clocks,
             kBytes});
      };
      const int next_step = in_l2 ? 0 : 1;
      if (!in_l2) empty_l2();
      const auto async = measured(2, copy_async<kBoth>, config, operands, next_step);
      if (in_l2) row("cp.async, asked for", async[0]);
      row("cp.async, landed", async[1]);
      if (!in_l2) empty_l2();
      row("through registers", measured(1, copy_through_registers<kBoth>, config, operands, next_step)[0]);
    }
}

}  // namespace

void measure_copies(const AddRow& add) {
  DeviceBuffer<__nv_bfloat16> a(size_t{kM} * kK), b(size_t{kK} * kN);
  const Operands operands = {a.data(), b.data()};
  add_copies<false>(add, operands);
  add_copies<true>(add, operands);  // a step of lessons 02 and 03
}

}  // namespace ladder::parts
