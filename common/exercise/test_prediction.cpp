/// @file
/// What a learner is told of a number that is not right.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

using Catch::Matchers::Message;
using ladder::exercise::expect_predicted, ladder::exercise::NotYet;

TEST_CASE("A right number is accepted, and one within the tolerance") {
  expect_predicted("kX", 7, 7, {{7, "no slip can be right"}});
  expect_predicted("kX", 0, 0, {});
  expect_predicted("kX", 95, 100, {}, 0.05);
  CHECK_THROWS_AS(expect_predicted("kX", 94, 100, {}, 0.05), NotYet);
}

TEST_CASE("A 0 is not filled in, unless it is a slip") {
  CHECK_THROWS_MATCHES(expect_predicted("kX", 0, 7, {{1, "that is one"}, {"how many are there?"}}), NotYet,
                       Message("kX is 0: write your prediction in the marked lines"));
  CHECK_THROWS_MATCHES(expect_predicted("kParity", 0, 1, {{0, "that is the first lap"}}), NotYet,
                       Message("kParity is 0, too small by 1: that is the first lap"));
}

TEST_CASE("A wrong number is off by a factor or by a difference") {
  const auto says = [](double predicted, double right, const char* sentence) {
    CHECK_THROWS_MATCHES(expect_predicted("kX", predicted, right, {}), NotYet, Message(sentence));
  };
  says(240, 960, "kX is 240, too small by a factor of 4");
  says(90, 40, "kX is 90, too large by a factor of 2.2");
  says(73728, 74752, "kX is 73728, too small by 1024");
  says(700, 796.6, "kX is 700, too small by 97");
  says(5, 2, "kX is 5, too large by 3");
  says(-5, 100, "kX is -5, too small by 105");
  says(4.5, 45e9, "kX is 4.5, too small by a factor of 10000000000");
}

TEST_CASE("The first slip that matches says what was forgotten") {
  const auto says = [](double predicted, const char* sentence) {
    CHECK_THROWS_MATCHES(
        expect_predicted("kX", predicted, 100,
                         {{50, "you forgot B"}, {50.5, "you forgot C"}, {"what is added up?"}}, 0.02),
        NotYet, Message(sentence));
  };
  says(51, "kX is 51, too small by 49: you forgot B");
  says(51.2, "kX is 51.2, too small by 49: you forgot C");
  says(90, "kX is 90, too small by 10: what is added up?");
}
