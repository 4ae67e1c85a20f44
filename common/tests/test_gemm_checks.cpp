/// @file
/// Tests of what lesson tests share.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "common/host/device/device.hpp"
#include "common/testing/gemm_checks.hpp"
#include "common/testing/schedules.hpp"
#include "common/tests/fake_lesson.hpp"

namespace testing = ladder::testing;

TEST_CASE("The trip counts of a ring are those around its length") {
  CHECK(testing::trip_counts(1) == std::vector<int>{1, 2, 4});
  CHECK(testing::trip_counts(2) == std::vector<int>{1, 2, 3, 7});
  CHECK(testing::trip_counts(4) == std::vector<int>{1, 3, 4, 5, 13});
}

TEST_CASE("A test runs once by each schedule, and once on the GPU") {
  std::set<std::string> seen;
  int runs = 0;
  testing::for_each_schedule(
      [&] {
        ++runs;
        seen.insert(testing::current_schedule());
      },
      3);
  CHECK(runs == (ladder::on_cpu_device() ? 9 : 1));
  CHECK(seen.size() == static_cast<size_t>(runs));
}

TEST_CASE("A right lesson passes its checks by every schedule") {
  testing::skip_unless_runnable(ladder::fake::lesson());
  testing::check_gemm_on_all_schedules(ladder::fake::lesson(), {9, 8, 6}, {{"slots", "3"}}, 1);
}

TEST_CASE("A refusal must name what it is asked to name") {
  testing::skip_unless_runnable(ladder::fake::lesson());
  testing::expect_refused(ladder::fake::lesson(), {4, 3, 4}, {}, {"n is 3", "multiple of 2"});
}

TEST_CASE("A wrong lesson fails its check", "[!shouldfail]") {
  testing::skip_unless_runnable(ladder::fake::lesson());
  testing::check_gemm(ladder::fake::lesson(), {9, 8, 6}, {{"mistake", "yes"}});
}

TEST_CASE("The command that repeats a run names the lesson, the shape, the settings and the schedule") {
  if (ladder::on_cpu_device()) testing::use_test_schedule("random:17");
  const std::string command =
      testing::replay_command(ladder::fake::lesson(), {129, 136, 72}, {{"slots", "3"}});
  CHECK_THAT(command, Catch::Matchers::StartsWith("99_fake --shape 129x136x72 --slots 3"));
  if (ladder::on_cpu_device()) CHECK_THAT(command, Catch::Matchers::EndsWith(" --schedule random:17"));
}
