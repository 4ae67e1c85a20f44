/// @file
/// Tests of what the verifier says that wrong elements have in common.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "common/cuda/device_buffer.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/verify/verifier.hpp"
#include "common/testing/gemm_checks.hpp"
#include "common/tests/fake_lesson.hpp"

using Catch::Matchers::ContainsSubstring;
using ladder::Shape;

namespace {

constexpr int kM = 256, kN = 192;

/// What is said of a C [256, 192] of ones in which these elements hold something else.
std::string complaint_if(const std::function<bool(int row, int column)>& is_wrong,
                         __nv_bfloat16 instead = ladder::to_bf16(7), int row_step = 1) {
  ladder::Reference reference{{kM, kN, 1}, {}, {}};
  for (int row = 0; row < kM; row += row_step) reference.rows.push_back(row);
  reference.values.assign(reference.rows.size() * kN, 1.0);
  std::vector<__nv_bfloat16> c(size_t(kM) * kN, ladder::to_bf16(1));
  for (int row = 0; row < kM; ++row)
    for (int column = 0; column < kN; ++column)
      if (is_wrong(row, column)) c[row * kN + column] = instead;
  return ladder::compare_exact(reference, c, "test").complaint;
}

/// Multiplies on the host, K tile by K tile. @param tile_for which K tile is multiplied at (row, column) in
/// place of `tile`; -1 for none
ladder::Multiply with_k_tiles(const std::function<int(int row, int column, int tile)>& tile_for) {
  return [tile_for](const ladder::Gemm& gemm) {
    const auto a = ladder::download(gemm.a, size_t(gemm.m) * gemm.k);
    const auto b = ladder::download(gemm.b, size_t(gemm.k) * gemm.n);
    std::vector<__nv_bfloat16> c(size_t(gemm.m) * gemm.n);
    for (int row = 0; row < gemm.m; ++row)
      for (int column = 0; column < gemm.n; ++column) {
        float sum = 0;
        for (int tile = 0; tile * 64 < gemm.k; ++tile) {
          const int taken = tile_for(row, column, tile);
          for (int k = taken * 64; taken >= 0 && k < std::min(gemm.k, taken * 64 + 64); ++k)
            sum += ladder::to_float(a[row * gemm.k + k]) * ladder::to_float(b[k * gemm.n + column]);
        }
        c[row * gemm.n + column] = ladder::to_bf16(sum);
      }
    CUDA_CHECK(cudaMemcpy(gemm.c, c.data(), c.size() * sizeof c[0], cudaMemcpyHostToDevice));
  };
}

std::string complaint_of_k_tiles(const std::function<int(int row, int column, int tile)>& tile_for) {
  return ladder::Verifier({96, 72, 300}, 7).check_exact(with_k_tiles(tile_for)).complaint;
}

}  // namespace

TEST_CASE("Wrong elements are placed in tiles, and by their rows and columns") {
  const auto in_one_tile = [](int row, int column) { return row / 64 == 2 && column / 64 == 1; };
  CHECK_THAT(complaint_if(in_one_tile),
             ContainsSubstring("1 of 12 tiles of 64 x 64 have some: tile row 2, tile "
                               "column 1; rows 128-191, columns 64-127"));
  const auto in_two_rows_of_tiles = [](int row, int) { return row >= 128; };
  CHECK_THAT(complaint_if(in_two_rows_of_tiles),
             ContainsSubstring("6 of 12 tiles of 64 x 64 have some: tile rows 2-3, tile columns 0-2"));
  const auto in_two_corners = [](int row, int column) { return row / 64 == column / 64 && row < 128; };
  CHECK_THAT(complaint_if(in_two_corners),
             ContainsSubstring("2 of 12 tiles of 64 x 64 have some: the first is tile row 0, tile column 0"));
  CHECK_THAT(complaint_if([](int, int) { return true; }),
             ContainsSubstring("all 12 tiles of 64 x 64 have some"));
  CHECK_THAT(complaint_if([](int row, int column) { return row == 3 && column == 5; }),
             ContainsSubstring("; row 3, column 5"));
}

TEST_CASE("What wrong elements leave out is said: every other column, half of the rows of each tile") {
  CHECK_THAT(complaint_if([](int, int column) { return column % 2 == 1; }),
             ContainsSubstring(", and only odd columns"));
  CHECK_THAT(complaint_if([](int row, int) { return row % 16 >= 8; }),
             ContainsSubstring("rows 8-255, columns 0-191, and only rows 8-15 of every 16"));
  CHECK_THAT(complaint_if([](int, int column) { return column % 64 < 32; }),
             ContainsSubstring(", and only columns 0-31 of every 64"));
  CHECK_THAT(complaint_if([](int row, int) { return row == 40; }), !ContainsSubstring("and only"));
  // Every fourth row is compared: that is no pattern of the wrong ones.
  CHECK_THAT(complaint_if([](int, int) { return true; }, ladder::to_bf16(7), 4),
             !ContainsSubstring("and only"));
}

TEST_CASE("Elements that were never written are told from sums of something that is NaN") {
  const auto in_one_tile = [](int row, int column) { return row / 64 == 2 && column / 64 == 1; };
  __nv_bfloat16 never_written;
  std::memset(static_cast<void*>(&never_written), 0xff, sizeof never_written);
  CHECK_THAT(complaint_if(in_one_tile, never_written),
             ContainsSubstring("; 4096 were never written, or are copies of what was not"));
  CHECK_THAT(complaint_if(in_one_tile, ladder::to_bf16(NAN)),
             ContainsSubstring("; 4096 are sums of something that is nan"));
}

TEST_CASE("A K tile that is left out, counted twice or taken for another is named") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK(complaint_of_k_tiles([](int, int, int tile) { return tile; }) == "");
  CHECK_THAT(complaint_of_k_tiles([](int row, int, int tile) { return row >= 64 && tile == 3 ? 1 : tile; }),
             ContainsSubstring(
                 "in tile row 1, tile column 0 K tile 1 (of 5, 64 wide) was multiplied in place of K tile "
                 "3: a slot was read before it was filled again"));
  CHECK_THAT(complaint_of_k_tiles([](int, int, int tile) { return tile == 0 ? 2 : tile; }),
             ContainsSubstring("K tile 2 (of 5, 64 wide) was multiplied in place of K tile 0: a slot was "
                               "overwritten before it was read"));
  CHECK_THAT(complaint_of_k_tiles([](int, int, int tile) { return tile == 4 ? -1 : tile; }),
             ContainsSubstring("K tile 4 (of 5, 64 wide) is missing"));
  // No single tile explains a result that is wrong in another way.
  CHECK_THAT(complaint_of_k_tiles([](int row, int column, int tile) { return (row + column + tile) % 5; }),
             !ContainsSubstring("K tile"));
}
