/// @file
/// What wrong elements have in common: in which tiles they lie, and which mistake would make them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/host/problem/gemm.hpp"
#include "common/host/verify/reference.hpp"

namespace ladder {

/// One wrong element of C.
struct WrongElement {
  int row, column;
  double expected, got;
};

/// Which of the compared elements of a C are wrong.
class WrongElements {
 public:
  explicit WrongElements(const Reference& reference) : reference_(reference) {}

  /// In the order of rows. @param compared_row index into the rows of the reference
  void add(int64_t compared_row, int64_t column, double expected, __nv_bfloat16 got);

  int64_t count() const { return count_; }
  int64_t nan_count() const { return nan_count_; }
  /// One sentence or a few: the tiles of 64 x 64 with wrong elements, what these leave out, and how many of
  /// them are NaN.
  std::string describe() const;
  /// Some that lie in one tile and are numbers.
  const std::vector<WrongElement>& examples() const { return examples_; }

 private:
  struct Range {
    int64_t first, last;
  };
  std::string describe_tiles(const Range& rows, const Range& columns) const;
  /// All rows, or all columns, from one on to the edge of C were never written; else empty.
  std::string describe_unwritten_edge(const Range& rows, const Range& columns) const;

  const Reference& reference_;
  std::vector<bool> is_wrong_;  ///< [compared rows, n]
  std::vector<WrongElement> examples_;
  int64_t count_ = 0, nan_count_ = 0, unwritten_count_ = 0;
};

}  // namespace ladder
