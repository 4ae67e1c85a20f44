/// @file
/// The check of exercise 02.1: each element has a different place, and no pattern has bank conflicts.
#include EXERCISE

#include <fmt/core.h>
#include <numeric>

#include "common/exercise/check.hpp"

namespace {

using exercise::kSize, exercise::Pattern;
using ladder::exercise::counted, ladder::exercise::expect;

constexpr int kElements = kSize * kSize;

/// Writes the learner's place of each element; each thread handles a row.
__global__ void write_places(int* places) {
  for (int column = 0; column < kSize; ++column)
    places[threadIdx.x * kSize + column] = exercise::place_of(threadIdx.x, column);
}

/// @throws NotYet unless all elements have different places in the tile
void expect_places() {
  ladder::DeviceBuffer<int> memory(kElements);
  ladder::launch(write_places, {.name = "write_places", .grid = dim3(1), .block = dim3(kSize)},
                 memory.data());
  const std::vector<int> places = ladder::download(memory.data(), memory.size());
  const auto name_of = [](int i) { return fmt::format("row {}, column {}", i / kSize, i % kSize); };
  std::vector<int> elements(kElements, -1);
  for (int i = 0; i < kElements; ++i) {
    expect(places[i] >= 0 && places[i] < kElements,
           fmt::format("{} goes to place {}, must be 0 to {}", name_of(i), places[i], kElements - 1));
    int& element = elements[places[i]];
    expect(element < 0,
           fmt::format("{} and {} both go to place {}", name_of(element), name_of(i), places[i]));
    element = i;
  }
}

/// The additional wavefronts of bank conflicts. @throws NotYet unless the tile is copied unchanged
uint64_t conflicts(Pattern writes, Pattern reads) {
  std::vector<float> tile(kElements);
  std::iota(tile.begin(), tile.end(), 0.0f);
  const ladder::DeviceBuffer<float> from(tile);
  ladder::exercise::Output<float> to("the tile", kElements, kSize);
  const auto counters =
      counted([&] { exercise::launch_through_shared(from.data(), to.data(), writes, reads); });
  to.expect_equal(tile);
  return counters ? counters->bank_conflicts : 0;
}

void check() {
  expect_places();
  const uint64_t of_rows = conflicts(Pattern::row, Pattern::row) / 2;
  const uint64_t of_columns = conflicts(Pattern::row, Pattern::column) - of_rows;
  const uint64_t of_fragments = conflicts(Pattern::row, Pattern::fragment) - of_rows;
  const auto expect_none = [](uint64_t more, const char* what, const char* question) {
    expect(more == 0,
           fmt::format("all places are different, but {} take {} wavefronts where {} are enough: {}", what,
                       kSize + more, kSize, question));
  };
  expect_none(of_rows, "the 32 stores of rows", "in which banks do the elements of one row lie?");
  expect_none(of_columns, "the 32 loads of columns",
              "in which rows do the elements of column 0 lie in the same bank?");
  expect_none(of_fragments, "the 32 loads of fragments",
              "four columns of row 0 lie in four neighbouring banks; in which banks do they lie in row 1?");
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
