/// @file
/// For the test of `ladder check`: a transpose by TMA, with a loader and one slot, that makes the mistake
/// which its first argument names; "none" is right.
#include <cassert>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tma.cuh"

enum class Mistake { none, sync, wait, arrive, bytes, beyond, result, launches, endless, assertion };

constexpr int kTile = 64, kConsumers = 64, kThreads = kConsumers + 32;

struct SharedStorage {
  ladder::SwizzledTile<kTile, kTile> tile;
  ptx::Mbarrier full, empty;
};

__global__ void transpose(const __grid_constant__ CUtensorMap map, __nv_bfloat16* to, int tiles,
                          Mistake mistake) {
  auto& shared = ladder::shared_storage<SharedStorage>();
  const int thread = threadIdx.x, rows = tiles * kTile;
  if (thread == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::mbarrier_init(&shared.empty, kConsumers);
  }
  if (mistake == Mistake::launches)
    ladder::launch(transpose, {.name = "inner", .grid = 1, .block = 1}, map, to, tiles, Mistake::none);
  if (mistake == Mistake::assertion) assert(tiles == 1);
  for (volatile bool again = mistake == Mistake::endless; again;) {
  }
  if (mistake != Mistake::sync) __syncthreads();
  for (int i = 0; i < tiles; ++i) {
    if (thread < kConsumers) {
      if (mistake != Mistake::wait) ptx::mbarrier_wait(&shared.full, i % 2);
      const int end = mistake == Mistake::beyond ? kTile + 1 : kTile;
      for (int row = 0; row < end; ++row)
        to[thread * rows + i * kTile + row] = shared.tile.at(row % kTile, thread);
      if (mistake == Mistake::result) to[thread * rows] = shared.tile.at(1, thread);
      ptx::fence_proxy_async();  // TMA overwrites what these threads have read
      if (mistake != Mistake::arrive) ptx::mbarrier_arrive(&shared.empty);
    } else if (thread == kConsumers) {
      ptx::mbarrier_wait(&shared.empty, (i + 1) % 2);
      ptx::mbarrier_arrive_expect_bytes(&shared.full,
                                        sizeof shared.tile / (mistake == Mistake::bytes ? 2 : 1));
      ptx::tma_load(&shared.tile, &map, 0, i * kTile, &shared.full);
    }
  }
}

int main(int argc, char** argv) {
  const std::string names[] = {"none",   "sync",   "wait",     "arrive",  "bytes",
                               "beyond", "result", "launches", "endless", "assertion"};
  const std::string word = argc > 1 ? argv[1] : "none";
  if (word == "nothing") return 0;
  if (word == "exits") std::exit(3);
  if (word == "called") transpose({}, nullptr, 1, Mistake::none);
  int mistake = 0;
  while (names[mistake] != word) ++mistake;
  constexpr int kTiles = 3, kRows = kTiles * kTile;
  std::vector<__nv_bfloat16> matrix(kRows * kTile);
  for (int i = 0; i < kRows * kTile; ++i) matrix[i] = float(i % 127);
  ladder::DeviceBuffer<__nv_bfloat16> from(matrix), to(matrix.size());
  ladder::launch(transpose,
                 {.name = "transpose", .grid = 1, .block = kThreads, .shared_bytes = sizeof(SharedStorage)},
                 ladder::make_tensor_map(from.data(), kRows, kTile, kTile, kTile), to.data(), kTiles,
                 static_cast<Mistake>(mistake));
  const auto got = ladder::download(to.data(), to.size());
  for (int i = 0; i < kRows * kTile; ++i)
    if (float(got[i % kTile * kRows + i / kTile]) != float(matrix[i])) return 1;
  return 0;
}
