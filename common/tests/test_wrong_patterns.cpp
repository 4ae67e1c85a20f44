/// @file
/// Tests of what the verifier says that wrong elements have in common.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/cuda/device_buffer.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/verify/explanation.hpp"
#include "common/host/verify/launch_grid.hpp"
#include "common/host/verify/tile_walks.hpp"
#include "common/host/verify/verifier.hpp"
#include "common/testing/gemm_checks.hpp"
#include "common/tests/fake_lesson.hpp"

using Catch::Matchers::ContainsSubstring;

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

/// What an element is made of: the product at `k` of A's row and B's column as they should be; `times` it.
struct Term {
  int k_of_a, k_of_b;
  int times = 1;
};
/// Multiplies on the host. @param term_for what is multiplied at (row, column) in place of the product at `k`
ladder::Multiply with_terms(const std::function<Term(int row, int column, int k)>& term_for) {
  return [term_for](const ladder::Gemm& gemm) {
    const auto a = ladder::download(gemm.a, size_t(gemm.m) * gemm.k);
    const auto b = ladder::download(gemm.b, size_t(gemm.k) * gemm.n);
    std::vector<__nv_bfloat16> c(size_t(gemm.m) * gemm.n);
    for (int row = 0; row < gemm.m; ++row)
      for (int column = 0; column < gemm.n; ++column) {
        float sum = 0;
        for (int k = 0; k < (gemm.k + 63) / 64 * 64; ++k) {
          const Term term = term_for(row, column, k);
          if (!term.times || std::max(term.k_of_a, term.k_of_b) >= gemm.k) continue;
          sum += float(term.times) * ladder::to_float(a[row * gemm.k + term.k_of_a]) *
                 ladder::to_float(b[term.k_of_b * gemm.n + column]);
        }
        c[row * gemm.n + column] = ladder::to_bf16(sum);
      }
    CUDA_CHECK(cudaMemcpy(gemm.c, c.data(), c.size() * sizeof c[0], cudaMemcpyHostToDevice));
  };
}

std::string complaint_of_terms(const std::function<Term(int row, int column, int k)>& term_for) {
  return ladder::Verifier({96, 72, 296}, 7).check_exact(with_terms(term_for)).complaint;
}
/// @param tile_for which K tile is multiplied in place of `tile`; -1 for none
std::string complaint_of_k_tiles(const std::function<int(int row, int column, int tile)>& tile_for) {
  return complaint_of_terms([&](int row, int column, int k) -> Term {
    const int tile = tile_for(row, column, k / 64);
    return {tile * 64 + k % 64, tile * 64 + k % 64, tile < 0 ? 0 : 1};
  });
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
             ContainsSubstring("; 4096 were written, and are nan"));
  CHECK_THAT(complaint_if([](int, int column) { return column >= 128; }, never_written),
             ContainsSubstring("no thread wrote the columns from 128 on: does the grid have a block for"));
  // A whole tile is not asked for so, nor more than one.
  CHECK_THAT(complaint_if([](int row, int) { return row >= 192; }, never_written),
             ContainsSubstring("no thread wrote the rows from 192 on; "));
  CHECK_THAT(complaint_if([](int, int column) { return column >= 64; }, never_written),
             ContainsSubstring("no thread wrote the columns from 64 on; "));
  // All of C, a tile within it, or other wrong elements beside: not the grid.
  for (const auto& is_wrong : std::vector<std::function<bool(int, int)>>{
           [](int, int) { return true; }, in_one_tile,
           [](int row, int column) { return column >= 128 && row != 7; }})
    CHECK_THAT(complaint_if(is_wrong, never_written), !ContainsSubstring("no thread wrote the"));
}

TEST_CASE("Where nobody wrote a C that is smaller than a tile may be, the number of tiles is asked for") {
  __nv_bfloat16 never_written;
  std::memset(static_cast<void*>(&never_written), 0xff, sizeof never_written);
  const auto complaint_of = [&](int rows, int columns, int right) {
    ladder::Reference reference{{rows, columns, 1}, {}, std::vector<double>(size_t(rows) * columns, 1.0)};
    for (int row = 0; row < rows; ++row) reference.rows.push_back(row);
    std::vector<__nv_bfloat16> c(size_t(rows) * columns, never_written);
    std::fill_n(c.begin(), right, ladder::to_bf16(1));
    return ladder::compare_exact(reference, c, "test").complaint;
  };
  CHECK_THAT(
      complaint_of(40, 776, 0),
      ContainsSubstring("; no thread wrote any element: C has 40 rows, which may be less than the tile, "
                        "or the pair of tiles, of a kernel: is the number of tiles rounded down, to 0?"));
  CHECK_THAT(complaint_of(776, 40, 0), ContainsSubstring("C has 40 columns, which may be less"));
  CHECK_THAT(complaint_of(256, 256, 0), !ContainsSubstring("number of tiles"));
  CHECK_THAT(complaint_of(128, 128, 0), !ContainsSubstring("number of tiles"));
  CHECK_THAT(complaint_of(40, 776, 1), !ContainsSubstring("number of tiles"));
}

TEST_CASE("Tiles of which rows and columns are exchanged are asked about where just these were written") {
  constexpr int kRows = 131, kColumns = 520;
  ladder::Reference reference{{kRows, kColumns, 1}, {}, std::vector<double>(kRows * kColumns, 1.0)};
  for (int row = 0; row < kRows; ++row) reference.rows.push_back(row);
  const auto complaint_from = [&](int first) {
    std::vector<__nv_bfloat16> c(kRows * kColumns, ladder::to_bf16(1));
    for (int i = 0; i < kRows * kColumns; ++i)
      if (i % kColumns >= first) std::memset(static_cast<void*>(&c[i]), 0xff, sizeof c[i]);
    return ladder::compare_exact(reference, c, "test").complaint;
  };
  const char* const question = "are rows and columns of tiles exchanged?";
  CHECK_THAT(complaint_from(256), ContainsSubstring(question));  // 2 tiles of 128 columns, as of rows
  CHECK_THAT(complaint_from(256), !ContainsSubstring("partly filled"));
  CHECK_THAT(complaint_from(384), !ContainsSubstring(question));
  // 2 tiles of 256 columns, as of 128 rows.
  CHECK_THAT(complaint_from(512), ContainsSubstring("partly filled tile? Or, as those before are as many"));
  // Both leave out the same of two tiles, the second partly filled, beside one.
  std::vector<__nv_bfloat16> c(40 * 136, ladder::to_bf16(1));
  for (int i = 0; i < 40 * 136; ++i)
    if (i % 136 >= 128) std::memset(static_cast<void*>(&c[i]), 0xff, sizeof c[i]);
  ladder::Reference narrow{{40, 136, 1}, {}, std::vector<double>(40 * 136, 1.0)};
  for (int row = 0; row < 40; ++row) narrow.rows.push_back(row);
  const std::string both = ladder::compare_exact(narrow, c, "test").complaint;
  // A grid of one block, where there are four tiles.
  std::vector<__nv_bfloat16> one(kRows * kColumns, ladder::to_bf16(1));
  for (int i = 0; i < kRows * kColumns; ++i)
    if (i / kColumns >= 128 || i % kColumns >= 512)
      std::memset(static_cast<void*>(&one[i]), 0xff, sizeof one[i]);
  CHECK_THAT(ladder::compare_exact(reference, one, "test").complaint,
             ContainsSubstring(
                 "no thread wrote the rows from 128 on, nor the columns from 512 on: does the grid have "
                 "blocks for the last, partly filled tiles?"));
  CHECK_THAT(both,
             ContainsSubstring("partly filled tile? Or, as those before are as many tiles as lie along the "
                               "other side: are rows and columns of tiles exchanged?"));
}

TEST_CASE(
    "An explanation comes before what wrong elements have in common, and is not asked for where C is right") {
  const ladder::Reference reference{{1, 2, 1}, {0}, {1, 1}};
  int asked = 0;
  const ladder::Explain explain = [&](const ladder::WrongElements& wrong) {
    ++asked;
    return "because of " + std::to_string(wrong.nan_count());
  };
  const std::vector<__nv_bfloat16> right(2, ladder::to_bf16(1)), wrong(2, ladder::to_bf16(NAN));
  CHECK(ladder::compare_exact(reference, right, "test", explain).passed());
  CHECK(asked == 0);
  CHECK_THAT(ladder::compare_exact(reference, wrong, "test", explain).complaint,
             ContainsSubstring("test)\n  because of 2; all"));
  CHECK_THAT(ladder::compare_close(reference, wrong, "test", 0, 1, explain).complaint,
             ContainsSubstring("test)\n  because of 2; all"));
}

TEST_CASE("A K tile that is left out, counted twice or taken for another is named") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK(complaint_of_k_tiles([](int, int, int tile) { return tile; }) == "");
  CHECK_THAT(complaint_of_k_tiles([](int row, int, int tile) { return row >= 64 && tile == 3 ? 1 : tile; }),
             ContainsSubstring(
                 "in tile row 1, tile column 0: K tile 1 (of 5, 64 wide) was multiplied in place of K tile "
                 "3: a slot was read before it was filled again, or the wrong tile was loaded"));
  // Two parts, of tiles 0 to 2 and 2 to 3.
  CHECK_THAT(complaint_of_k_tiles([](int, int, int tile) { return tile == 4 ? 2 : tile; }),
             ContainsSubstring(
                 "K tile 2 (of 5, 64 wide) was multiplied in place of K tile 4: the last K tile was never "
                 "loaded, a slot was read before it was filled again, or the wrong tile was loaded; or two "
                 "blocks, or groups of "
                 "threads, take parts of K one behind the other, tiles 0 to 2 and 2 to 3: tile 2 counts "
                 "twice, and tile 4 never"));
  CHECK_THAT(complaint_of_k_tiles([](int, int, int tile) { return tile == 3 ? 1 : tile; }),
             !ContainsSubstring("one behind the other"));
  CHECK_THAT(complaint_of_k_tiles([](int, int, int tile) { return tile == 0 ? 2 : tile; }),
             ContainsSubstring("K tile 2 (of 5, 64 wide) was multiplied in place of K tile 0: a slot was "
                               "overwritten before it was read"));
  CHECK_THAT(complaint_of_k_tiles([](int, int, int tile) { return tile == 4 ? -1 : tile; }),
             ContainsSubstring(
                 "data seed 7)\n  in tile row 0, tile column 0: C lacks the products of k = 256 to "
                 "295, the last K tile: is the number of K tiles rounded down? It must be rounded up; all"));
  CHECK_THAT(complaint_of_k_tiles([](int, int, int tile) { return tile == 1 ? -1 : tile; }),
             ContainsSubstring("C lacks the products of k = 64 to 127: K tile 1 (of 5, 64 wide); all"));
  CHECK_THAT(
      complaint_of_k_tiles([](int, int, int tile) { return tile + 2 < 5 ? tile + 2 : tile; }),
      ContainsSubstring("every K tile was taken 2 too early: a slot was overwritten before it was read"));
  // No single tile explains a result that is wrong in another way.
  CHECK_THAT(complaint_of_k_tiles([](int row, int column, int tile) { return (row + column + tile) % 5; }),
             !ContainsSubstring("K tile"));
}

