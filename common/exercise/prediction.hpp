/// @file
/// What the checks of exercises share in which numbers are predicted, or come from a function of a few lines.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ladder::exercise {

/// A wrong number that a learner may come to, and the term that is forgotten then.
struct Slip {
  template <class Number>
  requires std::integral<Number> || std::floating_point<Number> Slip(Number number, std::string forgotten)
      : number(static_cast<double>(number)), forgotten(std::move(forgotten)) {}
  /// Any other number.
  Slip(std::string question) : forgotten(std::move(question)) {}

  std::optional<double> number;
  std::string forgotten;
};

/// Calls `body`, in which expect_predicted() and expect_predicted_parity() note what is wrong and go on.
/// @throws NotYet with all that they noted, a line each. Parities are judged when every number is filled in.
void all_predicted(const std::function<void()>& body);

/// Does nothing if `predicted` is right. @param tolerance the part of a number by which another may differ
/// from it and count as the same. @throws NotYet with roughly how far off it is and what the first slip says
/// that matches; of a 0 that is no slip, that it is not filled in
void expect_predicted(const std::string& name, double predicted, double right, const std::vector<Slip>& slips,
                      double tolerance = 0);

/// The same for the parity with which a role waits. @throws NotYet with `question`, whichever was written
void expect_predicted_parity(const std::string& name, int64_t predicted, int64_t right,
                             const std::string& question);

/// Of a function of a few lines. @throws NotYet with what the call returns, what it must, and what the first
/// slip says that matches
void expect_returned(const std::string& call, int64_t returned, int64_t right,
                     const std::vector<Slip>& slips = {});

}  // namespace ladder::exercise
