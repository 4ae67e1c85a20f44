/// @file
/// What wrong elements have in common: in which tiles they lie, and which mistake would make them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
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
  /// That were written.
  int64_t nan_sum_count() const { return nan_count_ - unwritten_count_; }
  bool is_mostly_nan() const { return 4 * nan_count_ > 3 * count_; }
  /// Only if all rows were compared.
  bool is_wrong(int64_t row, int64_t column) const {
    return is_wrong_[static_cast<size_t>(row * reference_.shape.n + column)];
  }
  /// Were all wrong elements never written, and all rows compared?
  bool are_all_unwritten() const { return count_ && unwritten_count_ == count_ && !reference_.sampled(); }
  /// Are there some in each tile of 64 x 64? Also true where not all rows were compared.
  bool are_in_all_tiles() const;
  /// Of C's elements in the order of memory, if all rows were compared: whether this one was never written.
  bool is_unwritten(int64_t at) const;
  /// What it holds, which is `right` unless it is wrong.
  float got(int64_t at, float right) const;
  /// One sentence or a few: the tiles of 64 x 64 with wrong elements, what these leave out, and how many of
  /// them are NaN.
  std::string describe() const;
  /// Of each tile of 64 x 64 that has some, the tiles in the order of rows: elements that are numbers, the
  /// first ones and some from all over the tile. Of the first tile there are more than of others.
  std::vector<std::vector<WrongElement>> examples() const;

 private:
  struct Range {
    int64_t first, last;
  };
  /// From the first to the last that is true.
  static Range range_of(const std::vector<bool>& wrong);
  std::string describe_tiles(const Range& rows, const Range& columns) const;
  /// The rows behind some row and the columns behind some column, if these were never written, and nothing
  /// else.
  std::string describe_unwritten_corner() const;
  /// All rows, or all columns, from one on to the edge of C were never written; else empty.
  std::string describe_unwritten_edge(const Range& rows, const Range& columns) const;

  /// No element of a small C was written: has the kernel no tile? Else empty.
  std::string ask_for_tiles() const;
  /// Which rows and columns of C the elements that were never written make up, if they make up whole ones.
  std::string describe_unwritten_part() const;

  /// Numbers among the wrong elements of a tile, far from each other.
  std::vector<WrongElement> spread_over(const std::pair<int64_t, int64_t>& tile) const;

  const Reference& reference_;
  std::vector<bool> is_wrong_;                            ///< [compared rows, n]
  std::vector<__nv_bfloat16> got_;                        ///< likewise, where wrong
  std::vector<bool> unwritten_rows_, unwritten_columns_;  ///< with one such element or more
  std::map<std::pair<int64_t, int64_t>, std::vector<WrongElement>> examples_;  ///< [tile]
  std::pair<int64_t, int64_t> first_tile_;
  int64_t count_ = 0, nan_count_ = 0, unwritten_count_ = 0;
};

}  // namespace ladder