TEST_CASE("Products that are missing or counted twice are named, and what is stale beyond the edge") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto is_in = [](int k, int first, int last) { return k >= first && k <= last; };
  CHECK_THAT(complaint_of_terms([&](int, int, int k) -> Term {
               return {k, k, is_in(k, 72, 95) ? 0 : 1};
             }),
             ContainsSubstring("C lacks the products of k = 72 to 95; all"));
  CHECK_THAT(complaint_of_terms([&](int, int, int k) -> Term {
               return {k, k, is_in(k, 128, 295) ? 2 : 1};
             }),
             ContainsSubstring("C has the products of k = 128 to 295 twice; all"));
  CHECK_THAT(complaint_of_terms([](int, int, int k) -> Term {
               return {k, k, 2};
             }),
             ContainsSubstring("C holds twice the product: all sums are counted twice, or were not cleared"));
  // The last K tile has 40 rows; the slot held tile 2 before.
  CHECK_THAT(
      complaint_of_terms([](int, int, int k) -> Term {
        return k < 296 ? Term{k, k} : Term{k - 128, k - 128};
      }),
      ContainsSubstring("C has the products of k = 168 to 191 twice: beyond K the slot of the last K tile "
                        "still holds K tile 2 (of 5, 64 wide), where zeros must be"));
}

TEST_CASE("A mistake that does not explain all tiles is not named: what some tiles hold is") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  // The first tile lacks the last K tile, as if K / 64 had been rounded down; others lack another one.
  const std::string two =
      complaint_of_k_tiles([](int row, int, int tile) { return tile == (row < 64 ? 4 : 1) ? -1 : tile; });
  CHECK_THAT(
      two, ContainsSubstring("\n  in tile row 0, tile column 0: C lacks the products of k = 256 to 295, "
                             "the last K tile (so in 2 of 4 tiles looked at); in tile row 1, tile column 0: "
                             "C lacks the products of k = 64 to 127 (so in 2 of 4 tiles looked at); all"));
  CHECK_THAT(two, !ContainsSubstring("must be rounded up"));
  const std::string unknown = complaint_of_terms([](int row, int, int k) -> Term {
    return row >= 64 ? Term{k, std::max(0, 295 - k)} : Term{k, k, k / 64 == 4 ? 0 : 1};
  });
  CHECK_THAT(unknown, ContainsSubstring("the last K tile (so in 2 of 4 tiles looked at); in tile row 1, tile "
                                        "column 0: something else; all"));
}

TEST_CASE("Of normal data, too, missing products are named, and another tile that was taken") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto complaint = [](const std::function<Term(int row, int column, int k)>& term_for) {
    return ladder::Verifier({96, 72, 296}, 7).check_normal(with_terms(term_for)).complaint;
  };
  CHECK_THAT(complaint([](int, int, int k) -> Term {
               return {k, k, k >= 72 && k < 96 ? 0 : 1};
             }),
             ContainsSubstring("C lacks the products of k = 72 to 95; "));
  CHECK_THAT(complaint([](int, int, int k) -> Term {
               return {k / 64 == 3 ? k - 64 : k, k / 64 == 3 ? k - 64 : k};
             }),
             ContainsSubstring("K tile 2 (of 5, 64 wide) was multiplied in place of K tile 3"));
}

TEST_CASE("Sums of another tile of C that were added in place of its own are named") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  // The first half is its own, of K tiles 0, 2, 4; the other is that of the neighbour's columns.
  const auto complaint = [](int first_of_other, int columns, int row_away = 0, int column_away = 64) {
    return ladder::Verifier({96, columns, 296}, 7)
        .check_exact([&](const ladder::Gemm& gemm) {
          const auto a = ladder::download(gemm.a, size_t(gemm.m) * gemm.k);
          const auto b = ladder::download(gemm.b, size_t(gemm.k) * gemm.n);
          std::vector<__nv_bfloat16> c(size_t(gemm.m) * gemm.n);
          for (int row = 0; row < gemm.m; ++row)
            for (int column = 0; column < gemm.n; ++column) {
              float sum = 0;
              for (int k = 0; k < gemm.k; ++k) {
                const auto product = [&](int i, int j) {
                  return i < gemm.m && j < gemm.n
                             ? ladder::to_float(a[i * gemm.k + k]) * ladder::to_float(b[k * gemm.n + j])
                             : 0;
                };
                if (k / 64 % 2 == 0) sum += product(row, column);
                if (k / 64 % 2 == first_of_other) sum += product(row ^ row_away, column ^ column_away);
              }
              c[row * gemm.n + column] = ladder::to_bf16(sum);
            }
          CUDA_CHECK(cudaMemcpy(gemm.c, c.data(), c.size() * sizeof c[0], cudaMemcpyHostToDevice));
        })
        .complaint;
  };
  // To the left of the one tile, to the right of the other: one sentence. The last tile has no other beside
  // it: the sentence holds there, too.
  for (const int columns : {128, 136})
    CHECK_THAT(complaint(1, columns),
               ContainsSubstring(
                   "in tile row 0, tile column 0: C has the products of every second K tile (of 5, 64 "
                   "wide), and to them those of the other K tiles 64 columns away are added: a block loads "
                   "the columns of B, or sends or adds the sums, in another order than its peer means; all"));
  CHECK_THAT(
      complaint(0, 128),
      ContainsSubstring("those of the same K tiles 64 columns away are added: sums of the wrong block"));
  CHECK_THAT(complaint(1, 136, 0, 2),
             ContainsSubstring("and to them those of the other K tiles are added with columns exchanged that "
                               "are 2 apart: thread t takes, or sends, the sums of thread t ^ 1; all"));
  CHECK_THAT(complaint(1, 136, 16, 0),
             ContainsSubstring(
                 "rows exchanged that are 16 apart: thread t takes, or sends, the sums of thread t ^ 32"));
  CHECK_THAT(complaint(1, 136, 3, 0), !ContainsSubstring("exchanged"));
}

TEST_CASE(
    "Tiles that hold what belongs equally far away are told of in one sentence, beside one that is wrong "
    "otherwise") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const ladder::Multiply stale = [](const ladder::Gemm& gemm) {
    ladder::fake::multiply(gemm);
    std::vector<__nv_bfloat16> c = ladder::download(gemm.c, size_t(gemm.m) * gemm.n);
    for (int row = 0; row < gemm.m; ++row)
      for (int column = 0; column < gemm.n; ++column) {
        __nv_bfloat16& value = c[row * gemm.n + column];
        if (column < 128) value = c[row * gemm.n + column + 64];
        if (column >= 128 && row >= 64)
          value = ladder::to_bf16(static_cast<float>((row * 7 + column * 5) % 11));
      }
    ladder::copy_to_device(gemm.c, c.data(), c.size() * sizeof c[0]);
  };
  CHECK_THAT(ladder::Verifier({128, 192, 64}, 7).check_exact(stale).complaint,
             ContainsSubstring(
                 "in tile row 0, tile column 0: C holds what belongs 64 columns to the right (so in 4 of 5 "
                 "tiles looked at); in tile row 1, tile column 2: something else; "));
}

TEST_CASE("One operand of an earlier K tile is named") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK_THAT(
      complaint_of_terms([](int, int, int k) -> Term {
        return {k / 64 == 3 ? k - 64 : k, k};
      }),
      ContainsSubstring("K tile 2 (of 5, 64 wide) of A was multiplied in place of K tile 3: a slot was read "
                        "before it was filled again"));
  CHECK_THAT(
      complaint_of_terms([](int, int, int k) -> Term {
        return {k, k / 64 == 0 ? k + 128 : k};
      }),
      ContainsSubstring("K tile 2 (of 5, 64 wide) of B was multiplied in place of K tile 0: a slot was "
                        "overwritten before it was read"));
}

TEST_CASE("A tile of C that holds another one is named, and what can be off is told by both places") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  /// @param from the place whose element lies at (row, column), too, or instead
  const auto complaint = [](const std::function<std::pair<int, int>(int row, int column)>& from,
                            int columns = 128) {
    return ladder::Verifier({128, columns, 64}, 7)
        .check_exact([&](const ladder::Gemm& gemm) {
          ladder::fake::multiply(gemm);
          const std::vector<__nv_bfloat16> right = ladder::download(gemm.c, size_t(gemm.m) * gemm.n);
          std::vector<__nv_bfloat16> c = right;
          for (int row = 0; row < gemm.m; ++row)
            for (int column = 0; column < gemm.n; ++column) {
              const auto [i, j] = from(row, column);
              c[row * gemm.n + column] = right[i * gemm.n + j];
            }
          ladder::copy_to_device(gemm.c, c.data(), c.size() * sizeof c[0]);
        })
        .complaint;
  };
  CHECK_THAT(complaint([](int row, int column) {
               return row >= 64 && column < 64 ? std::pair(row - 64, column + 64) : std::pair(row, column);
             }),
             ContainsSubstring(
                 "in tile row 1, tile column 0: C holds what belongs 64 rows up and "
                 "64 columns to the right: the tile was loaded, multiplied, staged or stored with an index "
                 "that is off, or overwritten before it was stored"));
  CHECK_THAT(
      complaint([](int row, int column) { return std::pair(row, column % 64); }),
      ContainsSubstring(
          "C holds what belongs 64 columns to the left: both places hold it, and the rows are right: the "
          "column is off where B is loaded or multiplied, or where the sums are staged, or a staging "
          "tile held other sums when it was stored; 2 of 4 tiles"));
  CHECK_THAT(
      complaint([](int row, int column) { return std::pair(row % 64, column); }),
      ContainsSubstring(
          "C holds what belongs 64 rows up: both places hold it, and the columns are right: the row is "
          "off where A is loaded or multiplied, or where the sums are staged, or a staging tile"));
  // Pieces of 64 columns, of which each begins 32 behind the one before.
  CHECK_THAT(
      complaint([](int row, int column) { return std::pair(row, column - column / 64 % 4 * 32); }, 256),
      ContainsSubstring(
          ": each 64 columns of C begin 32 columns too far left behind the ones before: the "
          "column that tells one piece of a tile from the next is off where the sums are staged "
          "or stored, or where B is loaded; "));
  // Each holds what the other must: stored to the wrong place, perhaps.
  CHECK_THAT(
      complaint([](int row, int column) { return std::pair(row, column ^ 64); }),
      ContainsSubstring("exchanged where B is loaded, or multiplied, or where sums are staged or stored?"));
  CHECK_THAT(complaint([](int row, int column) { return std::pair(row, column ^ 64); }),
             !ContainsSubstring("both places hold it"));
}

