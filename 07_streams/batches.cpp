/// @file
/// Sizes, contents and checks of the batches.
#include "07_streams/batches.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/host/base/parallel.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/problem/fill_values.hpp"

namespace lesson07 {
namespace {

constexpr int kMagnitude =
    4;  ///< of integers: 4 * 4 * k stays below 2^24, where fp32 is exact, up to k = 2^20

template <class Values>
void fill(bf16* host, size_t count, const Values& values) {
  ladder::parallel_for(static_cast<int64_t>(count), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) host[i] = values(i);
  });
}

/// The only number in the last row of A_b: where, and what.
struct Stamp {
  int column;
  float value;
};
Stamp stamp_of(int batch, int k) {
  const float sign = batch / k % 2 ? -1.f : 1.f;
  return {batch % k, std::ldexp(sign, batch % 3)};
}

std::string message(const Batches& batches, int batch, int row, int column, float is, float must) {
  const char* hint = std::isnan(is) ? ". NaN is what memory holds that nobody has written, and a slot that "
                                      "was given back; or a sum of such"
                                    : "";
  return fmt::format("batch {} ({} rows): C[{}, {}] is {:f}, must be {:f}{}", batch, batches.rows[batch], row,
                     column, is, must, hint);
}

}  // namespace

int Batches::most_rows() const { return *std::max_element(rows.begin(), rows.end()); }
double Batches::total_rows() const { return std::accumulate(rows.begin(), rows.end(), 0.0); }

Batches make_batches(const ladder::Shape& shape, int count, uint64_t seed) {
  const int spread = shape.m / 4;
  Batches batches{shape.n, shape.k, {}};
  for (int b = 0; b < count; ++b)
    batches.rows.push_back(shape.m - spread + static_cast<int>(ladder::hash(seed, b) % (2 * spread + 1)));
  return batches;
}

void fill_integers(bf16* host, size_t count, uint64_t seed) {
  fill(host, count, ladder::IntegerValues{seed, kMagnitude});
}
void fill_normals(bf16* host, size_t count, uint64_t seed) { fill(host, count, ladder::NormalValues{seed}); }

IntegerData::IntegerData(const Batches& batches, const bf16* weights, uint64_t seed)
    : batches_(batches), weights_(weights), seed_(seed) {}

void IntegerData::fill(int batch, bf16* a) const {
  fill_integers(a, batches_.a_elements(batch), ladder::hash(seed_, batch));
}

std::string IntegerData::complaint(int batch, const bf16* c) const {
  constexpr double kAffordableProducts = 1 << 24;
  constexpr int kColumns = 256;  // at either end, where not all are compared
  const int rows = batches_.rows[batch], n = batches_.n;
  const bool all = double(rows) * n * batches_.k <= kAffordableProducts;
  std::vector<int> compared{static_cast<int>(ladder::hash(batch) % rows), rows - 1};
  if (all) {
    compared.resize(rows);
    std::iota(compared.begin(), compared.end(), 0);
  }
  for (const int row : compared) {
    const int left = all ? n : std::min(n, kColumns);
    std::string complaint = block_complaint(batch, c, row, 0, left);
    if (complaint.empty()) complaint = block_complaint(batch, c, row, std::max(left, n - kColumns), n);
    if (!complaint.empty()) return complaint;
  }
  return "";
}

/// Columns [first, last) of one row.
std::string IntegerData::block_complaint(int batch, const bf16* c, int row, int first, int last) const {
  const ladder::IntegerValues a{ladder::hash(seed_, batch), kMagnitude};
  std::vector<float> sums(last - first);
  for (int p = 0; p < batches_.k; ++p) {
    const float factor = ladder::to_float(a(uint64_t(row) * batches_.k + p));
    const bf16* b = weights_ + size_t(p) * batches_.n + first;
    for (int j = 0; j < last - first; ++j) sums[j] += factor * ladder::to_float(b[j]);
  }
  for (int j = 0; j < last - first; ++j) {
    const float is = ladder::to_float(c[size_t(row) * batches_.n + first + j]);
    const float must = ladder::to_float(ladder::to_bf16(sums[j]));
    if (!(is == must)) return message(batches_, batch, row, first + j, is, must);  // true for NaN, too
  }
  return "";
}

void StampedData::fill(int batch, bf16* a) const {
  const Stamp stamp = stamp_of(batch, batches_.k);
  bf16* row = a + size_t(batches_.rows[batch] - 1) * batches_.k;
  std::fill_n(row, batches_.k, ladder::to_bf16(0));
  row[stamp.column] = ladder::to_bf16(stamp.value);
}

std::string StampedData::complaint(int batch, const bf16* c) const {
  const Stamp stamp = stamp_of(batch, batches_.k);
  const int row = batches_.rows[batch] - 1;
  for (int j = 0; j < batches_.n; ++j) {
    const float is = ladder::to_float(c[size_t(row) * batches_.n + j]);
    const float must = stamp.value * ladder::to_float(weights_[size_t(stamp.column) * batches_.n + j]);
    if (!(is == must)) return message(batches_, batch, row, j, is, must);
  }
  return "";
}

}  // namespace lesson07
