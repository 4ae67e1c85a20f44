/// @file
/// What a learner is told of a number that is not right.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

using Catch::Matchers::Message;
using ladder::exercise::all_predicted;
using ladder::exercise::expect_predicted, ladder::exercise::expect_predicted_parity;
using ladder::exercise::expect_returned, ladder::exercise::NotYet;

TEST_CASE("A right number is accepted, and one within the tolerance") {
  expect_predicted("kX", 7, 7, {{7, "no slip can be right"}});
  expect_predicted("kX", 0, 0, {});
  expect_predicted("kX", 95, 100, {}, 0.05);
  CHECK_THROWS_AS(expect_predicted("kX", 94, 100, {}, 0.05), NotYet);
}

TEST_CASE("A 0 is not filled in, unless it is a slip") {
  CHECK_THROWS_MATCHES(expect_predicted("kX", 0, 7, {{1, "that is one"}, {"how many are there?"}}), NotYet,
                       Message("kX is 0: write your prediction in the marked lines"));
  CHECK_THROWS_MATCHES(expect_predicted("kLaps", 0, 1, {{0, "that is the first lap"}}), NotYet,
                       Message("kLaps is 0, too small: that is the first lap"));
}

TEST_CASE("What is said of a wrong number does not give the right one away") {
  const auto says = [](double predicted, double right, const char* sentence) {
    CHECK_THROWS_MATCHES(expect_predicted("kX", predicted, right, {}), NotYet, Message(sentence));
  };
  says(1, 960, "kX is 1, too small, less than a tenth");
  says(9601, 960, "kX is 9601, too large, more than ten times");
  says(240, 960, "kX is 240, too small, several times");
  says(960, 240, "kX is 960, too large, several times");
  says(40, 90, "kX is 40, too small, less than half");
  says(90, 40, "kX is 90, too large, more than twice");
  says(60, 90, "kX is 60, too small");
  says(90, 60, "kX is 90, too large");
  says(73728, 74752, "kX is 73728, too small, but within 5 %");
  says(796.6, 700, "kX is 796.6, too large, but within a quarter");
  says(1, 4, "kX is 1, too small");
  says(5, 4, "kX is 5, too large");
  says(-5, 100, "kX is -5, too small");
}

TEST_CASE("Of a wrong parity nothing is said but what to ask") {
  expect_predicted_parity("kParity", 0, 0, "which lap is it?");
  const auto says = [](int predicted, int right, const char* sentence) {
    CHECK_THROWS_MATCHES(expect_predicted_parity("kParity", predicted, right, "which lap is it?"), NotYet,
                         Message(sentence));
  };
  says(0, 1, "kParity is not what the role waits for: which lap is it?");
  says(1, 0, "kParity is not what the role waits for: which lap is it?");
  says(2, 0, "kParity is 2, but a parity is 0 or 1");
}

TEST_CASE("The first slip that matches says what was forgotten") {
  const auto says = [](double predicted, const char* sentence) {
    CHECK_THROWS_MATCHES(
        expect_predicted("kX", predicted, 100,
                         {{50, "you forgot B"}, {50.5, "you forgot C"}, {"what is added up?"}}, 0.02),
        NotYet, Message(sentence));
  };
  says(51, "kX is 51, too small: you forgot B");
  says(51.2, "kX is 51.2, too small: you forgot C");
  says(90, "kX is 90, too small, but within a quarter: what is added up?");
}

TEST_CASE("All wrong numbers are said at once, and parities when every number is filled in") {
  const auto says = [](double x, double y, double z, int parity, const char* sentences) {
    const auto predict = [&] {
      expect_predicted("kX", x, 10, {});
      expect_predicted("kY", y, 20, {{30, "you forgot B"}});
      expect_predicted("kZ", z, 30, {});
      expect_predicted_parity("kParity", parity, 1, "which lap is it?");
    };
    CHECK_THROWS_MATCHES(all_predicted(predict), NotYet, Message(sentences));
  };
  all_predicted([] { expect_predicted("kX", 10, 10, {}); });
  says(0, 0, 0, 0, "kX, kY and kZ are 0: write your predictions in the marked lines");
  says(0, 30, 30, 0,
       "kX is 0: write your prediction in the marked lines\n         kY is 30, too large: you forgot B");
  says(11, 30, 30, 0,
       "kX is 11, too large\n         kY is 30, too large: you forgot B\n"
       "         kParity is not what the role waits for: which lap is it?");
  says(10, 20, 30, 2, "kParity is 2, but a parity is 0 or 1");
  CHECK_THROWS_MATCHES(expect_predicted("kX", 11, 10, {}), NotYet, Message("kX is 11, too large"));
  CHECK_THROWS_AS(all_predicted([] { throw std::logic_error("the device's"); }), std::logic_error);
  CHECK_THROWS_AS(expect_predicted("kX", 11, 10, {}), NotYet);
}

TEST_CASE("Of a function's value is said what it must be, and which slip it is") {
  expect_returned("f(1)", 7, 7, {{7, "no slip can be right"}});
  CHECK_THROWS_MATCHES(expect_returned("f(1)", 3, 7), NotYet, Message("f(1) is 3, must be 7"));
  CHECK_THROWS_MATCHES(expect_returned("f(1)", 3, 7, {{2, "two"}, {3, "three"}}), NotYet,
                       Message("f(1) is 3, must be 7: three"));
  CHECK_THROWS_MATCHES(expect_returned("f(1)", 4, 7, {{2, "two"}, {"how many?"}}), NotYet,
                       Message("f(1) is 4, must be 7: how many?"));
}
