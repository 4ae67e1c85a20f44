/// @file
/// One wording for every number that is predicted.
#include "common/exercise/prediction.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "common/exercise/check.hpp"

namespace ladder::exercise {
namespace {

/// Which way off, and roughly how far where the numbers are large: never so exactly that the right one
/// follows.
std::string how_far_off(double predicted, double right) {
  const bool is_small = predicted < right;
  const std::string way = is_small ? "too small" : "too large";
  const auto [smaller, larger] = std::minmax(predicted, right);
  if (larger - smaller < 10 || smaller <= 0) return way;
  const double factor = larger / smaller;
  if (factor > 10) return way + (is_small ? ", less than a tenth" : ", more than ten times");
  if (factor > 3) return way + ", several times";
  if (factor > 2) return way + (is_small ? ", less than half" : ", more than twice");
  if (factor <= 1.05) return way + ", but within 5 %";
  return factor <= 1.25 ? way + ", but within a quarter" : way;
}

}  // namespace

void expect_predicted(const std::string& name, double predicted, double right, const std::vector<Slip>& slips,
                      double tolerance) {
  const auto is = [&](double number) { return std::abs(predicted - number) <= tolerance * std::abs(number); };
  if (is(right)) return;
  const auto slip = std::find_if(slips.begin(), slips.end(), [&](const Slip& one) {
    return one.number ? is(*one.number) : predicted != 0;
  });
  expect(predicted != 0 || slip != slips.end(), name + " is 0: write your prediction in the marked lines");
  throw NotYet(fmt::format("{} is {:.15g}, {}{}", name, predicted, how_far_off(predicted, right),
                           slip == slips.end() ? "" : ": " + slip->forgotten));
}

void expect_returned(const std::string& call, int64_t returned, int64_t right,
                     const std::vector<Slip>& slips) {
  if (returned == right) return;
  const auto slip = std::find_if(slips.begin(), slips.end(), [&](const Slip& one) {
    return !one.number || *one.number == static_cast<double>(returned);
  });
  throw NotYet(fmt::format("{} is {}, must be {}{}", call, returned, right,
                           slip == slips.end() ? "" : ": " + slip->forgotten));
}

void expect_predicted_parity(const std::string& name, int64_t predicted, int64_t right,
                             const std::string& question) {
  expect(predicted == 0 || predicted == 1, fmt::format("{} is {}, but a parity is 0 or 1", name, predicted));
  expect(predicted == right, fmt::format("{} is not what the role waits for: {}", name, question));
}

}  // namespace ladder::exercise
