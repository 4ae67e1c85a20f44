/// @file
/// Tests of what lesson tests share.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

TEST_CASE("A test runs once by each schedule of its breadth, and once on the GPU") {
  const auto [breadth, expected_runs] =
      GENERATE(std::pair("narrow", 2), std::pair("usual", 7), std::pair("more", 7));
  setenv("LADDER_TEST_BREADTH", breadth, 1);
  std::set<std::string> seen;
  int runs = 0;
  testing::for_each_schedule(
      [&] {
        ++runs;
        seen.insert(testing::current_schedule());
      },
      3);
  CHECK(runs == (ladder::on_cpu_device() ? expected_runs : 1));
  CHECK(seen.size() == static_cast<size_t>(runs));
  unsetenv("LADDER_TEST_BREADTH");
}

TEST_CASE("A test of many problems runs by three schedules, of which one is another each time") {
  if (!ladder::on_cpu_device()) return;
  std::multiset<std::string> seen;
  constexpr int kOthers = 5;  // four fixed, one random
  for (int problem = 0; problem < kOthers; ++problem)
    testing::for_three_schedules([&] { seen.insert(testing::current_schedule()); }, 1);
  CHECK(seen.size() == 3 * kOthers);
  CHECK(std::set<std::string>(seen.begin(), seen.end()).size() == 2 + kOthers);
  for (const testing::TestSchedule& one : testing::test_schedules(testing::Breadth::usual, 1))
    CHECK(seen.count(one.name) == (one.check_races ? kOthers : 1));
}

TEST_CASE("A check by turns takes one of the two schedules, and the other the next time") {
  if (!ladder::on_cpu_device()) return;
  std::set<std::string> seen;
  ladder::Lesson lesson = ladder::fake::lesson();
  lesson.launch = [&](const ladder::Gemm& gemm, const ladder::Settings& settings, cudaStream_t stream) {
    seen.insert(testing::current_schedule());
    ladder::fake::lesson().launch(gemm, settings, stream);
  };
  for (const size_t expected : {1, 2, 2}) {
    testing::check_gemm_by_turns(lesson, {9, 8, 6});
    CHECK(seen.size() == expected);
  }
}

TEST_CASE("A ring is tried on three schedules where it is just full and just more than full, else by turns") {
  if (!ladder::on_cpu_device()) return;
  std::map<int, std::set<std::string>> seen;
  ladder::Lesson lesson = ladder::fake::lesson();
  lesson.launch = [&](const ladder::Gemm& gemm, const ladder::Settings& settings, cudaStream_t stream) {
    seen[gemm.k / 2].insert(testing::current_schedule());
    ladder::fake::lesson().launch(gemm, settings, stream);
  };
  testing::check_ring(lesson, 2, [](int steps) { return ladder::Shape{9, 8, 2 * steps}; }, {});
  const auto count = [&](int steps) { return seen.at(steps).size(); };
  CHECK(std::vector{count(1), count(2), count(3), count(7)} == std::vector<size_t>{1, 3, 3, 1});
}

TEST_CASE("Races are checked on two schedules, and with breadth 'more' on the others") {
  if (!ladder::on_cpu_device()) return;
  const auto count = [](const std::vector<testing::TestSchedule>& schedules) {
    return std::count_if(schedules.begin(), schedules.end(), [](const auto& one) { return one.check_races; });
  };
  CHECK(testing::test_schedules(testing::Breadth::one, 0).size() == 1);
  CHECK(count(testing::test_schedules(testing::Breadth::narrow, 0)) == 2);
  CHECK(count(testing::test_schedules(testing::Breadth::usual, 1)) == 2);
  CHECK(count(testing::test_schedules(testing::Breadth::more, 3)) == 7);
  std::set<std::string> checked;
  for (const auto breadth : {testing::Breadth::usual, testing::Breadth::more})
    for (const auto& one : testing::test_schedules(breadth, 0))
      if (one.check_races) CHECK(checked.insert(one.name).second);
  CHECK(checked.size() == 6);
}

TEST_CASE("A breadth that is none is refused") {
  setenv("LADDER_TEST_BREADTH", "wide", 1);
  CHECK_THROWS_WITH(testing::breadth(), Catch::Matchers::ContainsSubstring("LADDER_TEST_BREADTH=wide"));
  unsetenv("LADDER_TEST_BREADTH");  // for tests that run in the same process
}

TEST_CASE("A right lesson passes its checks by every schedule") {
  testing::skip_unless_runnable(ladder::fake::lesson());
  testing::check_gemm_on_three_schedules(ladder::fake::lesson(), {9, 8, 6}, {{"slots", "3"}}, 1);
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
  if (ladder::on_cpu_device()) testing::use_test_schedule({"random:17"});
  const std::string command =
      testing::replay_command(ladder::fake::lesson(), {129, 136, 72}, {{"slots", "3"}});
  CHECK_THAT(command, Catch::Matchers::StartsWith("99_fake --shape 129x136x72 --slots 3"));
  if (ladder::on_cpu_device()) CHECK_THAT(command, Catch::Matchers::EndsWith(" --schedule random:17"));
}
