/// @file
/// One wording for every number that is predicted.
#include "common/exercise/prediction.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "common/exercise/check.hpp"
#include "common/host/base/text.hpp"

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

/// What all_predicted() has found so far.
struct Noted {
  std::vector<std::string> unfilled;  ///< names
  std::vector<std::string> wrong;     ///< sentences
  std::vector<std::string>
      parities;  ///< sentences, said only where nothing is unfilled: they would give the parity away
};
Noted* noted = nullptr;

void note_or_throw(std::vector<std::string> Noted::*list, const std::string& sentence) {
  if (!noted) throw NotYet(sentence);
  (noted->*list).push_back(sentence);
}

std::string unfilled(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front() + " is 0: write your prediction in the marked lines";
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return join(first, ", ") + " and " + names.back() + " are 0: write your predictions in the marked lines";
}

}  // namespace

void all_predicted(const std::function<void()>& body) {
  Noted found;
  noted = &found;
  try {
    body();
  } catch (...) {
    noted = nullptr;
    throw;
  }
  noted = nullptr;
  std::vector<std::string> lines;
  if (!found.unfilled.empty()) lines.push_back(unfilled(found.unfilled));
  lines.insert(lines.end(), found.wrong.begin(), found.wrong.end());
  if (found.unfilled.empty()) lines.insert(lines.end(), found.parities.begin(), found.parities.end());
  expect(lines.empty(), join(lines, "\n         "));
}

void expect_predicted(const std::string& name, double predicted, double right, const std::vector<Slip>& slips,
                      double tolerance) {
  const auto is = [&](double number) { return std::abs(predicted - number) <= tolerance * std::abs(number); };
  if (is(right)) return;
  const auto slip = std::find_if(slips.begin(), slips.end(), [&](const Slip& one) {
    return one.number ? is(*one.number) : predicted != 0;
  });
  if (predicted == 0 && slip == slips.end()) {
    if (!noted) throw NotYet(unfilled({name}));
    return noted->unfilled.push_back(name);
  }
  note_or_throw(&Noted::wrong,
                fmt::format("{} is {:.15g}, {}{}", name, predicted, how_far_off(predicted, right),
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
  if (predicted != 0 && predicted != 1)
    note_or_throw(&Noted::wrong, fmt::format("{} is {}, but a parity is 0 or 1", name, predicted));
  else if (predicted != right)
    note_or_throw(&Noted::parities,
                  fmt::format("{} is not the parity that the role waits for: {}", name, question));
}

}  // namespace ladder::exercise
