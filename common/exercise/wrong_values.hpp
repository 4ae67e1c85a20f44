/// @file
/// What the wrong elements of a result have in common.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace ladder::exercise {

/// A vector or a row-major matrix as it is, and as it must be.
struct Comparison {
  std::string name;     ///< what messages call it, for example "C"
  size_t columns = 0;   ///< 0: a vector
  float tolerance = 0;  ///< by which an element may differ
  std::vector<float> got, expected;

  bool is_wrong(size_t i) const;  ///< NaN always is
  /// "row 1, column 2 of C", or "element 3 of y".
  std::string place(size_t i) const;
};

/// The first wrong element; how many are wrong, and where; and what they are instead, where that is the right
/// value of another place, the right value times or plus a number, or the right value but for rounding. Empty
/// if all are right.
std::string describe_wrong_values(const Comparison&);

/// The first element that was never written, how many were not, and where.
/// @param written for each element; not all
std::string describe_unwritten(const Comparison&, const std::vector<bool>& written);

}  // namespace ladder::exercise
