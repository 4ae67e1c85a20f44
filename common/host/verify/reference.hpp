/// @file
/// The right answer, in double precision. A product of two bf16 numbers is exact in fp32, so only the sum
/// rounds.
#pragma once
#include <vector>

#include "common/host/problem/gemm.hpp"
#include "common/host/problem/shape.hpp"

namespace ladder {

/// Some rows of C, or all.
struct Reference {
  Shape shape;
  std::vector<int> rows;       ///< ascending
  std::vector<double> values;  ///< [rows.size(), n], row-major

  bool sampled() const { return rows.size() < static_cast<size_t>(shape.m); }
};

/// The rows to compare: all where the multiplications for them are fewer than `most_products`; else one at a
/// pseudo-random place in every band of 16 rows (the height of a warp's tile), and the first and the last, so
/// that every tile of every kernel is hit. Bands are lower where there would be fewer than 256 rows.
std::vector<int> rows_to_compare(const Shape& shape, double most_products);

/// Multiplies the given rows of gemm.a by gemm.b; gemm.c is not used.
Reference reference_product(const Gemm& gemm, const std::vector<int>& rows);

/// The multiplications that this device can spend on the reference of a whole problem, about half a second's
/// worth.
double affordable_products();

}  // namespace ladder