TEST_CASE("K tiles that repeat with the slots of a ring are named, whichever slot a tile of C begins with") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto complaint = [](int slots, bool goes_on) {
    return complaint_of_k_tiles([=](int row, int column, int tile) {
      return (tile + (goes_on ? 2 * (row / 64) + column / 64 : 0)) % slots;
    });
  };
  CHECK_THAT(
      complaint(4, true),
      ContainsSubstring("data seed 7)\n  only K tiles 0 to 3 (of 5, 64 wide) are multiplied, some of "
                        "them several times: k repeats after 4 steps, also from one tile of C to the "
                        "next, as the slots of a ring do: is the k of the load computed from the slot, "
                        "not from the step?; all"));
  CHECK_THAT(complaint(3, false),
             ContainsSubstring("only K tiles 0 to 2 (of 5, 64 wide) are multiplied, some of them several "
                               "times: k repeats after 3 steps, as the slots of a ring do: is the k of the "
                               "load computed from the slot, not from the step, or are the slots not filled "
                               "again?; all"));
  // One K tile may be stale.
  CHECK_THAT(complaint(4, false),
             ContainsSubstring("K tile 0 (of 5, 64 wide) was multiplied in place of K tile 4"));
  // Of one tile of C another K tile is missing.
  CHECK_THAT(complaint_of_k_tiles([](int row, int column, int tile) {
               return row < 64 ? (tile + column / 64) % 4 : tile == 2 ? 1 : tile;
             }),
             !ContainsSubstring("of a ring"));
  CHECK(complaint(5, true) == "");
}

namespace {

/// What is said if each element of C holds that of another place: zero if this lies outside.
std::string complaint_of_places(int rows, int columns,
                                const std::function<std::pair<int, int>(int row, int column)>& place_for) {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const ladder::Multiply multiply = [&](const ladder::Gemm& gemm) {
    ladder::fake::multiply(gemm);
    const std::vector<__nv_bfloat16> right = ladder::download(gemm.c, size_t(gemm.m) * gemm.n);
    std::vector<__nv_bfloat16> c(right.size());
    for (int row = 0; row < gemm.m; ++row)
      for (int column = 0; column < gemm.n; ++column) {
        const auto [i, j] = place_for(row, column);
        c[row * gemm.n + column] = i < gemm.m && j < gemm.n ? right[i * gemm.n + j] : ladder::to_bf16(0);
      }
    ladder::copy_to_device(gemm.c, c.data(), c.size() * sizeof c[0]);
  };
  return ladder::Verifier({rows, columns, 64}, 7).check_exact(multiply).complaint;
}

}  // namespace

TEST_CASE("Tiles of C whose row and column are exchanged are named, square or not") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());  // not within a CHECK
  const auto exchanged = [](int height, int width, bool of_offsets, bool of_a = true, bool of_b = true) {
    return complaint_of_places(200, 520, [=](int row, int column) {
      const int i = of_offsets ? column / width * width : column / width * height,
                j = of_offsets ? row / height * height : row / height * width;
      return std::pair(of_a ? i + row % height : row, of_b ? j + column % width : column);
    });
  };
  CHECK_THAT(
      exchanged(128, 128, false),
      ContainsSubstring("data seed 7)\n  in tiles of 128 x 128 elements, the tile of C at (i, j) holds that "
                        "of (j, i): are the tile's row and column exchanged where it is loaded or "
                        "stored?; "));
  CHECK_THAT(
      exchanged(64, 128, false),
      ContainsSubstring("in tiles of 64 x 128 elements, the tile of C at (i, j) holds that of (j, i): "));
  CHECK_THAT(
      exchanged(64, 128, true),
      ContainsSubstring("in tiles of 64 x 128 elements, the tile of C that begins at row r and column c "
                        "holds what begins at row c and column r: are the two exchanged"));
  CHECK_THAT(
      exchanged(128, 128, false, true, false),
      ContainsSubstring("in tiles of 128 x 128 elements, the tile of C at (i, j) holds the product of A's "
                        "rows from 128 j on: is the tile's column taken for its row where A is loaded?"));
  CHECK_THAT(
      exchanged(128, 64, false, false, true),
      ContainsSubstring("holds the product of B's columns from 64 i on: is the tile's row taken for its "
                        "column where B is loaded?"));
  CHECK_THAT(exchanged(128, 64, true, false, true), ContainsSubstring("of B's columns from 128 i on: "));
}

TEST_CASE("A first K tile of A or B that begins at the tile's column or row along K is named") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto complaint = [](const std::function<std::pair<int, int>(int row, int column)>& first_k_of) {
    const ladder::Multiply multiply = [&](const ladder::Gemm& gemm) {
      const auto a = ladder::download(gemm.a, size_t(gemm.m) * gemm.k),
                 b = ladder::download(gemm.b, size_t(gemm.k) * gemm.n);
      std::vector<__nv_bfloat16> c(size_t(gemm.m) * gemm.n);
      for (int row = 0; row < gemm.m; ++row)
        for (int column = 0; column < gemm.n; ++column) {
          const auto [of_a, of_b] = first_k_of(row, column);
          float sum = 0;
          for (int k = 0; k + std::max(of_a, of_b) < gemm.k; ++k)
            sum += ladder::to_float(a[size_t(row) * gemm.k + k + of_a]) *
                   ladder::to_float(b[size_t(k + of_b) * gemm.n + column]);
          c[size_t(row) * gemm.n + column] = ladder::to_bf16(sum);
        }
      ladder::copy_to_device(gemm.c, c.data(), c.size() * sizeof c[0]);
    };
    return ladder::Verifier({131, 136, 264}, 7).check_exact(multiply).complaint;
  };
  CHECK_THAT(complaint([](int row, int) { return std::pair(0, row / 128 * 128); }),
             ContainsSubstring("a tile of C that begins at row r was computed with B from row r on, not from "
                               "row 0: does B's first tile begin at k = 0?"));
  CHECK_THAT(
      complaint([](int, int column) { return std::pair(column / 64 * 64, 0); }),
      ContainsSubstring("a tile of C that begins at column c was computed with A from column c on, not "
                        "from column 0: does A's first tile begin at k = 0?"));
  CHECK_THAT(complaint([](int row, int) { return std::pair(0, row % 128 / 64 * 128); }),
             !ContainsSubstring("first tile begin"));
}

TEST_CASE("Tiles of C of which only some hold those of exchanged places are not said to be exchanged") {
  const auto exchanged_if = [](const std::function<bool(int i, int j)>& is_exchanged) {
    return complaint_of_places(256, 256, [&](int row, int column) {
      const int i = row / 64, j = column / 64;
      return is_exchanged(i, j) ? std::pair(j * 64 + row % 64, i * 64 + column % 64) : std::pair(row, column);
    });
  };
  const std::string all = exchanged_if([](int, int) { return true; });
  CHECK_THAT(all, ContainsSubstring("at (i, j) holds that of (j, i)"));
  CHECK_THAT(exchanged_if([](int i, int j) { return i + j != 3; }), !ContainsSubstring("(j, i)"));
  CHECK_THAT(exchanged_if([](int i, int j) { return i < j; }), !ContainsSubstring("(j, i)"));
  // Another tile holds zeros.
  CHECK_THAT(complaint_of_places(256, 256,
                                 [](int row, int column) {
                                   const int i = row / 64, j = column / 64;
                                   return i + j == 6 ? std::pair(999, 0)
                                                     : std::pair(j * 64 + row % 64, i * 64 + column % 64);
                                 }),
             !ContainsSubstring("(j, i)"));
}

TEST_CASE("What holds of a tile's first rows is not said of the tile") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto complaint = [](int rows_of_zeros) {
    return complaint_of_places(128, 128, [=](int row, int column) {
      if (row < 64) return std::pair(row, column);
      return row < 64 + rows_of_zeros ? std::pair(999, 0)
                                      : std::pair((row * 37 + column * 11) % 128, (column * 29 + row) % 128);
    });
  };
  CHECK_THAT(complaint(64), ContainsSubstring("in tile row 1, tile column 0: C holds zeros"));
  CHECK_THAT(complaint(8), !ContainsSubstring("tile column 0: C holds zeros"));
  CHECK_THAT(complaint(8), ContainsSubstring("in row 64: C holds zeros"));
}

TEST_CASE("Columns that repeat in each tile are named, and staging where all of B was loaded") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto repeated = [](int row, int column) { return std::pair(row, column / 256 * 256 + column % 64); };
  const std::string fact = "of every 256 columns of C, each 64 hold what belongs to the first 64";
  CHECK_THAT(complaint_of_places(64, 520, repeated),
             ContainsSubstring(
                 fact + ": is the column of a piece missing where sums are staged, or where B is loaded?"));
  // One tile alone: the tile's column may be missing.
  CHECK_THAT(complaint_of_places(64, 256, repeated), !ContainsSubstring("of every 256"));
  // Not in the last tile.
  CHECK_THAT(complaint_of_places(64, 520,
                                 [&](int row, int column) {
                                   return column < 256 ? repeated(row, column) : std::pair(row, column);
                                 }),
             !ContainsSubstring("of every 256"));

  ladder::Reference reference{{1, 512, 1}, {0}, {}};
  for (int column = 0; column < 512; ++column) reference.values.push_back(column % 250 - 125);
  ladder::WrongElements wrong(reference);
  for (int column = 0; column < 512; ++column) {
    const double held = reference.values[static_cast<size_t>(column / 256 * 256 + column % 64)];
    const double due = reference.values[static_cast<size_t>(column)];
    if (held != due) wrong.add(0, column, due, ladder::to_bf16(static_cast<float>(held)));
  }
  const std::vector<__nv_bfloat16> a(1), b(512);
  const auto explained = [&](const ladder::MadeBy& made_by) {
    return ladder::explain(wrong, reference, /*is_exact=*/true, a, b, made_by);
  };
  CHECK(explained({true, true, "gemm.cuh:87"}) ==
        fact +
            ", and all columns of B were loaded: is the column of a piece missing where sums are staged "
            "(gemm.cuh:87)?");
  CHECK(explained({false}) == fact + ": is the column of a piece missing where B is loaded or multiplied?");
}

TEST_CASE(
    "Rows that repeat in each tile are named, and the descriptor where warpgroups took the same places") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto repeated = [](int tile, int piece, int taken) {
    return [=](int row, int column) {
      return std::pair(row / tile * tile + taken * piece + row % piece, column);
    };
  };
  const std::string fact = "data seed 7)\n  of every 128 rows of C, each 64 hold what belongs to the ";
  CHECK_THAT(
      complaint_of_places(131, 72, repeated(128, 64, 0)),
      ContainsSubstring(fact + "first 64: is the row that tells one piece from the next missing where A is "
                               "loaded, or multiplied, or where sums are staged?; "));
  CHECK_THAT(complaint_of_places(131, 72, repeated(128, 64, 1)), ContainsSubstring(fact + "last 64: is"));
  CHECK_THAT(complaint_of_places(387, 72, repeated(256, 128, 0)),
             ContainsSubstring("of every 256 rows of C, each 128 hold what belongs to the first 128: "));
  // One tile alone, and another one that is wrong otherwise.
  CHECK_THAT(complaint_of_places(128, 72, repeated(128, 64, 0)), !ContainsSubstring("of every"));
  CHECK_THAT(complaint_of_places(131, 72,
                                 [&](int row, int column) {
                                   return row == 130 ? std::pair(0, column)
                                                     : repeated(128, 64, 0)(row, column);
                                 }),
             !ContainsSubstring("of every 128 rows"));

  ladder::Reference reference{{256, 64, 1}, {}, {}};
  std::vector<__nv_bfloat16> a, b(64, ladder::to_bf16(1));
  for (int row = 0; row < 256; ++row) {
    reference.rows.push_back(row);
    a.push_back(ladder::to_bf16(static_cast<float>(row % 250 - 125)));
    reference.values.insert(reference.values.end(), 64, row % 250 - 125);
  }
  ladder::WrongElements wrong(reference);
  for (int row = 0; row < 256; ++row)
    for (int column = 0; column < 64 && row % 128 >= 64; ++column)
      wrong.add(row, column, row % 250 - 125, a[static_cast<size_t>(row - 64)]);
  ladder::MadeBy made_by;
  made_by.multiplied_by = "wgmma at core.cuh:35";
  made_by.warpgroups_share_operands = true;
  CHECK(
      ladder::explain(wrong, reference, /*is_exact=*/true, a, b, made_by) ==
      "of every 128 rows of C, each 64 hold what belongs to the first 64, and all warpgroups of a block took "
      "A "
      "and B from the same places in shared memory: is the warpgroup's row missing in A's matrix descriptor "
      "(wgmma at core.cuh:35)?");
}

