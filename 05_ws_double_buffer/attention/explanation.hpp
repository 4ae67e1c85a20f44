/// @file
/// What may have made a result of attention wrong.
#pragma once
#include <string>
#include <vector>

#include "05_ws_double_buffer/attention/problem.hpp"

namespace lesson05::attention {

constexpr int kKeysOfBlock = 128;  ///< that the kernels take at a time

/// A row of O, counted through all heads, that was compared with the reference.
struct ComparedRow {
  int64_t row;
  bool is_wrong;
};

/// By how much rounding the weights and the result to bf16 may change an element of O.
/// @param absolute_sum of the absolute values of what is summed up, divided by the sum of the row
double rounding_of(double absolute_sum, double value);

/// A mistake with which every element of the wrong rows comes out as it did, and which rows are wrong; only
/// these where no known mistake explains them. The arrays of `p` are in host memory; `o` is what came out.
std::string explain(const Attention& p, const std::vector<__nv_bfloat16>& o,
                    const std::vector<ComparedRow>& rows);

/// Which rows of O were never written, and which dimensions of others; some must be.
std::string describe_unwritten(const Attention& p, const std::vector<__nv_bfloat16>& o);

}  // namespace lesson05::attention
