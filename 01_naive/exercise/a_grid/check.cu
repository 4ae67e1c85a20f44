/// @file
/// The check of exercise 01.a: matrices that blocks cover exactly, and with edges; down to one element.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using exercise::Extent;
using ladder::exercise::expect_returned;

int blocks_over(int extent, int block) { return extent / block + (extent % block > 0); }

/// Threads without an element, counted one by one.
int count_idle(int m, int n, Extent block, int rows_each, Extent grid) {
  int idle = 0;
  for (int y = 0; y < grid.y * block.y; ++y)
    for (int x = 0; x < grid.x * block.x; ++x) idle += x >= n || y * rows_each >= m;
  return idle;
}

std::string arguments_of(int m, int n, Extent block, int rows_each) {
  return fmt::format("({}, {}, {{{}, {}}}, {})", m, n, block.x, block.y, rows_each);
}

Extent right_grid(int m, int n, Extent block, int rows_each) {
  return {blocks_over(n, block.x), blocks_over(m, block.y * rows_each)};
}

void expect_grid(int m, int n, Extent block, int rows_each) {
  const Extent right = right_grid(m, n, block, rows_each), got = exercise::grid_of(m, n, block, rows_each);
  const std::string call = "grid_of" + arguments_of(m, n, block, rows_each),
                    threads = "a grid counts blocks, not threads";
  expect_returned(call + ".x", got.x, right.x,
                  {{right.x - 1, "which block covers the last columns?"},
                   {right.x + 1, "the last block covers no column of C"},
                   {right.y, fmt::format("x counts along the columns of C, which are {}", n)},
                   {n, threads}});
  expect_returned(
      call + ".y", got.y, right.y,
      {{blocks_over(m, block.y), "how many rows does a block cover if each thread computes several?"},
       {right.y - 1, "which block covers the last rows?"},
       {right.y + 1, "the last block covers no row of C"},
       {m, threads}});
}

void expect_idle(int m, int n, Extent block, int rows_each) {
  const Extent grid = right_grid(m, n, block, rows_each);
  const int all = grid.x * block.x * grid.y * block.y;
  expect_returned("idle_threads" + arguments_of(m, n, block, rows_each),
                  exercise::idle_threads(m, n, block, rows_each), count_idle(m, n, block, rows_each, grid),
                  {{all * rows_each - m * n, "that counts elements, but a thread may compute several"},
                   {all - m * n, "a thread may compute several elements"},
                   {all - n * (m / rows_each), "a thread with fewer than rows_each elements is not idle"},
                   {"which threads of the last blocks lie outside of C?"}});
}

void check() {
  for (const auto expect : {expect_grid, expect_idle})
    for (const int rows_each : {1, 4})
      for (const Extent block : {Extent{32, 8}, {16, 16}})
        for (const int m : {64, 100, 75, 1})
          for (const int n : {96, 100, 1}) expect(m, n, block, rows_each);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