TEST_CASE("Pieces of a tile that take each other's place are named, and a C that is moved as a whole") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());  // not within a CHECK
  const auto exchanged = [](bool is_row, int piece) {
    return complaint_of_places(131, 264, [=](int row, int column) {
      return is_row ? std::pair(row ^ piece, column) : std::pair(row, column ^ piece);
    });
  };
  CHECK_THAT(
      exchanged(true, 64),
      ContainsSubstring("data seed 7)\n  of every 128 rows of C, the first 64 hold what belongs to the "
                        "others, and the others what belongs to the first: are two parts of a tile "
                        "exchanged where A is loaded, or multiplied, or where sums are staged or stored?"));
  CHECK_THAT(exchanged(false, 128), ContainsSubstring("of every 256 columns of C, the first 128 hold"));
  CHECK_THAT(exchanged(false, 64), ContainsSubstring("exchanged where B is loaded"));
  // The first tile alone.
  CHECK_THAT(complaint_of_places(
                 256, 64, [](int row, int column) { return std::pair(row < 128 ? row ^ 64 : row, column); }),
             !ContainsSubstring("of every"));
  CHECK_THAT(
      complaint_of_places(200, 72, [](int row, int column) { return std::pair(row + 64, column); }),
      ContainsSubstring("all of C holds what belongs 64 rows further down, and zeros where that lies outside "
                        "C: is 64 added to, or missing in, the row where A is loaded or multiplied?"));
  CHECK_THAT(complaint_of_places(512, 64,
                                 [](int row, int column) {
                                   const int t = row / 128;
                                   return std::pair((t / 2 + t % 2) * 128 + row % 128, column);
                                 }),
             ContainsSubstring(
                 "tile t of C, of 128 rows, holds what belongs to tile t / 2 + t % 2: where A is "
                 "loaded, is the number of a pair of tiles not multiplied by 2, or are tiles of 256 rows "
                 "taken from row 128 t?"));
}

TEST_CASE("Rows or columns that lie in another order in each tile are named") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());  // not within a CHECK
  const auto strided = [](int i) { return i / 128 * 128 + i % 128 % 8 * 16 + i % 128 / 8; };
  const auto row = [&](int i, int j) { return std::pair(strided(i), j); };
  const std::string of_rows = "in each 128 rows of C, row 8 y + i holds what belongs to row 16 i + y (i < 8)",
                    asked =
                        ": do a thread's sums lie apart where they are multiplied and side by side where "
                        "they are stored, or the other way round?";
  CHECK_THAT(complaint_of_places(131, 136, row), ContainsSubstring("\n  " + of_rows + asked));
  CHECK_THAT(complaint_of_places(131, 136, [&](int i, int j) { return std::pair(strided(i), strided(j)); }),
             ContainsSubstring("\n  " + of_rows +
                               ", and in each 128 columns of C, column 8 y + i holds what "
                               "belongs to column 16 i + y (i < 8)" +
                               asked));
  CHECK_THAT(
      complaint_of_places(70, 72, [](int i, int j) { return std::pair(i, j ^ 8 ^ (j / 4 % 2)); }),
      ContainsSubstring("\n  in each 16 columns of C, the columns lie in another order: column 0 holds what "
                        "belongs to column 8, column 1 holds what belongs to column 9 and so on: are they in "
                        "one order where B is loaded or multiplied, and in another where sums are stored?"));
  // The first tile alone, and one that ends beyond C.
  CHECK_THAT(
      complaint_of_places(256, 72, [&](int i, int j) { return i < 128 ? row(i, j) : std::pair(i, j); }),
      !ContainsSubstring("in each"));
  CHECK_THAT(complaint_of_places(96, 72, row), !ContainsSubstring("in each"));
}

TEST_CASE("A tile's number that is taken for its row is named where C has two tiles alone") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());  // not within a CHECK
  const auto moved = [](int by) {
    return complaint_of_places(
        131, 72, [=](int row, int column) { return std::pair(row < 128 ? row : row - by, column); });
  };
  CHECK_THAT(moved(127),
             ContainsSubstring("in tiles of 128 rows, tile t of C, at row 128 t, holds what begins at "
                               "row t: is A loaded from row t there?"));
  CHECK_THAT(moved(120), !ContainsSubstring("tile t of C"));
  // The tile's column by the other width: zeros where that is outside.
  CHECK_THAT(
      complaint_of_places(
          131, 520, [](int row, int column) { return std::pair(column / 256 * 256 + row % 128, column); }),
      ContainsSubstring("in tiles of 128 x 256 elements, the tile of C at (i, j) holds the product of A's "
                        "rows from 256 j on: is the tile's column taken for its row where A is loaded?"));
}

TEST_CASE("A C that is stored with another pitch is named, also where that leaves C") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto complaint = [](int rows, int columns, int pitch, bool spoils_one = false) {
    return ladder::Verifier({rows, columns, 200}, 7)
        .check_exact([=](const ladder::Gemm& gemm) {
          const auto held = ladder::download(gemm.c, size_t(gemm.m) * gemm.n);
          ladder::fake::multiply(gemm);
          const auto right = ladder::download(gemm.c, held.size());
          std::vector<__nv_bfloat16> c = held;
          for (int row = 0; row < rows; ++row)
            for (int column = 0; column < std::min(columns, pitch); ++column)
              if (const size_t at = size_t(row) * pitch + column; at < c.size())
                c[at] = right[size_t(row) * columns + column];
          if (spoils_one) c[5] = ladder::to_bf16(99);
          ladder::copy_to_device(gemm.c, c.data(), c.size() * sizeof c[0]);
        })
        .complaint;
  };
  const std::string fact = "element (i, j) of C was stored at element ";
  CHECK_THAT(
      complaint(70, 136, 128),
      ContainsSubstring(fact + "128 i + j, and rows of C are N = 136 long: the pitch of C is 128 where sums "
                               "are stored: is that the tile's width?; "));
  CHECK_THAT(complaint(70, 136, 70),
             ContainsSubstring("the pitch of C is 70 where sums are stored, and M is that"));
  CHECK_THAT(complaint(70, 136, 200), ContainsSubstring("is 200 where sums are stored, and K is that"));
  CHECK_THAT(complaint(70, 136, 144), ContainsSubstring("the pitch of C is 144 where sums are stored; "));
  CHECK_THAT(complaint(70, 136, 128, true), !ContainsSubstring("pitch of C"));
}

TEST_CASE("Halves of K tiles that two loads exchange, take twice or take from other columns are named") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto of_b = [](const std::function<int(int k)>& instead) {
    return complaint_of_terms([&](int, int, int k) -> Term { return {k, instead(k)}; });
  };
  // The same sums.
  for (const auto& words :
       {of_b([](int k) { return k ^ 32; }), complaint_of_terms([](int, int, int k) -> Term {
          return {k ^ 32, k};
        })})
    CHECK_THAT(words,
               ContainsSubstring("k = 0 to 31 of each K tile of A was multiplied by k = 32 to 63 of B's, "
                                 "and the other way round: do two blocks, or two loads, bring each half of "
                                 "a K tile, of A or of B, to the place of the other half?"));
  CHECK_THAT(
      of_b([](int k) { return k / 64 * 64 + (k / 64 % 2 ? 32 : 0) + k % 32; }),
      ContainsSubstring("of every second K tile of B, rows 0 to 31 were taken for all 64, and of the others "
                        "32 to 63: is the half that a block loads that of its part of K, not its own?"));
  CHECK_THAT(of_b([](int k) { return k / 64 % 2 ? k : k ^ 32; }), !ContainsSubstring("the other way round"));

  const auto panels = [](const std::function<bool(int k)>& is_other) {
    return ladder::Verifier({96, 136, 296}, 7)
        .check_exact([&](const ladder::Gemm& gemm) {
          const auto a = ladder::download(gemm.a, size_t(gemm.m) * gemm.k);
          const auto b = ladder::download(gemm.b, size_t(gemm.k) * gemm.n);
          std::vector<__nv_bfloat16> c(size_t(gemm.m) * gemm.n);
          for (int row = 0; row < gemm.m; ++row)
            for (int column = 0; column < gemm.n; ++column) {
              float sum = 0;
              for (int k = 0; k < gemm.k; ++k) {
                const int from = is_other(k) ? column ^ 64 : column;
                if (from < gemm.n)
                  sum += ladder::to_float(a[row * gemm.k + k]) * ladder::to_float(b[k * gemm.n + from]);
              }
              c[row * gemm.n + column] = ladder::to_bf16(sum);
            }
          ladder::copy_to_device(gemm.c, c.data(), c.size() * sizeof c[0]);
        })
        .complaint;
  };
  CHECK_THAT(panels([](int k) { return k / 64 % 2 != k / 32 % 2; }),
             ContainsSubstring(
                 "of B, rows 32 to 63 of K tiles 0, 2, ... and rows 0 to 31 of K tiles 1, 3, ... were "
                 "taken from the other 64 columns of every 128: do the blocks that load the two halves "
                 "of a K tile order its panels of 64 columns differently?"));
  CHECK_THAT(panels([](int k) { return k / 32 % 2 == 1; }),
             ContainsSubstring("of B, rows 32 to 63 of each K tile"));
  CHECK_THAT(panels([](int k) { return k == 40 || k == 99; }), !ContainsSubstring("of every 128"));
}

