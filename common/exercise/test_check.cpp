/// @file
/// What a learner is told of the schedule in which a check failed.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "common/exercise/check.hpp"
#include "common/host/device/device.hpp"

using Catch::Matchers::Message, Catch::Matchers::MessageMatches, Catch::Matchers::StartsWith;
using ladder::exercise::expect, ladder::exercise::NotYet, ladder::exercise::on_every_schedule;

TEST_CASE("What fails in every schedule is no matter of the schedule") {
  CHECK_THROWS_MATCHES(on_every_schedule([] { expect(false, "wrong"); }), NotYet, Message("wrong"));
}

TEST_CASE("A schedule is named if it fails where another was right") {
  if (!ladder::on_cpu_device()) SKIP("a GPU has one schedule");
  int calls = 0;
  CHECK_THROWS_MATCHES(on_every_schedule([&] { expect(++calls < 2, "wrong"); }), NotYet,
                       MessageMatches(StartsWith("wrong (schedule ")));
}
