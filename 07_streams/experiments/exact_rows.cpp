/// @file
/// Products that are known bit for bit, on the host.
#include "07_streams/experiments/exact_rows.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "common/cuda/error.hpp"
#include "common/host/base/parallel.hpp"
#include "common/host/problem/bf16.hpp"

namespace lesson07 {
namespace {

constexpr int kMaxRows = 8;

std::vector<int> rows_of(int m) {
  std::vector<int> rows;
  const int count = std::min(m, kMaxRows);
  for (int i = 0; i < count; ++i)
    rows.push_back(count == 1 ? 0 : static_cast<int>(int64_t{m - 1} * i / (count - 1)));
  return rows;
}

}  // namespace

float SparseIntegers::operator()(uint64_t position) const {
  switch (ladder::hash(seed, position) >> 59) {  // 32 equally likely values
    case 0:
      return 1;
    case 1:
      return -1;
    default:
      return 0;
  }
}

std::vector<bf16> sparse_integers(uint64_t seed, size_t begin, size_t count) {
  std::vector<bf16> values(count);
  ladder::parallel_for(static_cast<int64_t>(count), 1 << 16, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) values[i] = ladder::to_bf16(SparseIntegers{seed}(begin + i));
  });
  return values;
}

std::vector<float> multiply_exactly(const std::vector<float>& a, const ladder::IntegerValues& b, int k,
                                    int n) {
  const size_t rows = a.size() / k;
  std::vector<float> product(rows * n);
  ladder::parallel_for(n, 256, [&](int64_t first, int64_t last) {
    for (int step = 0; step < k; ++step) {
      bool wanted = false;
      for (size_t row = 0; row < rows; ++row) wanted |= a[row * k + step] != 0;
      if (!wanted) continue;
      for (int64_t column = first; column < last; ++column) {
        const float value = ladder::to_float(b(uint64_t(step) * n + column));
        for (size_t row = 0; row < rows; ++row) product[row * n + column] += a[row * k + step] * value;
      }
    }
  });
  return product;
}

SampledRows::SampledRows(int m, int n, int batches)
    : n_(n), rows_(rows_of(m)), samples_(size_t(batches) * rows_.size() * n) {}

void SampledRows::take(int batch, const bf16* result, cudaStream_t stream) {
  bf16* to = samples_.data() + size_t(batch) * rows_.size() * n_;
  for (const int row : rows_) {
    CUDA_CHECK(
        cudaMemcpyAsync(to, result + size_t(row) * n_, n_ * sizeof(bf16), cudaMemcpyDeviceToHost, stream));
    to += n_;
  }
}

void SampledRows::check(const std::string& who, int batch, const std::vector<float>& expected) const {
  const bf16* sample = samples_.data() + size_t(batch) * expected.size();
  for (size_t i = 0; i < expected.size(); ++i) {
    const float is = ladder::to_float(sample[i]), must_be = ladder::to_float(ladder::to_bf16(expected[i]));
    if (!(is == must_be))  // also where it is NaN
      throw WrongResult(fmt::format("{}: batch {}, row {}, column {}: is {:f}, must be {:f}", who, batch,
                                    rows_[i / n_], i % n_, is, must_be));
  }
}

}  // namespace lesson07