TEST_CASE("Where no sums can have been staged, a staging tile is not blamed") {
  constexpr int kSize = 128;
  ladder::Reference reference{{kSize, kSize, 1}, {}, {}};
  std::vector<__nv_bfloat16> a, b;
  const auto of_a = [](int row) { return (row * row + row / 64 * 5 + 3) % 17 - 8; };
  const auto of_b = [](int column) { return (column * column + column / 64 * 4 + 2) % 13 - 6; };
  for (int i = 0; i < kSize; ++i) {
    a.push_back(ladder::to_bf16(static_cast<float>(of_a(i))));
    b.push_back(ladder::to_bf16(static_cast<float>(of_b(i))));
    reference.rows.push_back(i);
    for (int column = 0; column < kSize; ++column) reference.values.push_back(of_a(i) * of_b(column));
  }
  ladder::WrongElements wrong(reference);
  for (int row = 64; row < kSize; ++row)
    for (int column = 0; column < kSize; ++column)
      if (of_a(row) != of_a(row - 64) && of_b(column))
        wrong.add(row, column, of_a(row) * of_b(column),
                  ladder::to_bf16(static_cast<float>(of_a(row - 64) * of_b(column))));
  const auto explained = [&](bool may_be_staged) {
    return ladder::explain(wrong, reference, /*is_exact=*/true, a, b, {may_be_staged});
  };
  CHECK_THAT(explained(true), ContainsSubstring("or a staging tile held other sums when it was stored"));
  CHECK_THAT(explained(false),
             ContainsSubstring("C holds what belongs 64 rows up: both places hold it, and the "
                               "columns are right: the row is off where A is loaded or "
                               "multiplied") &&
                 !ContainsSubstring("stag"));
}

TEST_CASE("Tiles whose number is multiplied by another width than theirs are named") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto columns = [](int width, int instead, int all = 520) {
    return complaint_of_places(140, all, [=](int row, int column) {
      return std::pair(row, column / width * instead + column % width);
    });
  };
  CHECK_THAT(columns(256, 128),
             ContainsSubstring("data seed 7)\n  in tiles of 256 columns, tile t of C, at column 256 t, holds "
                               "what begins at column 128 t: is B loaded from column 128 t there?; "));
  CHECK_THAT(columns(128, 256), ContainsSubstring("in tiles of 128 columns, tile t of C, at column 128 t, "
                                                  "holds what begins at column 256 t: is B loaded"));
  CHECK_THAT(columns(128, 1), ContainsSubstring("holds what begins at column t: is B loaded from column t"));
  CHECK_THAT(columns(128, 0), ContainsSubstring("holds what begins at column 0: is B loaded from column 0"));
  CHECK_THAT(complaint_of_places(
                 330, 64, [](int row, int column) { return std::pair(row / 128 * 64 + row % 128, column); }),
             ContainsSubstring("in tiles of 128 rows, tile t of C, at row 128 t, holds what begins at row 64 "
                               "t: is A loaded from row 64 t there?"));
  // Pieces of one tile, which staging may place so; one distance; and more than that is wrong.
  CHECK_THAT(columns(64, 32, 256), !ContainsSubstring("tile t of C"));
  CHECK_THAT(columns(256, 128, 500), !ContainsSubstring("tile t of C"));
  CHECK_THAT(complaint_of_places(64, 520,
                                 [](int row, int column) {
                                   return row == 7 ? std::pair(8, column)
                                                   : std::pair(row, column / 256 * 128 + column % 256);
                                 }),
             !ContainsSubstring("tile t of C"));
}

namespace {

/// C [128, 136] of small integers as wgmma makes it, whose descriptors of tiles of 128 x 64 and 64 x 128
/// elements, swizzled, have these strides; behind a tile lies something else.
struct Descriptors {
  int step_of_a = 32, stride_of_a = 1024, step_of_b = 2048, stride_of_b = 1024, leading_of_b = 8192;
  bool spoils_one = false;

  std::string explained(const std::string& multiplied_by = "wgmma at core.cuh:35") const {
    constexpr int kRows = 128, kColumns = 136, kSum = 136, kTile = 64, kPanelRow = 128, kOfTile = 16384;
    std::vector<__nv_bfloat16> a, b;
    for (int i = 0; i < kRows * kSum; ++i)
      a.push_back(ladder::to_bf16(static_cast<float>((i * 7919 + i / 31 * 13) % 5 - 2)));
    for (int i = 0; i < kSum * kColumns; ++i)
      b.push_back(ladder::to_bf16(static_cast<float>((i * 6841 + i / 29 * 17) % 5 - 2)));
    const auto swizzled = [](int byte) { return byte ^ (byte >> 3 & 0x70); };
    std::vector<float> right(kRows * kColumns), held(right.size());
    for (int k_tile = 0; k_tile < kSum; k_tile += kTile)
      for (int first = 0; first < kColumns; first += 128) {
        std::vector<float> tile_a(4 * kOfTile, 3), tile_b(4 * kOfTile, 3);  // by bytes
        for (int i = 0; i < 128; ++i)
          for (int k = 0; k < kTile; ++k) {
            const bool has_k = k_tile + k < kSum;
            tile_a[swizzled(i * kPanelRow + k * 2)] = has_k ? ladder::to_float(a[i * kSum + k_tile + k]) : 0;
            tile_b[swizzled(i / kTile * 8192 + k * kPanelRow + i % kTile * 2)] =
                has_k && first + i < kColumns ? ladder::to_float(b[(k_tile + k) * kColumns + first + i]) : 0;
          }
        const auto add = [&](std::vector<float>& c, const Descriptors& is) {
          for (int row = 0; row < kRows; ++row)
            for (int column = first; column < std::min(first + 128, kColumns); ++column)
              for (int k = 0; k < kTile; ++k) {
                const int j = column - first, from_a = row / 64 * 64 * kPanelRow +
                                                       row % 64 / 8 * is.stride_of_a + row % 8 * kPanelRow +
                                                       k / 16 * is.step_of_a + k % 16 * 2;
                const int from_b = j / kTile * is.leading_of_b + k / 16 * is.step_of_b +
                                   k % 16 / 8 * is.stride_of_b + k % 8 * kPanelRow + j % kTile * 2;
                c[row * kColumns + column] += tile_a[swizzled(from_a)] * tile_b[swizzled(from_b)];
              }
        };
        add(right, {});
        add(held, *this);
      }
    if (spoils_one) held[20 * kColumns + 5] += 1;
    ladder::Reference reference{{kRows, kColumns, kSum}, {}, {right.begin(), right.end()}};
    for (int row = 0; row < kRows; ++row) reference.rows.push_back(row);
    ladder::WrongElements wrong(reference);
    for (int i = 0; i < kRows * kColumns; ++i)
      if (held[i] != right[i]) wrong.add(i / kColumns, i % kColumns, right[i], ladder::to_bf16(held[i]));
    ladder::MadeBy made_by;
    made_by.multiplied_by = multiplied_by;
    made_by.offsets_of_a[1] = static_cast<unsigned>(stride_of_a);
    made_by.offsets_of_b = {static_cast<unsigned>(leading_of_b), static_cast<unsigned>(stride_of_b)};
    return wrong.count() ? ladder::explain(wrong, reference, /*is_exact=*/true, a, b, made_by) : "right";
  }
};

}  // namespace

TEST_CASE("A descriptor whose stride is wrong is named, and what a step along K adds to it") {
  CHECK(Descriptors{}.explained() == "right");
  CHECK(Descriptors{.stride_of_a = 512}.explained() ==
        "in tile row 0, tile column 0: wgmma at core.cuh:35 took the next 8 rows of A 512 bytes further on, "
        "and they lie 1024 bytes further on: the stride offset in A's matrix descriptor is wrong");
  CHECK_THAT(Descriptors{.stride_of_a = 2048}.explained(),
             ContainsSubstring("took the next 8 rows of A 2048 bytes further on, and they lie 1024 bytes"));
  CHECK_THAT(
      Descriptors{.step_of_a = 64}.explained(),
      ContainsSubstring("took the next 16 columns of A 64 bytes further on, and they lie 32 bytes further "
                        "on: what a step along K adds to A's matrix descriptor is wrong"));
  CHECK_THAT(
      Descriptors{.step_of_b = 32}.explained(),
      ContainsSubstring("took the next 16 rows of B 32 bytes further on, and they lie 2048 bytes further "
                        "on: what a step along K adds to B's matrix descriptor is wrong"));
  CHECK_THAT(
      Descriptors{.stride_of_b = 128}.explained(),
      ContainsSubstring("took the next 8 rows of B 128 bytes further on, and they lie 1024 bytes further "
                        "on: the stride offset in B's matrix descriptor is wrong"));
  CHECK_THAT(Descriptors{.leading_of_b = 1024}.explained(),
             ContainsSubstring("took the next 64 columns of B 1024 bytes further on, and they lie 8192 bytes "
                               "further on: the leading offset in B's matrix descriptor is wrong"));
  CHECK_THAT(Descriptors{.leading_of_b = 0}.explained(),
             ContainsSubstring("took the next 64 columns of B 0 bytes further on, and they lie 8192 bytes"));
  CHECK(Descriptors({.stride_of_b = 8192, .leading_of_b = 1024}).explained() ==
        "in tile row 0, tile column 0: wgmma at core.cuh:35 took the next 8 rows of B 8192 bytes further on "
        "and the next 64 columns 1024, and they lie 1024 and 8192 bytes further on: the leading and the "
        "stride offset in B's matrix descriptor are exchanged");
  CHECK_THAT(
      Descriptors({.stride_of_b = 2048, .leading_of_b = 144 * 16}).explained(),
      ContainsSubstring("took the next 8 rows of B 2048 bytes further on and the next 64 columns 2304, "
                        "and they lie 1024 and 8192 bytes further on: the leading and the stride "
                        "offset in B's matrix descriptor are wrong"));
  // Not where something else is wrong, too, nor where wgmma is not known to have multiplied.
  CHECK_THAT(Descriptors({.stride_of_a = 512, .spoils_one = true}).explained(),
             !ContainsSubstring("descriptor is wrong;"));
  CHECK_THAT(Descriptors({.stride_of_b = 8192, .leading_of_b = 1024, .spoils_one = true}).explained(),
             !ContainsSubstring("exchanged"));
  CHECK_THAT(Descriptors{.stride_of_a = 512}.explained(""), !ContainsSubstring("descriptor"));
}

namespace {

/// Multiplies 96 x 72 x 296 with elements of A and B taken from where the functions say; then changes C.
struct Mistaken {
  Mistaken() { ladder::testing::skip_unless_runnable(ladder::fake::lesson()); }

  using Index = std::function<size_t(const ladder::Gemm&, int outer, int k)>;
  Index of_a = [](const ladder::Gemm& g, int row, int k) { return size_t(row) * g.k + k; };
  Index of_b = [](const ladder::Gemm& g, int column, int k) { return size_t(k) * g.n + column; };
  bool is_a_in_b = false, is_b_in_a = false;  ///< are these the places of elements of the other operand?
  std::function<float(const std::vector<float>& right, const ladder::Gemm&, int row, int column)> change =
      [](const auto& right, const ladder::Gemm& g, int row, int column) { return right[row * g.n + column]; };

  std::string complaint() const {
    const ladder::Multiply multiply = [this](const ladder::Gemm& g) {
      const std::vector<__nv_bfloat16> a = ladder::download(g.a, size_t(g.m) * g.k),
                                       b = ladder::download(g.b, size_t(g.k) * g.n);
      const auto at = [](const std::vector<__nv_bfloat16>& matrix, size_t index) {
        return index < matrix.size() ? ladder::to_float(matrix[index]) : 0;
      };
      std::vector<float> product(size_t(g.m) * g.n);
      for (int row = 0; row < g.m; ++row)
        for (int column = 0; column < g.n; ++column)
          for (int k = 0; k < g.k; ++k)
            product[row * g.n + column] +=
                at(is_a_in_b ? b : a, of_a(g, row, k)) * at(is_b_in_a ? a : b, of_b(g, column, k));
      std::vector<__nv_bfloat16> c(product.size());
      for (int row = 0; row < g.m; ++row)
        for (int column = 0; column < g.n; ++column)
          c[row * g.n + column] = ladder::to_bf16(change(product, g, row, column));
      ladder::copy_to_device(g.c, c.data(), c.size() * sizeof c[0]);
    };
    return ladder::Verifier({96, 72, 296}, 7).check_exact(multiply).complaint;
  }
};

}  // namespace

