/// @file
/// One wording for every number that is predicted.
#include "common/exercise/prediction.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "common/exercise/check.hpp"

namespace ladder::exercise {
namespace {

/// Integers and large numbers without decimals, others with two digits.
std::string rounded(double number) {
  return number == std::round(number) || number >= 100 ? fmt::format("{:.0f}", number)
                                                       : fmt::format("{:.2g}", number);
}

/// A factor, where the numbers are far apart; else the difference.
std::string how_far_off(double predicted, double right) {
  const double difference = std::abs(predicted - right);
  const auto [smaller, larger] = std::minmax(predicted, right);
  const std::string way = predicted < right ? "small" : "large";
  if (smaller > 0 && larger >= 2 * smaller && difference >= 10)
    return fmt::format("too {} by a factor of {}", way, rounded(larger / smaller));
  return fmt::format("too {} by {}", way, rounded(difference));
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

}  // namespace ladder::exercise
