/// @file
/// The check of exercise 02.b: all elements of two tiles.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::exercise::expect_returned;

void expect_byte(int rows, int row, int column) {
  const int plain = column / 64 * rows * 128 + row * 128, within = column % 8 * 2;
  const int right = plain + ((column % 64 / 8) ^ (row % 8)) * 16 + within;
  expect_returned(
      fmt::format("byte_of({}, {}, {})", rows, row, column), exercise::byte_of(rows, row, column), right,
      {{plain + column % 64 / 8 * 16 + within, "that byte lacks the swizzle"},
       {plain + ((column % 64 / 8) ^ row) * 16 + within, "the swizzle permutes eight chunks: XOR row % 8"},
       {row * 256 + (((column / 8) ^ row) % 8 + column / 64 * 8) * 16 + within,
        "the rows of a panel follow each other: where does the second panel begin?"},
       {right / 2, "that counts elements, not bytes"}});
}

void check() {
  for (const int rows : {64, 128})
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < 128; ++column) expect_byte(rows, row, column);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