TEST_CASE("An operand that is read with another pitch, transposed or from the wrong rows is named") {
  Mistaken mistaken;
  CHECK(mistaken.complaint() == "");
  mistaken.of_b = [](const ladder::Gemm& g, int column, int k) { return size_t(k) * g.k + column; };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring("B was read with the pitch K = 296, and its rows are N = 72 long"));
  // The same as a copy that takes B for a matrix of N rows and K columns: beyond these it fills in zeros.
  mistaken.of_b = [](const ladder::Gemm& g, int column, int k) {
    return k < g.n ? size_t(k) * g.k + column : size_t(-1);
  };
  CHECK_THAT(mistaken.complaint(), ContainsSubstring("B was read with the pitch K = 296"));
  mistaken.of_b = [](const ladder::Gemm& g, int column, int k) {
    return column + 8 < g.n ? size_t(k) * g.n + column + 8 : size_t(-1);
  };
  CHECK_THAT(
      mistaken.complaint(),
      ContainsSubstring("C holds what belongs 8 columns to the right: the column is off where B is loaded or "
                        "multiplied, or where the sums are staged or stored"));
  mistaken = {};
  mistaken.of_a = [](const ladder::Gemm& g, int row, int k) {
    return row + 8 < g.m ? size_t(row + 8) * g.k + k : size_t(-1);
  };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring("C holds what belongs 8 rows further down: the row is off where A"));
  mistaken.of_a = [](const ladder::Gemm& g, int row, int k) { return size_t(row) * g.n + k; };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring("A was read with the pitch N = 72, and its rows are K = 296 long"));
  mistaken.of_a = [](const ladder::Gemm& g, int row, int k) {
    return k < g.m ? size_t(k) * g.k + row : size_t(-1);
  };
  CHECK_THAT(mistaken.complaint(), ContainsSubstring("A was read transposed"));
}

TEST_CASE("Tiles that are swizzled where they are stored or where they are read, but not both, are named") {
  const auto swizzled = [](int row, int column) { return column ^ (row % 8 * 8); };
  Mistaken of_a, of_b;
  of_a.of_a = [=](const ladder::Gemm& g, int row, int k) {
    return swizzled(row, k) < g.k ? size_t(row) * g.k + swizzled(row, k) : size_t(-1);
  };
  of_b.of_b = [=](const ladder::Gemm& g, int column, int k) {
    return swizzled(k, column) < g.n ? size_t(k) * g.n + swizzled(k, column) : size_t(-1);
  };
  const std::string a = of_a.complaint(), b = of_b.complaint();
  CHECK_THAT(a,
             ContainsSubstring("tiles of A are swizzled where they are stored and not where they are read"));
  CHECK_THAT(b,
             ContainsSubstring("tiles of B are swizzled where they are stored and not where they are read"));
}

TEST_CASE("A tile that holds the other operand's elements is named, and one that is stored too narrow") {
  // Place `at` of a tile of so many columns that begins at (row, column).
  const auto place = [](int row, int column, int at, int width, int rows, int columns) {
    row += at / width, column += at % width;
    return row < rows && column < columns ? size_t(row) * columns + column : size_t(-1);
  };
  Mistaken in_b;
  in_b.is_b_in_a = true;  // 96 rows of A lie in one tile
  in_b.of_b = [=](const ladder::Gemm& g, int column, int k) {
    return place(0, k / 64 * 64, k % 64 * 128 + column % 128, 64, g.m, g.k);
  };
  const std::string of_b = in_b.complaint();  // a test is not skipped within a CHECK
  CHECK_THAT(
      of_b, ContainsSubstring("in place of a tile of B, elements of A were multiplied, in the order in which "
                              "the 128 x 64 of its tile follow each other: is A's tile stored where B's "
                              "belongs?"));
  Mistaken in_a;
  in_a.is_a_in_b = true;
  in_a.of_a = [=](const ladder::Gemm& g, int row, int k) {
    return place(k / 64 * 64, 0, row % 128 * 64 + k % 64, 128, g.k, g.n);
  };
  const std::string of_a = in_a.complaint();
  CHECK_THAT(of_a,
             ContainsSubstring("in place of a tile of A, elements of B were multiplied, in the order in "
                               "which the 64 x 128 of its tile"));
  Mistaken narrow;
  narrow.of_b = [=](const ladder::Gemm& g, int column, int k) {
    const int row = column % 128 / 64 * 64 + k % 64;
    return place(k / 64 * 64 + row / 2, column / 128 * 128, row % 2 * 64 + column % 64, 128, g.k, g.n);
  };
  const std::string of_narrow = narrow.complaint();
  CHECK_THAT(
      of_narrow,
      ContainsSubstring("row r of each K tile of B, 128 wide, lies in rows 2 r and 2 r + 1 of its panels, 64 "
                        "wide: is 64 taken for the tile's width where B is stored to shared memory?"));
}

TEST_CASE("Squares of an operand that are multiplied transposed are named") {
  const auto place = [](int row, int column, int rows, int columns) {
    return row < rows && column < columns ? size_t(row) * columns + column : size_t(-1);
  };
  const auto exchanged = [](int to, int from, int width) { return to / width * width + from % width; };
  const auto with_a = [&](int width) {
    Mistaken mistaken;
    mistaken.of_a = [=](const ladder::Gemm& g, int row, int k) {
      return place(exchanged(row, k, width), exchanged(k, row, width), g.m, g.k);
    };
    return mistaken.complaint();
  };
  const auto with_b = [&](int width) {
    Mistaken mistaken;
    mistaken.of_b = [=](const ladder::Gemm& g, int column, int k) {
      return place(exchanged(k, column, width), exchanged(column, k, width), g.k, g.n);
    };
    return mistaken.complaint();
  };
  for (const int width : {8, 32, 64}) {
    const std::string each =
        "each square of " + std::to_string(width) + " x " + std::to_string(width) + " elements of ";
    const std::string of_a = with_a(width), of_b = with_b(width);  // a test is not skipped within a CHECK
    CHECK_THAT(of_a, ContainsSubstring(each + "A was multiplied transposed: the indices of row and "
                                              "column are exchanged where its tile is read"));
    CHECK_THAT(of_b, ContainsSubstring(each + "B was multiplied transposed: "));
  }
  const std::string of_b = with_b(24);
  CHECK_THAT(of_b, !ContainsSubstring("transposed"));
}

TEST_CASE("Tiles that do not follow K from step to step are named") {
  Mistaken mistaken;
  mistaken.of_b = [](const ladder::Gemm& g, int column, int k) { return size_t(k % 64) * g.n + column; };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring(
                 "every K tile of B was loaded from k = 0 to 63: its tiles must go down from step to step"));
  mistaken.of_b = [](const ladder::Gemm& g, int column, int k) {
    const int there = column + k / 64 * 64;
    return there < g.n ? size_t(k % 64) * g.n + there : size_t(-1);
  };
  CHECK_THAT(
      mistaken.complaint(),
      ContainsSubstring("every K tile of B was loaded from k = 0 to 63, 64 columns further right each time"));
  mistaken = {};
  mistaken.of_a = [](const ladder::Gemm& g, int row, int k) { return size_t(row) * g.k + k % 64; };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring("every K tile of A was loaded from k = 0 to 63: its tiles must go right"));
}

TEST_CASE("Tiles of A that go down while those of B go right are named, if both do from step to step") {
  Mistaken mistaken;
  const auto a_goes = [](int down) {
    return [down](const ladder::Gemm& g, int row, int k) {
      const int there = row + k / 32 * down;
      return there < g.m ? size_t(there) * g.k + k % 32 : size_t(-1);
    };
  };
  mistaken.of_a = a_goes(16);
  mistaken.of_b = [](const ladder::Gemm& g, int column, int k) {
    const int there = column + k / 32 * 16;
    return there < g.n ? size_t(k % 32) * g.n + there : size_t(-1);
  };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring("every K tile of A and of B was loaded from k = 0 to 31, of A 16 rows further "
                               "down each time, of B 16 columns further right: A's tiles must go right from "
                               "step to step, and B's down; all"));
  mistaken.of_a = a_goes(24);  // no tile is as high
  CHECK_THAT(mistaken.complaint(), !ContainsSubstring("further down"));
}

TEST_CASE("Sums that begin anew with a later K tile are named") {
  Mistaken mistaken;
  mistaken.of_a = [](const ladder::Gemm& g, int row, int k) {
    return k < 192 ? size_t(-1) : size_t(row) * g.k + k;
  };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring("C lacks the products of k = 0 to 191: do the sums begin anew "
                               "with K tile 3 (of 5, 64 wide)?"));
}

TEST_CASE("Sums that begin anew within a K tile are named") {
  Mistaken mistaken;
  for (const int first : {16, 48, 240}) {
    mistaken.of_a = [=](const ladder::Gemm& g, int row, int k) {
      return k < first ? size_t(-1) : size_t(row) * g.k + k;
    };
    const std::string complaint = mistaken.complaint();
    CHECK_THAT(complaint,
               ContainsSubstring("C lacks the products of k = 0 to " + std::to_string(first - 1) +
                                 ": do the sums begin anew with k = " + std::to_string(first) + "?"));
  }
}

TEST_CASE("Tiles that are loaded with row and column exchanged are named") {
  const auto place = [](int row, int column, int rows, int columns) {
    return row < rows && column < columns ? size_t(row) * columns + column : size_t(-1);
  };
  Mistaken mistaken;
  mistaken.of_a = [&](const ladder::Gemm& g, int row, int k) {
    return place(k / 64 * 64 + row % 64, row / 64 * 64 + k % 64, g.m, g.k);
  };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring("A's tiles were loaded from places with row and column exchanged"));
  mistaken = {};
  mistaken.of_b = [&](const ladder::Gemm& g, int column, int k) {
    return place(column / 64 * 64 + k % 64, k / 64 * 64 + column % 64, g.k, g.n);
  };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring("B's tiles were loaded from places with row and column exchanged"));
  // Of the first tile alone.
  mistaken.of_b = [&](const ladder::Gemm& g, int column, int k) {
    return place(column / 64 * 64 + k, column % 64, g.k, g.n);
  };
  CHECK_THAT(
      mistaken.complaint(),
      ContainsSubstring("a tile of C that begins at column c was computed with B from row c and column 0 "
                        "on: are row and column of B's first tile exchanged?"));
  mistaken = {};
  mistaken.of_a = [&](const ladder::Gemm& g, int row, int k) {
    return place(row % 64, row / 64 * 64 + k, g.m, g.k);
  };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring("a tile of C that begins at row r was computed with A from row 0 and column r "
                               "on: are row and column of A's first tile exchanged?"));
}

