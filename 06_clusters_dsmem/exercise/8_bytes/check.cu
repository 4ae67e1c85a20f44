/// @file
/// The check of exercise 06.8: runs the launches, and names the missing term of a wrong number.
#include EXERCISE

#include "06_clusters_dsmem/exercise/8_bytes/moves.cuh"
#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::exercise::expect_predicted;
using moves::ClusterShape, exercise::kM, exercise::kN, exercise::kK;

constexpr int kOddColumns = 1000;
constexpr int64_t kSectorBytes = 32, kLineBytes = 128;

/// Bytes that a launch reads, and that blocks receive from others of their cluster.
struct Moved {
  int64_t read, received;
};

/// The bytes that a launch of clusters of this shape moves, by the CPU device's counters. A GPU does not
/// count them: there it is the bytes that a block requests, times the blocks.
template <class Shape>
Moved moved(int m, int n, int k, int columns_of_b) {
  const ladder::DeviceBuffer<__nv_bfloat16> a(std::vector<__nv_bfloat16>(m * k)),
      b(std::vector<__nv_bfloat16>(k * columns_of_b));
  const auto counters = ladder::exercise::counted(
      [&] { moves::launch_move<Shape>(a.data(), b.data(), m, n, k, columns_of_b); });
  if (counters)
    return {static_cast<int64_t>(counters->global_read_sectors) * kSectorBytes,
            static_cast<int64_t>(counters->cluster_bytes)};
  using Shared = moves::SharedStorage<Shape>;
  const int64_t steps = int64_t{m / moves::kTileM} * (n / moves::kTileN) * (k / moves::kTileK);
  const int64_t bytes_a = sizeof(Shared::a), bytes_b = sizeof(Shared::b);
  // If rows begin within sectors, every second row touches one sector more in each of its boxes.
  constexpr int64_t kBoxes = moves::kTileN * sizeof(__nv_bfloat16) / kLineBytes;
  const int64_t more_sectors = columns_of_b * 2 % kSectorBytes ? moves::kTileK / 2 * kBoxes : 0;
  const int64_t read = bytes_a / Shape::kAcross + bytes_b / Shape::kDown + more_sectors * kSectorBytes;
  const int64_t sums = int64_t{m} * n * (Shape::kSplits - 1) * static_cast<int64_t>(sizeof(float));
  return {steps * read, steps * (bytes_a + bytes_b - read + more_sectors * kSectorBytes) + sums};
}

/// How many rows of 128 bytes lie in two lines, of `rows` rows and `panels` boxes beside each other.
int64_t straddling_rows(int rows, int panels) {
  int64_t count = 0;
  for (int row = 0; row < rows; ++row)
    for (int panel = 0; panel < panels; ++panel)
      count += (int64_t{row} * kOddColumns * 2 + panel * kLineBytes) % kLineBytes != 0;
  return count;
}

void check() {
  const auto alone = moved<ClusterShape<1, 1, 1>>(kM, kN, kK, kN),
             pairs = moved<ClusterShape<2, 1, 1>>(kM, kN, kK, kN),
             squares = moved<ClusterShape<2, 2, 1>>(kM, kN, kK, kN),
             split = moved<ClusterShape<1, 1, 4>>(kM, kN, kK, kN),
             odd = moved<ClusterShape<1, 1, 1>>(64, 128, 64, kOddColumns);
  const int64_t read = alone.read, half = read / 2, sums = split.received;
  const int64_t of_b = 2 * (read - pairs.read), of_a = read - of_b;
  const int64_t sectors_of_a = 64 * 64 * 2 / kSectorBytes;

  expect_predicted(
      "kAlone", exercise::kAlone, read,
      {{(kM * kK + kK * kN) * 2,
        "you counted each matrix once, but every tile of C reads its rows of A and its columns of B"},
       {half, "a bf16 has two bytes"},
       {of_a, "you forgot B"},
       {of_b, "you forgot A"},
       {read + kM * kN * 2, "the kernel does not read C"},
       {kM * kK * 2 + of_b, "you counted A once, not for each column of tiles"},
       {of_a + kK * kN * 2, "you counted B once, not for each row of tiles"}});
  expect_predicted("kPairs", exercise::kPairs, pairs.read,
                   {{read, "two blocks need the same tile of B, and it is read once for both"},
                    {half, "you also halved A, but blocks one below the other need different rows of A"},
                    {of_a / 2 + of_b, "you halved A, but blocks one below the other share B"}});
  expect_predicted(
      "kSquares", exercise::kSquares, squares.read,
      {{pairs.read, "two blocks side by side need the same tile of A"},
       {read / 4, "only two of the four blocks need the same tile of A, and only two the same tile of B"}});
  expect_predicted("kFromNeighbours", exercise::kFromNeighbours, pairs.received,
                   {{of_b, "a block loads half of its tile of B itself"},
                    {of_b / 4, "both blocks of a cluster receive a half"}});
  expect_predicted("kPartialSums", exercise::kPartialSums, sums,
                   {{sums / 3 * 4, "a block sends nothing to itself"},
                    {sums / 4, "each of the four blocks owns a quarter, and receives sums"},
                    {sums / 3, "three other blocks have sums for each element"},
                    {sums / 2, "partial sums are fp32"},
                    {sums * 4, "a block sends each of the others only the columns that the other one owns"}});
  expect_predicted("kStraddling", exercise::kStraddling, straddling_rows(64, 2),
                   {{128, "rows begin 2000 bytes apart: which multiples of 2000 are multiples of 128?"},
                    {straddling_rows(64, 1), "a tile of 128 columns is two boxes"},
                    {straddling_rows(64, 2) + 64 / 8,
                     "a row of the second box begins 128 bytes after the same row of the first"}});
  expect_predicted("kSectors", exercise::kSectors, odd.read / kSectorBytes - sectors_of_a,
                   {{2 * 64 * 4, "four sectors are enough only for rows that begin at a sector"},
                    {2 * 64 * 5, "every second row begins at a sector: 2000 is a multiple of 16"},
                    {2 * (8 * 4 + 56 * 5), "a row that straddles two lines may still begin at a sector"}});
}

}  // namespace

int main(int argc, char** argv) {
  return ladder::exercise::run_check(
      argc, argv, [] { ladder::exercise::all_predicted(check); }, 90);
}
