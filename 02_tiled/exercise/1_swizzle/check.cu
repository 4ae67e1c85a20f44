/// @file
/// The check of exercise 02.1: a permutation of each row, no bank conflicts, and the hardware's choice.
#include EXERCISE

#include <fmt/core.h>
#include <numeric>

#include "common/device/swizzled_tile.cuh"
#include "common/exercise/check.hpp"

namespace {

using exercise::kChunks, exercise::kRows;
using ladder::exercise::counted, ladder::exercise::expect;

/// The place of chunk c of row r at [r][c]: the learner's, and that of a SwizzledTile.
__global__ void write_places(int* learners, int* hardwares) {
  const auto& tile = ladder::shared_storage<ladder::SwizzledTile<kRows, 64>>();
  const int row = threadIdx.x;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    learners[row * kChunks + chunk] = exercise::place_of(row, chunk);
    hardwares[row * kChunks + chunk] = static_cast<int>(tile.chunk(row, 8 * chunk) - tile.panels[0][row]) / 8;
  }
}

std::string name_of(int row, int chunk) { return fmt::format("chunk {} of row {}", chunk, row); }

/// @throws NotYet unless the places of each row are 0 to 7, each once
void expect_permutations(const std::vector<int>& places) {
  for (int row = 0; row < kRows; ++row)
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const int* const of_row = &places[row * kChunks];
      const int place = of_row[chunk];
      expect(place >= 0 && place < kChunks,
             fmt::format("{} goes to place {}, must be 0 to 7", name_of(row, chunk), place));
      for (int other = 0; other < chunk; ++other)
        expect(of_row[other] != place,
               fmt::format("chunks {} and {} of row {} both go to place {}", other, chunk, row, place));
    }
}

/// @throws NotYet unless chunks are transposed
void transpose() {
  constexpr int kElements = kRows * kChunks * 4;  // of 4 bytes
  std::vector<float> from(kElements), expected(kElements);
  std::iota(from.begin(), from.end(), 0.0f);
  for (int row = 0; row < kRows; ++row)
    for (int chunk = 0; chunk < kChunks; ++chunk)
      for (int i = 0; i < 4; ++i)
        expected[(chunk * kRows + row) * 4 + i] = from[(row * kChunks + chunk) * 4 + i];
  const ladder::DeviceBuffer<float> from_device(from);
  ladder::exercise::Output<float> to("the transposed tile", kElements);
  exercise::launch_transpose(reinterpret_cast<const uint4*>(from_device.data()),
                             reinterpret_cast<uint4*>(to.data()));
  to.expect_equal(expected);
}

void check() {
  ladder::DeviceBuffer<int> learners(kRows * kChunks), hardwares(kRows * kChunks);
  ladder::launch(write_places,
                 {.name = "write_places",
                  .grid = dim3(1),
                  .block = dim3(kRows),
                  .shared_bytes = sizeof(ladder::SwizzledTile<kRows, 64>)},
                 learners.data(), hardwares.data());
  const std::vector<int> places = ladder::download(learners.data(), learners.size());
  const std::vector<int> right = ladder::download(hardwares.data(), hardwares.size());
  expect_permutations(places);

  const auto counters = counted(transpose);
  if (counters)
    expect(counters->bank_conflicts == 0,
           fmt::format("the tile is transposed, but the banks conflict: {} passes too many; where do rows 0 "
                       "to 7 have their chunk 0?",
                       counters->bank_conflicts));
  for (int i = 0; i < kRows * kChunks; ++i)
    expect(places[i] == right[i],
           fmt::format("there is no conflict, but TMA and wgmma look for {} at place {}, not {}",
                       name_of(i / kChunks, i % kChunks), right[i], places[i]));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
