/// @file
/// `ladder compare`: which runs belong together, and what is noise.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>
#include <stdexcept>

#include "common/ladder/compare.hpp"
#include "common/testing/temporary_directory.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using ladder::testing::TemporaryDirectory;

namespace {

/// Of 99_fake at 4096 cubed, with quartiles `spread` us on either side of the median.
ladder::Run run_of(double time_us, double spread, ladder::Settings settings = {}) {
  ladder::Run run;
  run.lesson = "99_fake";
  run.core = "wgmma";
  run.shape = {4096, 4096, 4096};
  run.settings = std::move(settings);
  run.time_us_median = time_us;
  run.time_us_q1 = time_us - spread;
  run.time_us_q3 = time_us + spread;
  run.clock_mhz = 1500;
  return run;
}

ladder::ResultFile file_of(std::vector<ladder::Run> runs) {
  return {"2026-11-21", "abc", "NVIDIA H200", "580", "CUDA 13.0", std::move(runs)};
}

/// What is printed of two files that hold one run each.
std::string compared(const ladder::ResultFile& before, const ladder::ResultFile& after, bool all = false) {
  const TemporaryDirectory directory;
  ladder::write_results("--json", directory.file("a.json"), before);
  ladder::write_results("--json", directory.file("b.json"), after);
  std::ostringstream out;
  ladder::compare_files(out, directory.file("a.json"), directory.file("b.json"), all);
  return out.str();
}

}  // namespace

TEST_CASE("A change counts when the medians are farther apart than both spreads together") {
  const auto change = [](double time_us, double spread) {
    const auto before = file_of({run_of(100, 1)}), after = file_of({run_of(time_us, spread)});
    return ladder::compare_results(before, after).changes.at(0).beyond_noise();
  };
  CHECK(change(110, 1));
  CHECK(change(90, 1));
  CHECK_FALSE(change(101, 1));
  CHECK_FALSE(change(98.5, 1));
  CHECK_FALSE(change(110, 12));
}

TEST_CASE("A change of the clock alone shows in the time and not in clocks") {
  ladder::Run slower_clock = run_of(125, 0);
  slower_clock.clock_mhz = 1200;
  const auto before = file_of({run_of(100, 0)}), after = file_of({slower_clock});
  const ladder::Change change = ladder::compare_results(before, after).changes.at(0);
  CHECK_THAT(change.time_percent, WithinAbs(25, 1e-9));
  CHECK_THAT(*change.cycles_percent, WithinAbs(0, 1e-9));
}

TEST_CASE("Runs are matched by what ran, whatever their order; a knob that came later makes no difference") {
  ladder::Run other_shape = run_of(50, 1, {{"slots", "2"}});
  other_shape.shape = {2048, 2048, 2048};
  const auto before =
      file_of({run_of(100, 1, {{"slots", "2"}}), run_of(200, 1, {{"slots", "3"}}), other_shape});
  const auto after = file_of({run_of(201, 1, {{"group", "16"}, {"slots", "3"}}),
                              run_of(80, 1, {{"slots", "2"}}), run_of(300, 1, {{"slots", "4"}})});
  const ladder::Comparison comparison = ladder::compare_results(before, after);
  REQUIRE(comparison.changes.size() == 2);
  CHECK(comparison.changes[0].before->time_us_median == 200);
  CHECK(comparison.changes[1].before->time_us_median == 100);
  REQUIRE(comparison.only_before.size() == 1);
  CHECK(comparison.only_before[0]->shape.m == 2048);
  REQUIRE(comparison.only_after.size() == 1);
  CHECK(comparison.only_after[0]->settings.at("slots") == "4");
}

TEST_CASE("Only what changed is printed, with clocks and noise; or all") {
  const auto before = file_of({run_of(100, 1, {{"slots", "2"}}), run_of(200, 1, {{"slots", "3"}})});
  const auto after = file_of({run_of(80, 1, {{"slots", "2"}}), run_of(200.5, 1, {{"slots", "3"}})});
  const std::string text = compared(before, after);
  CHECK_THAT(text, ContainsSubstring("-20.0") && ContainsSubstring("faster") && ContainsSubstring("1500"));
  CHECK_THAT(text, ContainsSubstring("99_fake, slots=2, 4096x4096x4096"));
  CHECK_THAT(text, !ContainsSubstring("slots=3") && ContainsSubstring("1 of 2 changed beyond the noise."));
  CHECK_THAT(compared(before, after, true), ContainsSubstring("slots=3"));
  CHECK_THAT(compared(before, before), ContainsSubstring("0 of 2 changed") && !ContainsSubstring("MHz"));
}

TEST_CASE("A file without times is refused by name") {
  ladder::Run counted = run_of(100, 1);
  counted.time_us_median.reset();
  CHECK_THROWS_AS(compared(file_of({counted}), file_of({run_of(100, 1)})), std::invalid_argument);
}
