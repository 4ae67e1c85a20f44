/// @file
/// Input data whose products are known bit for bit, whoever adds up the parts and in which order; and rows of
/// results that are compared with them.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "07_streams/batches.hpp"
#include "07_streams/pinned_ring.hpp"
#include "common/host/problem/fill_values.hpp"

namespace lesson07 {

/// Mostly zeros, else -1 or 1: sums of thousands of products with whole numbers from -1 to 1 stay so small
/// that bf16 holds them exactly. So it makes no difference where a sum was rounded on its way.
struct SparseIntegers {
  uint64_t seed;

  float operator()(uint64_t position) const;
};

/// `count` values from `begin` on, rounded to bf16.
std::vector<bf16> sparse_integers(uint64_t seed, size_t begin, size_t count);

/// The weights B [k, n] that go with them.
inline ladder::IntegerValues exact_weights(uint64_t seed) { return {seed, 1}; }

/// A B for some rows of A. `a`: [rows, k]; the result: [rows, n]. Sums are exact below 2^24.
std::vector<float> multiply_exactly(const std::vector<float>& a, const ladder::IntegerValues& b, int k,
                                    int n);

/// Some rows of the result of each batch, copied to the host by the stream that made it: no wait of the host
/// stands between batches, so an event that is missing between streams shows.
class SampledRows {
 public:
  /// Of `batches` results [m, n].
  SampledRows(int m, int n, int batches);

  /// Ascending; the first and the last row are among them.
  const std::vector<int>& rows() const { return rows_; }
  /// Enqueues the copies.
  void take(int batch, const bf16* result, cudaStream_t stream);
  /// Once the stream is done. `expected`: [rows, n].
  /// @throws WrongResult naming `who`, the batch, the row and the column
  void check(const std::string& who, int batch, const std::vector<float>& expected) const;

 private:
  int n_;
  std::vector<int> rows_;
  PinnedBuffer<bf16> samples_;  ///< [batches, rows, n]
};

}  // namespace lesson07
