/// @file
/// Is a result of attention right? The reference is computed in fp64 on the host.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "05_ws_double_buffer/attention/problem.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/host/verify/output_matrix.hpp"

namespace lesson05::attention {

/// What Q, K and V hold.
///
///     random  normal values
///     equal   keys that are all equal, so that each weighs the same
///     huge    one key in each head that outweighs all others where it is seen, so that O is one row of V
///     rising  later keys have larger scores: every block has a new maximum
///     falling the first key has the largest score
const std::vector<std::string>& data_names();

/// A problem with its data, and what the result must be.
class Checker {
 public:
  /// @throws std::invalid_argument for an extent that breaks a rule, or for data that there is not
  Checker(const Extent& extent, const std::string& data, uint64_t seed);

  /// Runs `launch` on an O that is poisoned, between canaries. Each element that is compared must be as near
  /// to the reference as rounding the weights and the result to bf16 explains, and all of them together as
  /// near as in other lessons. Where comparing all would take long, some rows are, and the others are
  /// scanned for what was not written.
  /// @returns what is wrong; empty if nothing is
  std::string complaint(const std::function<void(const Attention&)>& launch);
  /// Of the last result: the relative Frobenius norm of the error.
  double rel_error() const { return rel_error_; }
  /// How many rows are compared.
  size_t rows_compared() const { return rows_.size(); }
  /// The arrays.
  Attention arguments();

 private:
  /// A row of O that is compared: what it must be, and how far off rounding may bring it.
  struct Row {
    int64_t row;  ///< of [batch * heads * length]
    std::vector<double> expected, allowed;
  };
  void fill(const std::string& data, uint64_t seed);
  void choose_rows();
  Row reference(int64_t row) const;

  Extent extent_;
  std::vector<__nv_bfloat16> host_q_, host_k_, host_v_;
  ladder::DeviceBuffer<__nv_bfloat16> q_, k_, v_;
  ladder::OutputMatrix o_;
  std::vector<Row> rows_;
  double rel_error_ = 0;
};

}  // namespace lesson05::attention
