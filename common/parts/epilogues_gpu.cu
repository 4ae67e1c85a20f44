/// @file
/// What lessons 04 and 05 do with a tile of sums, cut into its pieces: conversion and stmatrix, fence and
/// barrier, and the TMA store until the staging tile has been read, and until all is written.
#include "common/cuda/tensor_map.hpp"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/staged_epilogue.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/parts/groups.hpp"
#include "common/parts/measured_gpu.cuh"
#include "common/ptx/tma.cuh"

namespace ladder::parts {
namespace {

constexpr int kRows = 128, kThreads = 2 * kWarpgroup;
enum Figure { kStage, kPublish, kRead, kWritten, kFigures };

template <int kN>
__global__ void __launch_bounds__(kThreads, 1)
    store_tile(Notes notes, const __grid_constant__ CUtensorMap map) {
  auto& staging = shared_storage<SwizzledTile<kRows, kN>>();
  float d[kN / 2];
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) d[i] = static_cast<float>(threadIdx.x + i);
  const int my_rows = 64 * warpgroup_index();
  for (int round = 0; round < kRounds; ++round) {
    ptx::keep_in_registers(d);  // the sums of a new tile
    __syncthreads();
    const uint64_t begin = ptx::clock_cycles();
    stage_fragment(d, 0, staging, my_rows);
    const uint64_t staged = ptx::clock_cycles();
    ptx::fence_proxy_async();
    __syncthreads();
    const uint64_t published = ptx::clock_cycles();
    if (threadIdx.x == 0) {
      for (int column = 0; column < kN; column += 64)
        ptx::tma_store(&map, &staging.panels[column / 64], column, static_cast<int>(blockIdx.x) * kRows);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<0>();
      const uint64_t read = ptx::clock_cycles();
      ptx::tma_store_wait<0>();
      const uint64_t written = ptx::clock_cycles();
      notes.add(kStage, round, static_cast<float>(staged - begin));
      notes.add(kPublish, round, static_cast<float>(published - staged));
      notes.add(kRead, round, static_cast<float>(read - published));
      notes.add(kWritten, round, static_cast<float>(written - published));
    }
  }
}

/// Figure 0: until the last of kPieces pieces has been staged and handed over. Figure 1: until all is
/// written.
template <int kPieces>
__global__ void __launch_bounds__(kThreads, 1)
    store_pieces(Notes notes, const __grid_constant__ CUtensorMap map) {
  constexpr int kN = 128, kPieceN = kN / kPieces;
  auto& staging = shared_storage<SwizzledTile<kRows, kPieceN>[kPieces]>();
  float d[kN / 2];
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) d[i] = static_cast<float>(threadIdx.x + i);
  const int my_rows = 64 * warpgroup_index();
  for (int round = 0; round < kRounds; ++round) {
    ptx::keep_in_registers(d);
    __syncthreads();
    const uint64_t begin = ptx::clock_cycles();
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      stage_fragment(d, piece * kPieceN, staging[piece], my_rows);
      ptx::fence_proxy_async();
      __syncthreads();
      if (threadIdx.x != 0) continue;
      for (int column = 0; column < kPieceN; column += 64)
        ptx::tma_store(&map, &staging[piece].panels[column / 64], piece * kPieceN + column,
                       static_cast<int>(blockIdx.x) * kRows);
      ptx::tma_store_commit();
    }
    const uint64_t staged = ptx::clock_cycles();
    if (threadIdx.x != 0) continue;
    ptx::tma_store_wait<0>();
    const uint64_t written = ptx::clock_cycles();
    notes.add(0, round, static_cast<float>(staged - begin));
    notes.add(1, round, static_cast<float>(written - begin));
  }
}

/// Figure 0: until all threads have asked for their stores, straight from registers, as in lessons 02 and 03.
template <int kN>
__global__ void __launch_bounds__(kThreads, 1) store_from_registers(Notes notes, __nv_bfloat16* c, int rows) {
  float d[kN / 2];
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) d[i] = static_cast<float>(threadIdx.x + i);
  const int first_row = static_cast<int>(blockIdx.x) * kRows + 64 * warpgroup_index();
  for (int round = 0; round < kRounds; ++round) {
    ptx::keep_in_registers(d);
    __syncthreads();
    const uint64_t begin = ptx::clock_cycles();
    store_fragment(d, c, first_row, 0, rows, kN);
    __syncthreads();
    const uint64_t stored = ptx::clock_cycles();
    if (threadIdx.x == 0) notes.add(0, round, static_cast<float>(stored - begin));
  }
}

template <int kN>
void add_epilogue(const AddRow& add) {
  const int rows = device_info().multiprocessors * kRows;
  DeviceBuffer<__nv_bfloat16> c(static_cast<size_t>(rows) * kN);
  const CUtensorMap map = make_tensor_map(c.data(), rows, kN, kRows, 64);
  for (const Blocks& blocks : alone_and_everywhere()) {
    const LaunchConfig config = {.name = "store_tile",
                                 .grid = dim3(blocks.count),
                                 .block = dim3(kThreads),
                                 .shared_bytes = sizeof(SwizzledTile<kRows, kN>)};
    const auto clocks = measured(kFigures, store_tile<kN>, config, map);
    const char* const pieces[] = {"conversion and stmatrix", "fence and barrier", "store until read",
                                  "store until written"};
    for (int piece = 0; piece < kFigures; ++piece)
      add({"epilogue",
           {{"tile", "128 x " + std::to_string(kN)}, {"piece", pieces[piece]}, {"blocks", blocks.name}},
           clocks[piece],
           piece == kPublish ? 0.0 : kRows * kN * sizeof(__nv_bfloat16)});
    if constexpr (kN == 128)
      add({"epilogue",
           {{"tile", "128 x 128"}, {"piece", "stores from registers"}, {"blocks", blocks.name}},
           measured(1, store_from_registers<kN>, config, c.data(), rows)[0],
           kRows * kN * sizeof(__nv_bfloat16)});
  }
}

template <int kPieces>
void add_pieces(const AddRow& add) {
  constexpr int kN = 128;
  const int rows = device_info().multiprocessors * kRows;
  DeviceBuffer<__nv_bfloat16> c(static_cast<size_t>(rows) * kN);
  const CUtensorMap map = make_tensor_map(c.data(), rows, kN, kRows, 64);
  for (const Blocks& blocks : alone_and_everywhere()) {
    const auto clocks = measured(2, store_pieces<kPieces>,
                                 {.name = "store_pieces",
                                  .grid = dim3(blocks.count),
                                  .block = dim3(kThreads),
                                  .shared_bytes = sizeof(SwizzledTile<kRows, kN>)},
                                 map);
    for (const int figure : {0, 1})
      add({"pieces",
           {{"pieces", std::to_string(kPieces)},
            {"until", figure == 0 ? "handed over" : "written"},
            {"blocks", blocks.name}},
           clocks[figure],
           kRows * kN * sizeof(__nv_bfloat16)});
  }
}

}  // namespace

void measure_pieces(const AddRow& add) {
  add_pieces<1>(add);
  add_pieces<2>(add);
}

void measure_epilogues(const AddRow& add) {
  add_epilogue<128>(add);
  add_epilogue<256>(add);
}

}  // namespace ladder::parts
