/// @file
/// Exercise 01.b: where an element of a matrix lies in memory.
///
/// The matrix is a part of a larger one, both row-major. A row begins `pitch` elements after the row above
/// it, and only its first `columns` elements are the matrix's own. There may be more than 2^31 elements.
#pragma once
#include <cstdint>

namespace exercise {

struct Matrix {
  int rows, columns, pitch;
};

/// index_of: how many elements after the matrix's first one the element (row, column) lies, or -1 if the
/// matrix has no such element. span_of: how many elements there are from its first to its last, both
/// included.
// Read 01_naive/README.md and common/host/problem/gemm.hpp.
// >>> yours
constexpr int64_t index_of(Matrix matrix, int row, int column) {
  if (row >= matrix.rows || column >= matrix.columns) return -1;
  return static_cast<int64_t>(row) * matrix.pitch + column;
}
constexpr int64_t span_of(Matrix matrix) {
  return static_cast<int64_t>(matrix.rows - 1) * matrix.pitch + matrix.columns;
}
// <<<

}  // namespace exercise