TEST_CASE(
    "Sums that were not cleared between tiles are named, and K tiles of which every second is missing") {
  Mistaken mistaken;
  mistaken.change = [](const std::vector<float>& right, const ladder::Gemm& g, int row, int column) {
    return right[row * g.n + column] + (row >= 64 ? right[(row - 64) * g.n + column] : 0);
  };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring("in tile row 1, tile column 0: C has the sums of this tile and of the one 64 "
                               "rows up: the sums of a block's tile before were not cleared"));
  mistaken = {};
  mistaken.of_a = [](const ladder::Gemm& g, int row, int k) {
    return k / 64 % 2 ? size_t(-1) : size_t(row) * g.k + k;
  };
  CHECK_THAT(
      mistaken.complaint(),
      ContainsSubstring("C has only the products of K tiles 0, 2, ... (every second of 5, 64 wide): does k "
                        "advance by 128 a step, or does nobody add to the sums that are stored what "
                        "other threads have multiplied?"));
  // Of some columns alone, where all threads take the same K tiles.
  mistaken.of_a = Mistaken().of_a;
  mistaken.of_b = [](const ladder::Gemm& g, int column, int k) {
    return column / 64 == 1 && k / 64 % 2 ? size_t(-1) : size_t(k) * g.n + column;
  };
  CHECK_THAT(mistaken.complaint(),
             ContainsSubstring(": does nobody add to the sums that are stored what other threads have "
                               "multiplied, or are too few sums sent or added?"));
  // Two blocks share K, and each stores half of the columns without the other's sums.
  mistaken.of_a = Mistaken().of_a;
  mistaken.of_b = [](const ladder::Gemm& g, int column, int k) {
    return k / 64 % 2 != column / 64 ? size_t(-1) : size_t(k) * g.n + column;
  };
  CHECK_THAT(mistaken.complaint(), ContainsSubstring("does nobody add to the sums that are stored what"));
}

TEST_CASE("K tiles that are counted more than once, or never, are counted") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  // Two blocks that should share K both take every second tile, and one of them has fewer steps.
  CHECK_THAT(
      complaint_of_terms([](int, int, int k) -> Term {
        return {k, k, k / 64 == 4 ? 1 : k / 64 % 2 ? 0 : 2};
      }),
      ContainsSubstring(
          "tile column 0: C has the products of K tiles 0, 2 twice, of 4 once, of 1, 3 never (5 K "
          "tiles, 64 wide): do two blocks, or two groups of threads, take the same ones, or does one add "
          "its own sums in place of the other's?; all"));
  CHECK_THAT(complaint_of_terms([](int, int, int k) -> Term {
               return {k, k, k / 64 == 1 || k / 64 == 3 ? 0 : 1};
             }),
             !ContainsSubstring("the same ones?"));
}

TEST_CASE("K tiles whose place is a multiple of another number than their width are named") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  for (const int width : {1, 32, 256}) {
    const auto instead = [&](int k) { return k / 64 * width + k % 64; };
    const std::string from =
        "was loaded from k = " + (width == 1 ? "" : std::to_string(width) + " ") + "i on, not from 64 i: ";
    CHECK_THAT(complaint_of_terms([&](int, int, int k) -> Term {
                 return {instead(k), k};
               }),
               ContainsSubstring("K tile i of A " + from));
    CHECK_THAT(complaint_of_terms([&](int, int, int k) -> Term {
                 return {k, instead(k)};
               }),
               ContainsSubstring("K tile i of B " + from));
    if (width < 64)  // else only the first tile is left
      CHECK_THAT(complaint_of_terms([&](int, int, int k) -> Term {
                   return {instead(k), instead(k)};
                 }),
                 ContainsSubstring("K tile i of A and B " + from));
  }
}

TEST_CASE("A part of each K tile that is multiplied for all parts is named") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK_THAT(complaint_of_terms([](int, int, int k) -> Term {
               return {k, k / 64 * 64 + k % 32};
             }),
             ContainsSubstring("of each K tile of B, rows 0 to 31 were taken for all 64: the k of the load "
                               "lacks what tells one part of the tile from the next, or each part"));
  CHECK_THAT(complaint_of_terms([](int, int, int k) -> Term {
               return {k / 64 * 64 + 16 + k % 16, k};
             }),
             ContainsSubstring("of each K tile of A, columns 16 to 31 were taken for all 64: "));
  CHECK_THAT(complaint_of_terms([](int, int, int k) -> Term {
               return {k, k / 32 * 32};
             }),
             ContainsSubstring("of each 32 rows of B, row 0 was taken for all 32: the k of the load"));
  // Only in some of the K tiles.
  CHECK_THAT(complaint_of_terms([](int, int, int k) -> Term {
               return {k, k / 64 % 2 ? k : k / 64 * 64 + k % 32};
             }),
             !ContainsSubstring("taken for all"));
}

TEST_CASE("A thread's column or row that is taken for the place along K is named, and the operand") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK_THAT(complaint_of_terms([](int, int column, int k) -> Term {
               return {k, k / 32 * 32 + column % 32};
             }),
             ContainsSubstring("in column j of C, row k + j % 32 of B was taken for all 32 from k on (k = 0, "
                               "32, ...): is the thread's column (x) taken for its row (y) where B is "
                               "loaded, or for each k in turn where B is multiplied?; all"));
  CHECK_THAT(complaint_of_terms([](int row, int, int k) -> Term {
               return {k / 16 * 16 + row % 16, k};
             }),
             ContainsSubstring("in row j of C, column k + j % 16 of A was taken for all 16 from k on (k = 0, "
                               "16, ...): is the thread's row (y) taken for its column (x) where A is"));
  // What is right where a thread loads it may be wrong where it multiplies; a tile of C may be wider.
  CHECK_THAT(complaint_of_terms([](int, int column, int k) -> Term {
               return {k / 32 * 32 + column % 32, k};
             }),
             ContainsSubstring("is the thread's column (x) taken for each k in turn where A is multiplied?"));
  CHECK_THAT(complaint_of_terms([](int, int column, int k) -> Term {
               return {k, k / 16 * 16 + column % 64};
             }),
             ContainsSubstring("in column j of C, row k + j % 64 of B was taken for all 16 from k on"));
  CHECK_THAT(complaint_of_terms([](int row, int column, int k) -> Term {
               return {k, row == 7 ? k : k / 32 * 32 + column % 32};
             }),
             !ContainsSubstring("in column j of C"));
}

TEST_CASE("Parts of C that were never written are placed, and the others explained") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  // Of each pair of panels both are stored to the first one's place.
  const ladder::Multiply multiply = [](const ladder::Gemm& gemm) {
    ladder::fake::multiply(gemm);
    std::vector<__nv_bfloat16> c = ladder::download(gemm.c, size_t(gemm.m) * gemm.n);
    for (int row = 0; row < gemm.m; ++row)
      for (int column = 0; column < gemm.n; ++column) {
        __nv_bfloat16& value = c[row * gemm.n + column];
        if (column / 64 % 2)
          std::memset(static_cast<void*>(&value), 0xff, sizeof value);
        else
          value = c[row * gemm.n + column + 64];
      }
    ladder::copy_to_device(gemm.c, c.data(), c.size() * sizeof c[0]);
  };
  const std::string complaint = ladder::Verifier({96, 256, 64}, 7).check_exact(multiply).complaint;
  CHECK_THAT(
      complaint,
      ContainsSubstring(
          "apart from nan, in tile row 0, tile column 0: C holds what belongs 64 columns to the right"));
  CHECK_THAT(complaint, ContainsSubstring("12288 were never written, or are copies of what was not: those of "
                                          "columns 64-127 of every 128"));
}

TEST_CASE(
    "Only whole sets of columns are said to be never written, and few numbers beside them explain nothing") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto complaint = [](const std::function<bool(int column)>& is_unwritten) {
    return ladder::Verifier({96, 512, 64}, 7)
        .check_exact([&](const ladder::Gemm& gemm) {
          ladder::fake::multiply(gemm);
          std::vector<__nv_bfloat16> c = ladder::download(gemm.c, size_t(gemm.m) * gemm.n);
          for (int i = 0; i < gemm.m * gemm.n; ++i)
            if (is_unwritten(i % gemm.n)) std::memset(static_cast<void*>(&c[i]), 0xff, sizeof c[i]);
          for (int row = 0; row < gemm.m; ++row)  // 64 numbers of each row are wrong, too
            for (int column = 0; column < 64; ++column)
              c[row * gemm.n + column] = c[row * gemm.n + column + 128];
          ladder::copy_to_device(gemm.c, c.data(), c.size() * sizeof c[0]);
        })
        .complaint;
  };
  const std::string whole = complaint([](int column) { return column / 64 % 4 == 1; });
  CHECK_THAT(whole, ContainsSubstring("those of columns 64-127 of every 256"));
  CHECK_THAT(whole, ContainsSubstring("apart from nan, in tile row 0, tile column 0: C holds what belongs"));
  // Of every 128, but for 192-255.
  CHECK_THAT(complaint([](int column) { return column / 64 % 2 == 1 && column / 64 != 3; }),
             !ContainsSubstring("of every 128"));
  const std::string mostly_nan = complaint([](int column) { return column >= 192; });
  CHECK_THAT(mostly_nan, !ContainsSubstring("apart from nan"));
  CHECK_THAT(mostly_nan, ContainsSubstring("those of columns 192-511"));
}

TEST_CASE("Fragments that are stored with rows for columns are named") {
  Mistaken mistaken;
  mistaken.change = [](const std::vector<float>& right, const ladder::Gemm& g, int row, int column) {
    return right[(row / 8 * 8 + column % 8) * g.n + column / 8 * 8 + row % 8];
  };
  CHECK_THAT(mistaken.complaint(), ContainsSubstring("squares of 8 x 8 elements of C are transposed"));
}

TEST_CASE("Sums of a thread of which row and column are exchanged are named") {
  Mistaken mistaken;
  const auto exchange = [](int apart, int width) {
    return [apart, width](const std::vector<float>& right, const ladder::Gemm& g, int row, int column) {
      const int from_row = row / width * width + column % width / apart * apart + row % apart,
                from_column = column / width * width + row % width / apart * apart + column % apart;
      return from_row < g.m && from_column < g.n ? right[from_row * g.n + from_column] : 0;
    };
  };
  for (const int width : {32, 64, 128}) {
    mistaken.change = exchange(16, width);
    const std::string square = std::to_string(width) + " x " + std::to_string(width);
    CHECK_THAT(
        mistaken.complaint(),
        ContainsSubstring("in squares of " + square +
                          " elements of C, block (i, j) of 16 x 16 elements holds what belongs to block "
                          "(j, i): the row and the column of a thread's sums are exchanged where they "
                          "are multiplied, or where they are stored; all"));
  }
  mistaken.change = exchange(12, 48);
  CHECK_THAT(mistaken.complaint(), !ContainsSubstring("exchanged"));
}

