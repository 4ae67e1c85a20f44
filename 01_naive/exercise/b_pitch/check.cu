/// @file
/// The check of exercise 01.b: all places in and around small matrices, and corners of one with 60000 rows.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using exercise::Matrix;
using ladder::exercise::expect_returned;

std::string in_braces(const Matrix& matrix) {
  return fmt::format("{{{}, {}, {}}}", matrix.rows, matrix.columns, matrix.pitch);
}

/// Calls the function through a volatile pointer, so that the compiler cannot fold the arguments. A folded
/// product would hide an overflow of int.
template <class Function, class... Arguments>
int64_t call(Function* function, Arguments... arguments) {
  Function* volatile unknown = function;
  return unknown(arguments...);
}

void expect_index(const Matrix& matrix, int row, int column) {
  const int64_t there = int64_t{row} * matrix.pitch + column;
  const bool is_inside = row < matrix.rows && column < matrix.columns;
  const std::string outside = row < matrix.rows
                                  ? "that element lies beyond the row's end, outside of the matrix"
                                  : "that row is below the last one";
  const std::vector<ladder::exercise::Slip> slips_inside{
      {int64_t{row} * matrix.columns + column,
       "rows are a pitch apart, however few of its elements belong to the matrix"},
      {int64_t{column} * matrix.pitch + row, "that is column-major order"},
      {int64_t{column} * matrix.rows + row, "that is column-major order"},
      {static_cast<int32_t>(there), "an int holds at most 2^31 - 1: in which type do you multiply?"},
      {-1, "the matrix has that element"}};
  expect_returned(fmt::format("index_of({}, {}, {})", in_braces(matrix), row, column),
                  call(exercise::index_of, matrix, row, column), is_inside ? there : -1,
                  is_inside ? slips_inside : std::vector<ladder::exercise::Slip>{{outside}});
}

void expect_span(const Matrix& matrix) {
  const int64_t last = int64_t{matrix.rows - 1} * matrix.pitch + matrix.columns - 1;
  expect_returned(
      "span_of(" + in_braces(matrix) + ")", call(exercise::span_of, matrix), last + 1,
      {{last, "that is the index of the last element: how many elements are there up to it?"},
       {int64_t{matrix.rows} * matrix.pitch,
        "the span ends at the last element, not at the end of the last row's pitch"},
       {int64_t{matrix.rows} * matrix.columns, "the span includes the elements between two rows"},
       {static_cast<int32_t>(last + 1), "an int holds at most 2^31 - 1: in which type do you multiply?"}});
}

void check() {
  const Matrix large{60000, 50000, 60000};
  for (const Matrix& matrix : {Matrix{5, 12, 16}, {3, 7, 7}, {1, 3, 8}, {4, 1, 2}})
    for (int row = 0; row <= matrix.rows; ++row)
      for (int column = 0; column <= matrix.pitch; ++column) expect_index(matrix, row, column);
  for (const int row : {0, 35791, 35792, 59999, 60000})
    for (const int column : {0, 49999, 50000}) expect_index(large, row, column);
  for (const Matrix& matrix : {Matrix{5, 12, 16}, {3, 7, 7}, {1, 3, 8}, {4, 1, 2}, large})
    expect_span(matrix);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
