/// @file
/// The work of this lesson: many products C_b = A_b B with the same weights B, whose A_b and C_b live in host
/// memory. Everything here is plain host code, because its checks run in host functions, which must not call
/// CUDA.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/host/problem/shape.hpp"

namespace lesson07 {

using bf16 = __nv_bfloat16;

/// A result was not what it must be. what() names the batch, the row and the column.
struct WrongResult : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The sizes of all batches: A_b is [rows[b], k], B is [k, n], C_b is [rows[b], n]; row-major bf16.
struct Batches {
  int n = 0, k = 0;
  std::vector<int> rows;

  int count() const { return static_cast<int>(rows.size()); }
  int most_rows() const;
  /// Of A_b.
  size_t a_elements(int batch) const { return size_t(rows[batch]) * k; }
  /// Of C_b.
  size_t c_elements(int batch) const { return size_t(rows[batch]) * n; }
  /// Sums over all batches.
  double total_rows() const;
  double flops() const { return 2.0 * total_rows() * n * k; }
};

/// `count` batches of m/4 rows more or less than shape.m, by the seed: no two need be equal, few are a
/// multiple of a tile.
Batches make_batches(const ladder::Shape& shape, int count, uint64_t seed);

/// The contents of the batches. `fill` is called by the host's thread before A_b is uploaded; `complaint` by
/// a host function after C_b was downloaded: it is empty, or says what is wrong.
class Data {
 public:
  virtual ~Data() = default;
  virtual void fill(int batch, bf16* a) const = 0;
  virtual std::string complaint(int batch, const bf16* c) const = 0;
};

/// Small integers, different in every batch: each sum is exact in fp32, so C is known bit for bit. Compares
/// all of C where that is cheap, else two rows (the last is one) and the first and last columns. The
/// references must outlive it.
class IntegerData : public Data {
 public:
  /// `weights`: B, [k, n]; made by integer_weights
  IntegerData(const Batches& batches, const bf16* weights, uint64_t seed);
  void fill(int batch, bf16* a) const override;
  std::string complaint(int batch, const bf16* c) const override;

 private:
  std::string block_complaint(int batch, const bf16* c, int row, int first, int last) const;

  const Batches& batches_;
  const bf16* weights_;
  uint64_t seed_;
};

/// For timed runs, in which the host must be faster than the bus. The slot holds any finite data; only the
/// last row, the one that is uploaded last and the edge of a ragged tile, is written anew: a power of two at
/// one place, zeros elsewhere. So the last row of C_b is that power times one row of B, exactly, and differs
/// from batch to batch.
class StampedData : public Data {
 public:
  StampedData(const Batches& batches, const bf16* weights) : batches_(batches), weights_(weights) {}
  void fill(int batch, bf16* a) const override;
  std::string complaint(int batch, const bf16* c) const override;

 private:
  const Batches& batches_;
  const bf16* weights_;
};

/// Fills `count` elements of host memory, on all cores.
void fill_integers(bf16* host, size_t count, uint64_t seed);
void fill_normals(bf16* host, size_t count, uint64_t seed);

}  // namespace lesson07
