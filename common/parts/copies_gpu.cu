/// @file
/// What 256 threads take to bring a tile of 128 x 64 to shared memory without TMA: through registers, as in
/// lesson 02, and by cp.async, as in lesson 03.
#include <cuda_pipeline.h>

#include "common/device/shared_storage.cuh"
#include "common/device/tile_share.cuh"
#include "common/parts/groups.hpp"
#include "common/parts/measured_gpu.cuh"

namespace ladder::parts {
namespace {

using Tile = SwizzledTile<128, 64>;
constexpr int kThreads = 2 * kWarpgroup;
constexpr int kTilesApart = 8;  // a block's tiles: 128 KB in L2
constexpr int kColumns = kTilesApart * Tile::kColumns;

/// The blocks' tiles lie below each other in the matrix [rows, kColumns].
template <int kTiles>
struct CopyStorage {
  Tile tiles[kTiles];
};

/// Figure 0: until this thread has asked for its chunks. Figure 1: until all threads have theirs.
template <int kTiles>
__global__ void __launch_bounds__(kThreads) copy_async(Notes notes, const __nv_bfloat16* matrix, int rows) {
  auto& smem = shared_storage<CopyStorage<kTiles>>();
  for (int round = 0; round < kRounds; ++round) {
    TileShare<Tile, kThreads> share(matrix, rows, kColumns, static_cast<int>(blockIdx.x) * Tile::kRows,
                                    round * kTiles % kTilesApart * Tile::kColumns);
    __syncthreads();
    const uint64_t begin = ptx::clock_cycles();
#pragma unroll
    for (Tile& tile : smem.tiles) {
      share.for_each([&](int i, const __nv_bfloat16* source, int) {
        __pipeline_memcpy_async(share.destination(tile, i), source, sizeof(uint4));
      });
      share.next_right();
    }
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
template <int kTiles>
__global__ void __launch_bounds__(kThreads)
    copy_through_registers(Notes notes, const __nv_bfloat16* matrix, int rows) {
  using Share = TileShare<Tile, kThreads>;
  auto& smem = shared_storage<CopyStorage<kTiles>>();
  for (int round = 0; round < kRounds; ++round) {
    Share share(matrix, rows, kColumns, static_cast<int>(blockIdx.x) * Tile::kRows,
                round * kTiles % kTilesApart * Tile::kColumns);
    __syncthreads();
    const uint64_t begin = ptx::clock_cycles();
    uint4 chunks[kTiles][Share::kChunks];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      share.template load<true>(chunks[tile]);
      share.next_right();
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) share.store(chunks[tile], smem.tiles[tile]);
    __syncthreads();
    const uint64_t stored = ptx::clock_cycles();
    if (threadIdx.x == 0) notes.add(0, round, static_cast<float>(stored - begin));
  }
}

template <int kTiles>
void add_copies(const AddRow& add, const __nv_bfloat16* matrix, int rows) {
  constexpr int kBytes = sizeof(CopyStorage<kTiles>);
  for (const Blocks& blocks : alone_and_everywhere()) {
    const LaunchConfig config = {
        .name = "copy", .grid = dim3(blocks.count), .block = dim3(kThreads), .shared_bytes = kBytes};
    const auto row = [&](const char* way, const Quartiles& clocks) {
      add({"copy", {{"way", way}, {"size", kilobytes(kBytes)}, {"blocks", blocks.name}}, clocks, kBytes});
    };
    const auto async = measured(2, copy_async<kTiles>, config, matrix, rows);
    row("cp.async, asked for", async[0]);
    row("cp.async, landed", async[1]);
    row("through registers", measured(1, copy_through_registers<kTiles>, config, matrix, rows)[0]);
  }
}

}  // namespace

void measure_copies(const AddRow& add) {
  const int rows = device_info().multiprocessors * Tile::kRows;
  DeviceBuffer<__nv_bfloat16> matrix(static_cast<size_t>(rows) * kColumns);
  fill_on_device(matrix.data(), 0, matrix.size() * sizeof(__nv_bfloat16));
  add_copies<1>(add, matrix.data(), rows);
  add_copies<2>(add, matrix.data(), rows);  // as much as a step of lessons 02 and 03
}

}  // namespace ladder::parts