namespace {

/// What is said of the grid [x, y] where block (bx, by) writes the tile of 64 x 32 at `tile_of`, if C has
/// one.
template <class TileOf>
std::string said_of_grid(unsigned x, unsigned y, const ladder::Shape& shape, const TileOf& tile_of) {
  constexpr int kRows = 64, kColumns = 32;
  std::vector<int> writer(size_t(shape.m) * shape.n, -1);
  for (unsigned block = 0; block < x * y; ++block) {
    const auto [row, column] = tile_of(block % x, block / x);
    for (int i = row * kRows; i < std::min((row + 1) * kRows, shape.m); ++i)
      for (int j = column * kColumns; j < std::min((column + 1) * kColumns, shape.n); ++j)
        writer[i * shape.n + j] = static_cast<int>(block);
  }
  __nv_bfloat16 never_written;
  std::memset(static_cast<void*>(&never_written), 0xff, sizeof never_written);
  ladder::Reference reference{shape, {}, {}};
  for (int row = 0; row < shape.m; ++row) reference.rows.push_back(row);
  reference.values.assign(writer.size(), 1.0);
  ladder::WrongElements wrong(reference);
  for (size_t i = 0; i < writer.size(); ++i)
    if (writer[i] < 0)
      wrong.add(static_cast<int>(i) / shape.n, static_cast<int>(i) % shape.n, 1, never_written);
  return ladder::explain_by_grid(wrong, shape, {x, y, 1, "mine.cu:7"},
                                 [&](int row, int column) -> std::optional<ladder::BlockIndex> {
                                   const int block = writer[row * shape.n + column];
                                   if (block < 0) return {};
                                   return ladder::BlockIndex{unsigned(block) % x, unsigned(block) / x, 0};
                                 });
}

}  // namespace

TEST_CASE("Tiles that no block wrote are told with the grid that the launch gave, and the one that C needs") {
  const ladder::Shape shape{130, 200, 1};  // 3 x 7 tiles
  const auto normal = [](int bx, int by) { return std::pair{by, bx}; };
  const auto exchanged = [](int bx, int by) { return std::pair{bx, by}; };
  CHECK(said_of_grid(7, 3, shape, normal) == "");
  CHECK(said_of_grid(3, 7, shape, normal) ==
        "no block wrote tile columns 3 to 6 (C has 3 rows and 7 columns of tiles as blocks wrote, of 64 x "
        "32): the launch "
        "at mine.cu:7 gives "
        "a grid of "
        "3 x 7 blocks, and where blockIdx.x is the tile column, C needs 7 x 3: are x and y exchanged?");
  CHECK_THAT(said_of_grid(7, 3, shape, exchanged),
             ContainsSubstring("where blockIdx.x is the tile row, C needs 3 x 7: are x and y exchanged?"));
  CHECK_THAT(said_of_grid(7, 2, shape, normal),
             ContainsSubstring("tile row 2 (C has") &&
                 ContainsSubstring("7 x 3: is a number of tiles rounded down?"));
  // How high tiles are is not known where C ends within the first.
  CHECK_THAT(said_of_grid(1, 7, {40, 200, 1}, normal),
             ContainsSubstring("(C has 1 row and 7 columns of tiles as blocks wrote, of 32 columns): the "
                               "launch at mine.cu:7 gives a grid of 1 x 7 blocks, and only the first of them "
                               "wrote a tile of C: are x and y exchanged, here or in the kernel?"));
  CHECK_THAT(said_of_grid(5, 3, shape, normal), ContainsSubstring("tile columns 5 to 6 (C has") &&
                                                    ContainsSubstring("C needs 7 x 3") &&
                                                    !ContainsSubstring("rounded"));
}

TEST_CASE(
    "One row of blocks that lacks some is counted; a walk that leaves tiles out is no matter of the grid") {
  const ladder::Shape shape{130, 200, 1};
  const auto by_number = [](int bx, int) { return std::pair{bx / 7, bx % 7}; };
  CHECK(said_of_grid(20, 1, shape, by_number) ==
        "no block wrote the tile in tile row 2, tile column 6 (C has 3 rows and 7 columns of tiles as blocks "
        "wrote, of 64 "
        "x 32): the launch at "
        "mine.cu:7 gives 20 blocks, and where each computes one tile, C needs 21");
  CHECK_THAT(said_of_grid(14, 1, shape, by_number), ContainsSubstring("is a number of tiles rounded down?"));
  // Each block wrote the first 32 rows of its tile of 96 alone.
  CHECK(said_of_grid(14, 1, shape, [](int bx, int) { return std::pair{bx / 7 * 2, bx % 7}; }) == "");
  // Blocks enough, of which the last computes what another does, too.
  CHECK(said_of_grid(21, 1, shape, [](int bx, int) {
          return std::pair{std::min(bx, 19) / 7, std::min(bx, 19) % 7};
        }) == "");
}

namespace {

using TilePlace = std::pair<int, int>;  // row and column
/// What a block loads for its tiles, and what it stores as these.
struct BlockWalks {
  std::vector<TilePlace> loaded, stored;
};

/// What is said of a C of 100 x 300 where blocks walk so over its tiles of 64 x 128.
/// @param shift added to each element
std::string said_of_walks(const std::vector<BlockWalks>& blocks, float shift = 0) {
  constexpr int kRows = 64, kColumns = 128, kPanel = 64, kDepth = 32, kSteps = 3;
  const ladder::Shape shape{100, 300, 90};
  std::vector<__nv_bfloat16> a(1), b(1), c(1);
  ladder::Reference reference{shape, {}, {}};
  for (int row = 0; row < shape.m; ++row) reference.rows.push_back(row);
  for (int i = 0; i < shape.m * shape.n; ++i) reference.values.push_back(1 + i % 251);
  std::vector<double> held(reference.values.size(), -1);
  std::vector<ladder::WorkOfKernels::MovedBox> boxes;
  unsigned block = 0;
  for (const BlockWalks& walks : blocks) {
    const unsigned loader = block * 1024 + 256;
    for (const auto& [row, column] : walks.loaded)
      for (int step = 0; step < kSteps; ++step) {
        boxes.push_back(
            {block, loader, a.data(), row * kRows, step * kDepth, kRows, kDepth, /*is_load=*/true});
        for (int panel = 0; panel < kColumns; panel += kPanel)
          boxes.push_back({block, loader, b.data(), step * kDepth, column * kColumns + panel, kDepth, kPanel,
                           /*is_load=*/true});
      }
    for (size_t i = 0; i < walks.stored.size(); ++i) {
      const auto [row, column] = walks.stored[i];
      for (unsigned half = 0; half < 2; ++half)  // two threads share the tile
        boxes.push_back({block, block * 1024 + half * 128, c.data(), row * kRows + int(half) * kRows / 2,
                         column * kColumns, kRows / 2, kColumns, /*is_load=*/false});
      const auto [from_row, from_column] = walks.loaded[std::min(i, walks.loaded.size() - 1)];
      for (int y = 0; y < kRows; ++y)
        for (int x = 0; x < kColumns; ++x) {
          const int to = (row * kRows + y) * shape.n + column * kColumns + x;
          const bool is_inside = row * kRows + y < shape.m && column * kColumns + x < shape.n;
          const bool is_product = from_row * kRows + y < shape.m && from_column * kColumns + x < shape.n;
          if (is_inside)
            held[size_t(to)] =
                is_product
                    ? reference.values[size_t((from_row * kRows + y) * shape.n + from_column * kColumns + x)]
                    : 0;
        }
    }
    ++block;
  }
  ladder::WrongElements wrong(reference);
  for (size_t i = 0; i < held.size(); ++i) {
    const double got = held[i] + double{shift};
    if (got != reference.values[i])
      wrong.add(int64_t(i) / shape.n, int64_t(i) % shape.n, reference.values[i],
                ladder::to_bf16(static_cast<float>(got)));
  }
  return ladder::explain_by_walks(wrong, reference, boxes, {a.data(), b.data(), c.data()});
}

}  // namespace

TEST_CASE("Blocks of a cluster that do not take tiles side by side are told with their first tiles") {
  const int a = 0, b = 0, c = 0;
  using Places = std::vector<std::pair<int, int>>;
  const auto said = [&](const Places& tiles, unsigned blocks_of_cluster) {
    std::vector<ladder::WorkOfKernels::MovedBox> boxes;
    for (unsigned block = 0; block < tiles.size(); ++block)
      for (int k = 0; k < 128; k += 64) {
        boxes.push_back({block, block, &a, 128 * tiles[block].first, k, 128, 64, /*is_load=*/true});
        boxes.push_back({block, block, &b, k, 64 * tiles[block].second, 64, 64, /*is_load=*/true});
      }
    return ladder::explain_by_tiles_of_cluster(boxes, blocks_of_cluster, {&a, &b, &c});
  };
  CHECK(
      said({{0, 0}, {3, 0}}, 2) ==
      "for its first tile block 0 loads rows 0 to 127 of A and columns 0 to 63 of B, and block 1 of the same "
      "cluster rows 384 to 511 of A and columns 0 to 63 of B: should they take tiles side by side? Then the "
      "walk "
      "must count clusters, not blocks");
  CHECK_THAT(said({{0, 0}, {1, 1}}, 2), ContainsSubstring("should they take tiles side by side?"));
  CHECK(said({{0, 0}, {3, 0}}, 1) == "");
  CHECK(said({{0, 0}, {1, 0}}, 2) == "");
  CHECK(said({{2, 3}, {2, 3}}, 2) == "");  // that share K
  CHECK(said({{0, 0}, {0, 1}, {1, 0}, {1, 1}}, 4) == "");
  CHECK(said({{0, 0}, {1, 0}, {0, 0}, {1, 0}}, 4) == "");
}

TEST_CASE("Blocks that load and store tiles in different orders are told with the first such tile") {
  const std::vector<TilePlace> first = {{0, 0}, {0, 2}, {1, 1}}, second = {{0, 1}, {1, 0}, {1, 2}};
  CHECK(said_of_walks({{first, first}, {second, {{0, 1}, {1, 2}, {1, 0}}}}) ==
        "block 1 loaded tile row 1, tile column 0 (of 64 x 128) as its 2nd tile, and stored tile row 1, tile "
        "column 2 as its 2nd (2 of 6 tiles differ so): do those who load and those who store walk over the "
        "same tiles, in the same order?");
  // From one block to the other, and outside C.
  CHECK_THAT(said_of_walks({{first, second}, {second, first}}),
             ContainsSubstring("as its 1st (6 of 6 tiles differ so)"));
  CHECK_THAT(said_of_walks({{first, first}, {{{0, 1}, {1, 0}, {2, 2}}, second}}),
             ContainsSubstring("block 1 loaded tile row 2, tile column 2 (of 64 x 128) as its 3rd tile"));
  CHECK(said_of_walks({{first, first}, {second, second}}) == "");
  // Something else is wrong, too.
  CHECK(said_of_walks({{first, first}, {second, {{0, 1}, {1, 2}, {1, 0}}}}, /*shift=*/1) == "");
  // It is not known what was loaded for what is stored.
  CHECK(said_of_walks({{first, first}, {{{0, 1}, {1, 0}}, {{0, 1}, {1, 2}, {1, 0}}}}) == "");
}
