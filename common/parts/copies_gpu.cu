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

// At a pace: two blocks on a multiprocessor copy step after step along k, as those of lessons 02 and 03 do.
constexpr int kBlocksPerSm = 2, kStepsOfRound = 8;
constexpr int kPacedM = kBlocksPerSm * kM, kPacedK = kRounds * kStepsOfRound * TileA::kColumns;
enum Figure { kAsked, kLanded, kInterval, kFigures };

/// Figure kAsked: until a thread has asked for its chunks, by cp.async. kLanded: until all threads have
/// theirs. kInterval: from one copy of the multiprocessor to the next. A thread keeps kSums sums meanwhile.
/// @param pitch_of_a elements from a row to the next
/// @param every clocks from one copy of a block to its next, if no copy takes longer
template <bool kAsync, int kSums>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    copy_at_pace(Notes notes, const Operands p, int pitch_of_a, int pitch_of_b, int every) {
  auto& smem = shared_storage<CopyStorage>();
  float sums[kSums];
#pragma unroll
  for (int i = 0; i < kSums; ++i) sums[i] = static_cast<float>(threadIdx.x + i);
  constexpr int kBlocksDown = kPacedM / TileA::kRows;
  TileShare<TileA, kThreads> a_share(p.a, kPacedM, pitch_of_a,
                                     static_cast<int>(blockIdx.x) % kBlocksDown * TileA::kRows, 0);
  TileShare<TileB, kThreads> b_share(p.b, kPacedK, pitch_of_b, 0,
                                     static_cast<int>(blockIdx.x) / kBlocksDown * TileB::kColumns);
  const int late = 2 * blockIdx.x < gridDim.x ? 0 : every / kBlocksPerSm;
  uint64_t next = ptx::clock_cycles() + late;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t round_began = ptx::clock_cycles();
    uint64_t asked = 0, landed = 0;
    for (int step = 0; step < kStepsOfRound; ++step) {
#pragma unroll
      for (float& sum : sums) sum = sum * static_cast<float>(step) + static_cast<float>(every);
      while (ptx::clock_cycles() < next) continue;
      __syncthreads();
      const uint64_t begin = ptx::clock_cycles();
      next = begin + every;
      if constexpr (kAsync) {
        start_copies(a_share, smem.a);
        start_copies(b_share, smem.b);
        __pipeline_commit();
        asked += ptx::clock_cycles() - begin;
        __pipeline_wait_prior(0);
      } else {
        uint4 a[a_share.kChunks], b[b_share.kChunks];
        a_share.load(a);
        b_share.load(b);  // all loads are under way before the first store waits for one
        asked += ptx::clock_cycles() - begin;
        a_share.store(a, smem.a);
        b_share.store(b, smem.b);
      }
      __syncthreads();
      landed += ptx::clock_cycles() - begin;
      a_share.next_right();
      b_share.next_down();
    }
    if (threadIdx.x != 0) continue;
    const uint64_t round_took = ptx::clock_cycles() - round_began;
    notes.add(kAsked, round, static_cast<float>(asked) / kStepsOfRound);
    notes.add(kLanded, round, static_cast<float>(landed) / kStepsOfRound);
    notes.add(kInterval, round, static_cast<float>(round_took) / (kStepsOfRound * kBlocksPerSm));
  }
  float sum = 0;  // else ptxas would not keep them
#pragma unroll
  for (const float one : sums) sum += one;
  if (sum == 1.25f) notes.add(kAsked, kWarmUp, sum);
}

template <bool kAsync, int kSums>
void add_paced(const AddRow& add, const std::string& way, int straddle) {
  constexpr int kPitchA = kPacedK, kPitchB = kN;
  const int pitch_of_a = kPitchA + straddle, pitch_of_b = kPitchB + straddle;
  DeviceBuffer<__nv_bfloat16> a(size_t{kPacedM} * pitch_of_a), b(size_t{kPacedK} * pitch_of_b);
  const int blocks = kBlocksPerSm * kRowsOfBlocks * kColumnsOfBlocks;
  if (device_info().multiprocessors * kBlocksPerSm < blocks) return;  // they would take turns
  for (const int every : {0, 1600, 2000, 2400, 2800}) {
    empty_l2();
    const auto [clocks, mhz] =
        measured_with_clock(kFigures, copy_at_pace<kAsync, kSums>,
                            {.name = "copy_at_pace",
                             .grid = dim3(blocks),
                             .block = dim3(kThreads),
                             .shared_bytes = sizeof(CopyStorage)},
                            Operands{a.data(), b.data()}, pitch_of_a, pitch_of_b, every);
    const char* const figures[] = {"asked for", "landed", "interval"};
    for (const Figure figure : {kAsked, kLanded, kInterval})
      add({"paced",
           {{"way", way},
            {"size", kilobytes(sizeof(CopyStorage))},
            {"rows", straddle ? "straddling" : "whole lines"},
            {"every", std::to_string(every / kBlocksPerSm)},
            {"what", figures[figure]}},
           clocks[figure],
           sizeof(CopyStorage),
           0,
           mhz});
  }
}

}  // namespace

void measure_copies_at_pace(const AddRow& add) {
  for (const int straddle : {0, 8}) {
    add_paced<true, 64>(add, "cp.async", straddle);
    add_paced<false, 64>(add, "through registers", straddle);
    add_paced<false, 1>(add, "through registers without sums", straddle);
  }
}

void measure_copies(const AddRow& add) {
  DeviceBuffer<__nv_bfloat16> a(size_t{kM} * kK), b(size_t{kK} * kN);
  const Operands operands = {a.data(), b.data()};
  add_copies<false>(add, operands);
  add_copies<true>(add, operands);  // a step of lessons 02 and 03
}

}  // namespace ladder::parts
