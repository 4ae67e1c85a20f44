/// @file
/// The check of exercise 04.1: runs the kernel that the exercise describes, and compares its counts.
#include EXERCISE

#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace {

using ladder::exercise::expect_predicted, ladder::exercise::expect_predicted_parity;

constexpr int kTiles = 11, kSlots = 3, kReaders = 3, kBox = 64;
constexpr int kThreads = (kReaders + 1) * ladder::kWarp;

struct SharedStorage {
  ladder::SwizzledTile<kBox, kBox> a[kSlots];
  ladder::SwizzledTile<kBox, 2 * kBox> b[kSlots];
  ladder::Pipeline<kSlots> pipe_lc;
};

struct TensorMaps {
  CUtensorMap a, b;
};

/// Counts of the block; loader_arrivals and reader_waits count at `full` of slot 2.
struct Counts {
  int loader_arrivals, reader_waits;
  int releases[kSlots];
  int first_waits;  ///< waits of the loader that return before any release of the slot
  int bytes, boxes;
  int reader_parity, loader_parity;
};

__device__ void load_tiles(SharedStorage& smem, const TensorMaps& maps, Counts& counts) {
  ladder::RingPosition<kSlots> place;
  for (int tile = 0; tile < kTiles; ++tile, place.advance()) {
    const uint32_t parity = place.parity ^ 1;
    if (tile == 7) counts.loader_parity = parity;
    ptx::mbarrier_wait(&smem.pipe_lc.empty[place.slot], parity);
    if (counts.releases[place.slot] == 0) ++counts.first_waits;
    ptx::Mbarrier* const full = &smem.pipe_lc.full[place.slot];
    counts.bytes = sizeof(smem.a[0]) + sizeof(smem.b[0]);
    ptx::mbarrier_arrive_expect_bytes(full, counts.bytes);
    if (place.slot == 2) ++counts.loader_arrivals;
    const auto load = [&](void* to, const CUtensorMap& map, int column) {
      ptx::tma_load(to, &map, column, tile * kBox, full);
      ++counts.boxes;
    };
    load(&smem.a[place.slot], maps.a, 0);
    for (int panel = 0; panel < 2; ++panel) load(&smem.b[place.slot].panels[panel], maps.b, panel * kBox);
  }
}

__device__ void read_tiles(SharedStorage& smem, Counts& counts) {
  ladder::RingPosition<kSlots> place;
  for (int tile = 0; tile < kTiles; ++tile, place.advance()) {
    if (tile == 10 && threadIdx.x == 0) counts.reader_parity = place.parity;
    ptx::mbarrier_wait(&smem.pipe_lc.full[place.slot], place.parity);
    if (place.slot == 2 && threadIdx.x == 0) ++counts.reader_waits;
    __syncwarp();
    if (ladder::lane_index() != 0) continue;
    atomicAdd(&counts.releases[place.slot], 1);
    ptx::mbarrier_arrive(&smem.pipe_lc.empty[place.slot]);
  }
}

__global__ void __launch_bounds__(kThreads)
    move_tiles(const __grid_constant__ TensorMaps maps, Counts* counts) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kReaders);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < kReaders * ladder::kWarp)
    read_tiles(smem, *counts);
  else if (ladder::lane_index() == 0)
    load_tiles(smem, maps, *counts);
}

Counts count() {
  const int rows = kTiles * kBox - kBox / 2;  // half of the last tile lies below
  const ladder::DeviceBuffer<__nv_bfloat16> a(std::vector<__nv_bfloat16>(rows * kBox)),
      b(std::vector<__nv_bfloat16>(rows * 2 * kBox));
  ladder::DeviceBuffer<Counts> counts(std::vector<Counts>(1));
  ladder::launch(
      move_tiles,
      {.name = "counts", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)},
      TensorMaps{ladder::make_tensor_map(a.data(), rows, kBox, kBox, kBox),
                 ladder::make_tensor_map(b.data(), rows, 2 * kBox, kBox, kBox)},
      counts.data());
  Counts result{};
  CUDA_CHECK(cudaMemcpy(&result, counts.data(), sizeof result, cudaMemcpyDefault));
  return result;
}

void check() {
  const Counts counts = count();
  const auto& p = exercise::kPrediction;
  constexpr int64_t kA = sizeof(SharedStorage::a), kB = sizeof(SharedStorage::b);
  constexpr int64_t kBarriers = 2 * kSlots * sizeof(ptx::Mbarrier);
  expect_predicted(
      "shared_bytes", p.shared_bytes, sizeof(SharedStorage),
      {{kB, "that counts B in all three slots only"},
       {(kA + kB) / kSlots, "that counts one slot, or A in all three"},
       {(kA + kB) / 2, "that counts elements; a bf16 has two bytes"},
       {kA + kB, "that counts the tiles only; the struct also holds the pipeline's barriers"},
       {kA + kB + kBarriers / 2, "each slot has two barriers"},
       {kA + kB + kBarriers,
        "the sum is right, but a struct's size is a multiple of its alignment: which has a tile that "
        "is swizzled?"},
       {"add up the tiles of all slots and the barriers"}});
  const int phases = counts.reader_waits;
  expect_predicted("arrivals_full", p.arrivals_full, counts.loader_arrivals / phases,
                   {{counts.boxes / kTiles, "a copy counts bytes, and is no arrival"},
                    {counts.boxes / kTiles + 1, "a copy counts bytes, and is no arrival"},
                    {"how often does the loader arrive for one tile?"}});
  expect_predicted("arrivals_empty", p.arrivals_empty, counts.releases[2] / phases,
                   {{kReaders * ladder::kWarp, "all lanes wait, but a wait is no arrival"},
                    {1, "that counts one warp"},
                    {kReaders + 1, "the loader waits at this barrier, and a wait is no arrival"},
                    {"how many threads release a slot?"}});
  expect_predicted(
      "bytes_full", p.bytes_full, counts.bytes,
      {{kA / kSlots, "you counted A, not B"},
       {kB / kSlots, "you counted B, not A"},
       {counts.bytes / 2,
        "that counts elements, or the half that lies inside the matrix; TMA counts the bytes of whole "
        "boxes"},
       {"how many bytes has a slot?"}});
  expect_predicted("boxes", p.boxes, counts.boxes,
                   {{kTiles, "that counts one box for each tile"},
                    {2 * kTiles, "a tile of B is wider than a box"},
                    {"how many boxes has a slot, and how many tiles are there?"}});
  expect_predicted("phases_of_slot_2", p.phases_of_slot_2, phases,
                   {{kTiles, "that counts the phases of all slots"},
                    {phases + 1, "which slots hold one tile less than the others?"},
                    {"which tiles does slot 2 hold?"}});
  expect_predicted("first_waits", p.first_waits, counts.first_waits,
                   {{1, "each slot has a separate barrier"},
                    {kTiles, "that counts all waits of the loader"},
                    {kTiles - counts.first_waits, "that counts the waits that a release ends"},
                    {"on which lap has no slot been released yet?"}});
  expect_predicted_parity("reader_parity", p.reader_parity, counts.reader_parity,
                          "how often has the slot of tile 10 been filled before?");
  expect_predicted_parity(
      "loader_parity", p.loader_parity, counts.loader_parity,
      "for the release of which tile does the loader wait, and which phase of `empty` does "
      "it complete?");
}

}  // namespace

int main(int argc, char** argv) {
  return ladder::exercise::run_check(
      argc, argv, [] { ladder::exercise::all_predicted(check); }, 90);
}
