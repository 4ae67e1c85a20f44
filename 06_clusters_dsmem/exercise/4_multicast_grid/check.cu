/// @file
/// The check of exercise 06.4: fewer tiles than slots, and laps of the ring, by every schedule; and the
/// cluster reads each tile once.
#include EXERCISE

#include <cmath>

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace {

using ladder::exercise::NotYet;

constexpr int kElements = exercise::kTile * exercise::kTile;

/// Names the wrong operand of the first wrong element of y. y = a + 16 b, and |a| is at most 4, so y gives
/// both. @throws NotYet if there is a wrong element
void explain(const std::vector<float>& y, const std::vector<float>& a, const std::vector<float>& b,
             int tiles) {
  for (size_t i = 0; i < y.size(); ++i) {
    const int rank = static_cast<int>(i) / (tiles * kElements),
              element = static_cast<int>(i) % (tiles * kElements);
    const int row = rank % exercise::kSide, column = rank / exercise::kSide;
    const float right_a = a[row * tiles * kElements + element],
                right_b = b[column * tiles * kElements + element];
    if (y[i] == right_a + 16 * right_b) continue;
    if (std::isnan(y[i]))
      throw NotYet(
          fmt::format("the block of rank {} (row {}, column {}) has not received row {} of its tile of A or "
                      "B: which ranks do the masks name, and which block sends which half?",
                      rank, row, column, element % kElements / exercise::kTile));
    const float of_b = std::round(y[i] / 16);
    const bool is_a = of_b == right_b;
    throw NotYet(
        fmt::format("the block of rank {} (row {}, column {}) has received wrong elements in row {} of its "
                    "tile of {}: which ranks do the masks name, and which block sends which half?",
                    rank, row, column, element % kElements / exercise::kTile, is_a ? "A" : "B"));
  }
}

/// @throws NotYet unless y is right
void combine(int tiles) {
  const size_t size = static_cast<size_t>(exercise::kSide * tiles * kElements);
  const auto a = ladder::exercise::small_integers<float>(size, 1),
             b = ladder::exercise::small_integers<float>(size, 2);
  std::vector<float> expected;
  for (int rank = 0; rank < exercise::kBlocks; ++rank)
    for (int i = 0; i < tiles * kElements; ++i)
      expected.push_back(a[rank % exercise::kSide * tiles * kElements + i] +
                         16 * b[rank / exercise::kSide * tiles * kElements + i]);
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(std::vector<__nv_bfloat16>(a.begin(), a.end())),
      b_device(std::vector<__nv_bfloat16>(b.begin(), b.end()));
  ladder::exercise::Output<float> y("y", expected.size(), exercise::kTile);
  exercise::launch_combine(a_device.data(), b_device.data(), y.data(), tiles);
  std::vector<float> got(expected.size());
  CUDA_CHECK(cudaMemcpy(got.data(), y.data(), got.size() * sizeof(float), cudaMemcpyDefault));
  try {
    y.expect_equal(expected);
  } catch (const NotYet&) {
    explain(got, a, b, tiles);
    throw;
  }
}

/// The same; the report of a race adds the arrivals of `empty`.
void combine_without_race(int tiles) {
  try {
    combine(tiles);
  } catch (const NotYet&) {
    throw;
  } catch (const std::runtime_error& report) {
    const std::string what = report.what();
    if (what.find("race in shared memory") == std::string::npos) throw;
    throw std::runtime_error(
        what + fmt::format(
                   "\n`empty` expects {} arrivals in a phase: a block sends to itself, in its row and in its "
                   "column. Do the readers of all these blocks arrive at its `empty`?",
                   exercise::kEmptyArrivals));
  }
}

void check() {
  ladder::exercise::unless_deadlocked(
      "the readers wait forever for their first tiles: a block must receive exactly the bytes that it "
      "expects, including the bytes that others send",
      [] { combine(exercise::kSlots); });
  ladder::exercise::unless_deadlocked(
      "with more tiles than slots the loaders wait forever: how many blocks does a block send to, and how "
      "many readers of each arrive at its `empty`?",
      [] { combine_without_race(exercise::kSlots + 1); });
  for (const int tiles : {1, 3, 5}) ladder::exercise::on_every_schedule([&] { combine_without_race(tiles); });
  const int arrivals = exercise::kEmptyArrivals;
  ladder::exercise::expect(
      arrivals != exercise::kBlocks && arrivals != exercise::kBlocks * exercise::kReaders,
      "y is right, but the readers of four blocks arrive at each `empty`, and its block sends to three, "
      "itself "
      "included: does a fourth block arrive, or one of them twice?");

  constexpr int kTiles = 4;
  const auto counters = ladder::exercise::counted([] { combine(kTiles); });
  if (!counters) return;
  constexpr uint64_t kSectors = 2 * exercise::kSide * kTiles * sizeof(exercise::Tile) / 32;
  ladder::exercise::expect(
      counters->global_read_sectors <= kSectors,
      fmt::format("y is right, but the cluster reads {} sectors, and {} are enough: which other block needs "
                  "the tile that this one loads?",
                  counters->global_read_sectors, kSectors));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
