/// @file
/// Which rows of a product are compared.
#include "common/host/verify/reference.hpp"

#include <algorithm>
#include <numeric>

#include "common/host/problem/fill_values.hpp"

namespace ladder {

std::vector<int> rows_to_compare(const Shape& shape, double most_products) {
  constexpr int kBand = 16, kMinRows = 256;
  std::vector<int> rows;
  const int band = std::min(kBand, shape.m / kMinRows);
  if (band <= 1 || shape.flops() / 2 <= most_products) {
    rows.resize(shape.m);
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
  }
  rows.push_back(0);
  for (int start = 0; start < shape.m; start += band) {
    const int row = start + static_cast<int>(hash(start) % band);
    if (row > rows.back() && row < shape.m) rows.push_back(row);
  }
  if (rows.back() != shape.m - 1) rows.push_back(shape.m - 1);
  return rows;
}

}  // namespace ladder
