/// @file
/// Compares a C with the reference.
#include "common/host/verify/verdict.hpp"

#include <fmt/core.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <mutex>

#include "common/host/base/parallel.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/verify/output_matrix.hpp"

namespace ladder {
namespace {

/// Collects wrong elements and remembers the first.
class Mismatches {
 public:
  explicit Mismatches(const Reference& reference) : reference_(reference), wrong_(reference) {}

  void add(int64_t compared_row, int64_t column, double expected, __nv_bfloat16 got) {
    if (wrong_.count() == 0)
      first_ = describe(reference_.rows[compared_row], column, describe(expected), got);
    wrong_.add(compared_row, column, expected, got);
  }

  std::string complaint(const std::string& context, const Explain& explain) const {
    if (wrong_.count() == 0) return "";
    const std::string explanation = explain ? explain(wrong_) : "";
    return fmt::format("{}; {} of {} compared elements are wrong ({}, {})\n  {}{}{}", first_, wrong_.count(),
                       reference_.values.size(), reference_.shape.name(), context, explanation,
                       explanation.empty() ? "" : "; ", wrong_.describe());
  }

  static std::string describe(int64_t row, int64_t column, const std::string& expected, __nv_bfloat16 got) {
    return fmt::format("row {}, column {}: expected {}, got {}", row, column, expected, describe(got));
  }

  static std::string describe(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
  }

 private:
  static std::string describe(__nv_bfloat16 value) {
    return bf16_bits(value) == kPoisonBits ? "nan (never written)" : describe(double{to_float(value)});
  }

  const Reference& reference_;
  WrongElements wrong_;
  std::string first_;
};

/// Rows that are not compared must at least be finite. Finds the first that is not, or -1.
int64_t first_not_finite(const std::vector<__nv_bfloat16>& c) {
  std::mutex mutex;
  int64_t first = -1;
  parallel_for(static_cast<int64_t>(c.size()), 1 << 20, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (is_finite(c[i])) continue;
      const std::lock_guard lock(mutex);
      if (first < 0 || i < first) first = i;
      return;
    }
  });
  return first;
}

/// Calls check(compared row, column, expected, got) for every element that is compared.
template <class Check>
void for_each_compared(const Reference& reference, const std::vector<__nv_bfloat16>& c, const Check& check) {
  const int64_t n = reference.shape.n;
  for (size_t i = 0; i < reference.rows.size(); ++i)
    for (int64_t j = 0; j < n; ++j)
      check(static_cast<int64_t>(i), j, reference.values[i * n + j], c[reference.rows[i] * n + j]);
}

/// The complaint about what was compared, else about an element of a row that was not.
std::string overall_complaint(const Reference& reference, const std::vector<__nv_bfloat16>& c,
                              const Mismatches& mismatches, const std::string& context,
                              const Explain& explain = nullptr) {
  const std::string complaint = mismatches.complaint(context, explain);
  if (!complaint.empty() || !reference.sampled()) return complaint;
  const int64_t bad = first_not_finite(c);
  if (bad < 0) return "";
  const int64_t n = reference.shape.n;
  return Mismatches::describe(bad / n, bad % n, "a finite number", c[bad]) + " (" + reference.shape.name() +
         ", " + context + ")";
}

}  // namespace

Verdict compare_exact(const Reference& reference, const std::vector<__nv_bfloat16>& c,
                      const std::string& context, const Explain& explain) {
  Mismatches mismatches(reference);
  for_each_compared(reference, c, [&](int64_t row, int64_t column, double expected, __nv_bfloat16 got) {
    const __nv_bfloat16 rounded = to_bf16(static_cast<float>(expected));
    // A sum that is exactly 0 may have either sign.
    const bool both_zero = expected == 0 && to_float(got) == 0;
    if (bf16_bits(got) != bf16_bits(rounded) && !both_zero)
      mismatches.add(row, column, double{to_float(rounded)}, got);
  });
  return {overall_complaint(reference, c, mismatches, context, explain), reference.sampled(), 0,
          reference.rows.size()};
}

Verdict compare_close(const Reference& reference, const std::vector<__nv_bfloat16>& c,
                      const std::string& context, double slack, int roundings, const Explain& explain) {
  double reference_squares = 0, error_squares = 0;
  for_each_compared(reference, c, [&](int64_t, int64_t, double expected, __nv_bfloat16 got) {
    const double error = double{to_float(got)} - expected;
    reference_squares += expected * expected;
    error_squares += error * error;
  });
  const double elements = static_cast<double>(reference.values.size());
  const double allowed = kLargestRelError * std::sqrt(reference_squares) + slack;

  // One element: each rounding to bf16 errs by at most 1/256 of it, the sum in fp32 by far less than a
  // typical element's share of what is allowed.
  const double allowed_each = 4 * allowed / std::sqrt(elements);
  Mismatches mismatches(reference);
  for_each_compared(reference, c, [&](int64_t row, int64_t column, double expected, __nv_bfloat16 got) {
    const double error = std::abs(double{to_float(got)} - expected);
    // Written so that a NaN is wrong.
    if (!(error <= allowed_each + roundings * std::abs(expected) / 256))
      mismatches.add(row, column, expected, got);
  });

  Verdict verdict{overall_complaint(reference, c, mismatches, context, explain), reference.sampled(), 0,
                  reference.rows.size()};
  const double error = std::sqrt(error_squares);
  verdict.rel_error = reference_squares > 0 ? error / std::sqrt(reference_squares) : error;
  if (verdict.passed() && !(error <= allowed))
    verdict.complaint = "the relative error is " + Mismatches::describe(verdict.rel_error) + ", more than " +
                        Mismatches::describe(kLargestRelError) + " (" + reference.shape.name() + ", " +
                        context + ")";
  return verdict;
}

std::string compare_bits(const std::vector<__nv_bfloat16>& c, const std::vector<__nv_bfloat16>& before,
                         const Shape& shape, const std::string& run_before) {
  size_t first = c.size(), count = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    if (bf16_bits(c[i]) == bf16_bits(before[i])) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return "";
  return fmt::format(
      "the bits of C depend on who comes when: row {}, column {} is {:.6g}, and was {:.6g} with {}; "
      "{} of {} elements differ ({})",
      first / shape.n, first % shape.n, to_float(c[first]), to_float(before[first]), run_before, count,
      c.size(), shape.name());
}

}  // namespace ladder
