/// @file
/// Compares a C with the reference.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "common/host/problem/gemm.hpp"
#include "common/host/problem/shape.hpp"
#include "common/host/verify/pattern.hpp"
#include "common/host/verify/reference.hpp"

namespace ladder {

/// Right or wrong, and why.
struct Verdict {
  /// Empty if C is right; else a line, and one that says what the wrong elements have in common.
  std::string complaint;
  bool sampled = false;  ///< only some rows were compared, and the others scanned for NaN and infinity
  double rel_error = 0;  ///< relative Frobenius norm of the error; 0 where the comparison was exact
  size_t rows = 0;       ///< how many were compared

  bool passed() const { return complaint.empty(); }
};

/// A sentence that explains wrong elements; empty if there is none.
using Explain = std::function<std::string(const WrongElements&)>;

/// Every element must be the reference, rounded to bf16, bit for bit. `c` is all of C.
/// @param context the end of a complaint: what was multiplied, with which seed
/// @param explain what the second line of a complaint begins with, if anything
Verdict compare_exact(const Reference& reference, const std::vector<__nv_bfloat16>& c,
                      const std::string& context, const Explain& explain = nullptr);

/// The largest ||C - reference|| / ||reference|| that passes. Rounding to bf16 alone makes about 1.7e-3.
constexpr double kLargestRelError = 4e-3;

/// The error must be below kLargestRelError as a whole, and no single element may be off by more than
/// rounding explains. NaN and infinity never pass.
/// @param slack added to the norm of the error that is allowed; for inputs that cancel, where fp32 itself
/// errs
/// @param roundings how often an element was rounded to bf16 on its way
/// @param explain as in compare_exact
Verdict compare_close(const Reference& reference, const std::vector<__nv_bfloat16>& c,
                      const std::string& context, double slack = 0, int roundings = 1,
                      const Explain& explain = nullptr);

/// Two runs of the same problem must give the same bits. @return a complaint; empty if they do
/// @param before the C of the run that `run_before` names
std::string compare_bits(const std::vector<__nv_bfloat16>& c, const std::vector<__nv_bfloat16>& before,
                         const Shape& shape, const std::string& run_before);

}  // namespace ladder
