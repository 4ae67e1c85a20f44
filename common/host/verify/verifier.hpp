/// @file
/// Verifies a multiplication twice: with small integers, bit for bit, and with normal data against fp64.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/cuda/device_buffer.hpp"
#include "common/cuda/unwritten_reads.hpp"
#include "common/host/problem/lesson.hpp"
#include "common/host/problem/shape.hpp"
#include "common/host/verify/output_matrix.hpp"
#include "common/host/verify/verdict.hpp"

namespace ladder {

/// Multiplies; returns when C is complete, or throws.
using Multiply = std::function<void(const Gemm&)>;

/// The two problems of one shape and seed. Inputs and references are made once, for any number of contenders.
class Verifier {
 public:
  /// @throws OutOfDeviceMemory
  Verifier(const Shape& shape, uint64_t seed);

  /// Small integers: any order of summation gives the same bits.
  Verdict check_exact(const Multiply& multiply, const ReferenceEpilogue& epilogue = {});
  /// Normal data: catches what integers hide, such as sums that are rounded too early.
  Verdict check_normal(const Multiply& multiply, const ReferenceEpilogue& epilogue = {});
  /// Both, or the second alone where the epilogue is not exact; stops at the first that fails. rel_error is
  /// that of the normal data.
  Verdict check(const Multiply& multiply, const ReferenceEpilogue& epilogue = {});
  /// The C that was multiplied last.
  std::vector<__nv_bfloat16> last_c() const { return c_.download(); }
  /// Only multiplies, the small integers.
  void run_unverified(const Multiply& multiply);

 private:
  struct Problem {
    DeviceBuffer<__nv_bfloat16> a, b, bias;
    std::vector<Reference> products;  // A · B, for each B
  };
  template <class MakeValues>
  Problem make_problem(const MakeValues& values_of_seed) const;
  Problem& integers();
  /// The product after an epilogue.
  static Reference finished(const Problem& problem, const ReferenceEpilogue& epilogue);
  /// Explains wrong elements of A · B, with the first B.
  Explain explain_product_of(const Problem& problem, bool is_exact);
  std::string explain_launch(const WrongElements&) const;
  std::string explain_stores(const WrongElements&) const;
  Explain with_causes_in_launch(Explain) const;
  std::string explain_nan(const WrongElements& wrong) const;
  std::string unread_fills() const;
  Verdict with_innocent_reads(Verdict verdict);
  std::string run(const Problem& problem, const Multiply& multiply, const std::string& context);

  Shape shape_;
  uint64_t seed_;
  OutputMatrix c_;
  std::optional<Problem> integers_, normal_;
  WorkOfKernels work_;  ///< of the last run
  /// Lines that have read an unwritten array, and the result was right.
  std::set<std::string> innocent_reads_;
  bool has_innocent_fills_ = false;  ///< likewise of slots that nobody waited for
};

/// The largest magnitude of integers for which nearly every sum of k products stays below 256 (three
/// deviations of it), where bf16 still holds every integer: then no wrong product hides behind rounding.
int integer_magnitude(int k);

}  // namespace ladder
