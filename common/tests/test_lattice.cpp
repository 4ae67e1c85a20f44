/// @file
/// Which rung builds on which: of made-up lessons, and of the real ones.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/host/base/text.hpp"
#include "common/host/problem/lesson_registry.hpp"
#include "common/ladder/lattice.hpp"

namespace {

using ladder::RungPlace;

ladder::Lesson lesson(const std::string& name, const std::vector<std::string>& builds_on,
                      const std::vector<std::string>& rungs) {
  ladder::Lesson result;
  result.name = name;
  result.builds_on = builds_on;
  result.knobs = {{"rung", "which", rungs}};
  for (const std::string& rung : rungs) result.rungs.push_back({rung, {{"rung", rung}}});
  return result;
}

/// As the real ones, with two rungs in 03.
struct Diamond {
  ladder::Lesson tiled = lesson("02_a", {}, {"tiled"}), ring = lesson("03_b", {"02_a"}, {"two", "three"}),
                 roles = lesson("04_c", {"02_a"}, {"roles"}),
                 both = lesson("05_d", {"03_b", "04_c"}, {"both"});
  std::vector<const ladder::Lesson*> all{&tiled, &ring, &roles, &both};
};

std::vector<std::string> names(const std::vector<RungPlace>& places) {
  std::vector<std::string> result;
  for (const RungPlace& place : places) result.push_back(place.name());
  return result;
}

}  // namespace

TEST_CASE("A rung builds on the one before it in its lesson, else on the last of each lesson below") {
  const Diamond diamond;
  const ladder::Lattice lattice(diamond.all);
  CHECK(lattice.bases({&diamond.tiled, 0}).empty());
  CHECK(names(lattice.bases({&diamond.ring, 0})) == std::vector<std::string>{"02 tiled"});
  CHECK(names(lattice.bases({&diamond.ring, 1})) == std::vector<std::string>{"03 two"});
  CHECK(names(lattice.bases({&diamond.roles, 0})) == std::vector<std::string>{"02 tiled"});
  CHECK(names(lattice.bases({&diamond.both, 0})) == std::vector<std::string>{"03 three", "04 roles"});
  // What was not chosen is no base.
  const ladder::Lattice part({&diamond.roles, &diamond.both});
  CHECK(names(part.bases({&diamond.both, 0})) == std::vector<std::string>{"04 roles"});
}

TEST_CASE("A run belongs to the rung that has its settings") {
  const Diamond diamond;
  const ladder::Lattice lattice(diamond.all);
  CHECK(lattice.find("03_b", {{"rung", "three"}}).value().rung == 1);
  CHECK_FALSE(lattice.find("03_b", {{"rung", "four"}}));
  CHECK_FALSE(lattice.find("cublaslt", {}));
}

TEST_CASE("Gains are over what a rung builds on, and a loss is named with its shapes") {
  const Diamond diamond;
  ladder::Gains gains(diamond.all);
  const ladder::Shape small{64, 64, 64}, large{128, 128, 128};
  for (const ladder::Shape& shape : {small, large}) {
    gains.add(shape, {&diamond.tiled, 0}, 100);
    gains.add(shape, {&diamond.ring, 1}, 150);
    gains.add(shape, {&diamond.roles, 0}, shape == small ? 90 : 120);
    gains.add(shape, {&diamond.both, 0}, 180);
  }
  CHECK(gains.gains_cell(large, {&diamond.tiled, 0}) == "-");
  CHECK(gains.gains_cell(large, {&diamond.ring, 1}) == "-");  // over "two", which was not measured
  CHECK(gains.gains_cell(large, {&diamond.both, 0}) == "1.20, 1.50");
  CHECK(gains.bases_cell({&diamond.both, 0}) == "03, 04");
  // 04 is slower than 03 at both sizes, and does not build on it.
  CHECK(gains.notes() ==
        std::vector<std::string>{"04 roles is slower than 02 tiled at 64x64x64:\n  see 04_c/README.md"});
}

TEST_CASE("Ring and roles make a table of two by two where all four were measured") {
  const Diamond diamond;
  ladder::Gains gains(diamond.all);
  const ladder::Shape shape{64, 64, 64};
  gains.add(shape, {&diamond.tiled, 0}, 100);
  gains.add(shape, {&diamond.ring, 1}, 150);
  gains.add(shape, {&diamond.roles, 0}, 120);
  CHECK(gains.two_by_two().empty());
  gains.add(shape, {&diamond.both, 0}, 180);
  const std::vector<std::string> lines = gains.two_by_two();
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].find("64x64x64") != std::string::npos);
  CHECK(lines[1].find("02  100.0     03  150.0") != std::string::npos);
  CHECK(lines[2].find("04  120.0     05  180.0") != std::string::npos);
}

TEST_CASE("A lesson has at most two rungs, and builds on lessons that there are") {
  std::set<std::string> known;
  for (const ladder::Lesson* lesson : ladder::all_lessons()) {
    INFO(lesson->name);
    CHECK(lesson->rungs.size() <= 2);
    CHECK(lesson->builds_on.empty() == known.empty());
    for (const std::string& base : lesson->builds_on) CHECK(known.count(base) == 1);
    known.insert(lesson->name);
  }
  const auto bases_of = [](const std::string& number) {
    const auto& all = ladder::all_lessons();
    const auto found = std::find_if(all.begin(), all.end(), [&](const ladder::Lesson* lesson) {
      return ladder::number_of(lesson->name) == number;
    });
    REQUIRE(found != all.end());
    return (*found)->builds_on;
  };
  CHECK(bases_of("03") == std::vector<std::string>{"02_tiled"});
  CHECK(bases_of("04") == std::vector<std::string>{"02_tiled"});
  CHECK(bases_of("05") == std::vector<std::string>{"03_double_buffer", "04_warp_specialized"});
}
