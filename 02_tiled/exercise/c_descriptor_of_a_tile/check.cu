/// @file
/// The check of exercise 02.c: the fields of descriptors, one by one.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::exercise::expect_returned;

void expect_fields(uint32_t tile, int rows, int row, int k) {
  const uint64_t got = exercise::descriptor(tile, rows, row, k);
  const std::string call = fmt::format(" of descriptor({:#x}, {}, {}, {})", tile, rows, row, k);
  expect_returned("the swizzle" + call, got >> 62, 1);
  expect_returned("the stride" + call, got >> 32 & 0x3FFF, 64,
                  {{8, "that is one row of a panel; the stride is eight rows"},
                   {1024, "the stride is in units of 16 bytes"}});
  // All bits except the start, the leading offset, the stride and the swizzle.
  constexpr uint64_t kOthers =
      ~(uint64_t{0x3FFF} | uint64_t{0x3FFF} << 16 | uint64_t{0x3FFF} << 32 | uint64_t{3} << 62);
  expect_returned("the part outside these fields" + call, static_cast<int64_t>(got & kOthers), 0,
                  {{"bits 14-15, 30-31 and 46-61, including the base offset (49-51), are 0"}});
  const uint32_t begin = tile + row * 128, right = begin + k / 64 * rows * 128 + k % 64 * 2;
  expect_returned(
      "the start" + call, got & 0x3FFF, (right & 0x3FFFF) >> 4,
      {{right & 0x3FFF, "the start is in units of 16 bytes"},
       {((begin + k / 64 * rows * 128 + k % 64) & 0x3FFFF) >> 4, "an element of k has 2 bytes"},
       {((begin + k * 2) & 0x3FFFF) >> 4, "after 64 columns of k comes the next panel: where does it begin?"},
       {((right - row * 128) & 0x3FFFF) >> 4, "that is row 0"}});
}

void check() {
  for (const uint32_t tile : {0x400u, 0x2C000u})
    for (const int rows : {64, 128})
      for (int k = 0; k < 128; k += 16)
        for (int row = 0; row < rows; row += 64) expect_fields(tile, rows, row, k);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
