/// @file
/// The check of exercise 05.6: runs the blocks, and compares their counts with the predictions.
#include EXERCISE

#include <numeric>

#include "common/cuda/error.hpp"
#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using namespace exercise;
using ladder::exercise::expect_predicted;

constexpr int kRows = kM / kTile.m, kColumns = kN / kTile.n, kTiles = kRows * kColumns, kSteps = kK / kTile.k;
constexpr int kStepElements = kTile.m * kTile.k + kTile.k * kTile.n;

struct Counted {
  std::vector<float> tiles, copies, bytes;  ///< of each block
};

template <int kSlots>
Counted run() {
  const ladder::DeviceBuffer<__nv_bfloat16> a(std::vector<__nv_bfloat16>(size_t{kM} * kK));
  const ladder::DeviceBuffer<__nv_bfloat16> b(std::vector<__nv_bfloat16>(size_t{kK} * kN));
  ladder::DeviceBuffer<float> tiles(kMultiprocessors), copies(kMultiprocessors), bytes(kMultiprocessors);
  launch_move_tiles<kSlots>(a.data(), b.data(), {tiles.data(), copies.data(), bytes.data()});
  CUDA_CHECK(cudaDeviceSynchronize());
  return {ladder::download(tiles.data(), kMultiprocessors), ladder::download(copies.data(), kMultiprocessors),
          ladder::download(bytes.data(), kMultiprocessors)};
}

int sum(const std::vector<float>& values) {
  return static_cast<int>(std::accumulate(values.begin(), values.end(), 0.0f));
}

/// Slots of the largest ring whose storage a block can have.
template <int kSlots = 1>
constexpr int most_slots() {
  if constexpr (sizeof(SharedStorage<kSlots + 1>) > kSharedBytes)
    return kSlots;
  else
    return most_slots<kSlots + 1>();
}

void check() {
  const Counted counted = run<2>();
  const int waves = static_cast<int>(counted.tiles.front());
  expect_predicted("kWaves", kWaves, waves,
                   {{kTiles / kMultiprocessors, "the tiles that remain after the full waves are a wave, too"},
                    {kTiles, "that counts the tiles of all blocks"}});
  expect_predicted("kLastBlockTiles", kLastBlockTiles, static_cast<int>(counted.tiles.back()),
                   {{waves, "the last wave has no tile for it"}});
  const int total = sum(counted.tiles);
  constexpr double kEitherWayOfRounding = 0.01;
  expect_predicted(
      "kUsed", kUsed, 100.0 * total / (waves * kMultiprocessors),
      {{100.0 * (total % kMultiprocessors) / kMultiprocessors, "that is the share of the last wave only"},
       {100, "some multiprocessors idle in the last wave"}},
      kEitherWayOfRounding);

  constexpr int kSlotBytes = kStepElements * 2, kOfC = kTile.m * kTile.n * 2;
  expect_predicted("kMaxSlots", kMaxSlots, most_slots(),
                   {{kSharedBytes / kSlotBytes, "the tile of C needs shared memory, too"},
                    {(kSharedBytes - 2 * kOfC) / kSlotBytes, "c is staged in bf16, not in fp32"}});
  run<most_slots()>();  // shows that it fits

  constexpr int kAllSteps = kTiles * kSteps;
  expect_predicted("kCopies", kCopies, sum(counted.copies),
                   {{2 * kAllSteps, "a box has at most 64 columns, the swizzled row of a panel"},
                    {kAllSteps, "a step has copies of A and of B"},
                    {4 * kSteps, "that counts the copies of one tile"},
                    {4 * kTiles, "a tile has several steps"}});
  expect_predicted(
      "kBytesFromL2", kBytesFromL2, sum(counted.bytes),
      {{2 * (kM * kK + kK * kN), "you counted each matrix once, but each tile loads its strips again"},
       {kAllSteps * kStepElements, "you counted elements, and bf16 has two bytes"},
       {2 * (kM * kK * kColumns + kK * kN), "you counted B once, and A once for each column of tiles"},
       {2 * (kM * kK + kK * kN * kRows), "you counted A once, and B once for each row of tiles"},
       {2 * kAllSteps * kTile.m * kTile.k, "you forgot B"},
       {2 * kAllSteps * kTile.k * kTile.n, "you forgot A"},
       {2 * kTiles * kStepElements, "a tile has several steps"},
       {2 * kSteps * kStepElements, "that counts the bytes of one tile"}});
}

}  // namespace

int main(int argc, char** argv) {
  return ladder::exercise::run_check(
      argc, argv, [] { ladder::exercise::all_predicted(check); }, 90);
}
