/// @file
/// Which rung builds on which: of made-up lessons, and of the real ones.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
                 roles = lesson("04_c", {"02_a"}, {"roles"}), both = lesson("05_d", {"04_c"}, {"both"});
  std::vector<const ladder::Lesson*> all{&tiled, &ring, &roles, &both};
};

std::string name(const std::optional<RungPlace>& place) { return place ? place->name() : "none"; }

}  // namespace

TEST_CASE("A rung builds on the one before it in its lesson, else on the last of the lesson below") {
  const Diamond diamond;
  const ladder::Lattice lattice(diamond.all);
  CHECK(name(lattice.base({&diamond.tiled, 0})) == "none");
  CHECK(name(lattice.base({&diamond.ring, 0})) == "02 tiled");
  CHECK(name(lattice.base({&diamond.ring, 1})) == "03 two");
  CHECK(name(lattice.base({&diamond.roles, 0})) == "02 tiled");
  CHECK(name(lattice.base({&diamond.both, 0})) == "04 roles");
  // What was not chosen is no base.
  const ladder::Lattice part({&diamond.ring, &diamond.both});
  CHECK(name(part.base({&diamond.both, 0})) == "none");
}

TEST_CASE("Rungs of builds with another core are left out, and those above build on what is left") {
  Diamond diamond;
  diamond.roles.rungs[0].core = diamond.ring.rungs[1].core = "wgmma";
  const ladder::Lattice lattice(diamond.all, "mma_sync");
  CHECK(name(lattice.base({&diamond.both, 0})) == "02 tiled");
  CHECK(name(lattice.last_of("03_b")) == "03 two");
  CHECK(lattice.rungs().size() == 3);
  CHECK_FALSE(lattice.find("04_c", {{"rung", "roles"}}));
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
  CHECK(gains.gain_cell(large, {&diamond.tiled, 0}) == "-");
  CHECK(gains.gain_cell(large, {&diamond.ring, 1}) == "-");  // over "two", which was not measured
  CHECK(gains.gain_cell(large, {&diamond.both, 0}) == "1.50");
  CHECK(gains.base_cell({&diamond.both, 0}) == "04");
  CHECK(gains.notes() == std::vector<std::string>{"04 roles is slower than 02 tiled at 64x64x64"});
}

TEST_CASE("The gains on the way to the last rung multiply to the whole, and each has its cause") {
  Diamond diamond;
  diamond.roles.rungs[0].cause = "a warp that loads";
  ladder::Gains gains(diamond.all);
  const ladder::Shape shape{64, 64, 64};
  gains.add(shape, {&diamond.tiled, 0}, 100);
  gains.add(shape, {&diamond.roles, 0}, 120);
  CHECK(gains.path().empty());
  gains.add(shape, {&diamond.both, 0}, 180);
  CHECK(gains.path() == std::vector<std::string>{"64x64x64, from 02 to 05:\n  1.20 x 1.50 = 1.80"});
  CHECK(gains.causes().at(2) == "04   over 02    a warp that loads");
}

TEST_CASE("Every rung but the first builds on one that there is, and names its one cause") {
  const std::string core = GENERATE("wgmma", "mma_sync");
  const ladder::Lattice lattice(ladder::all_lessons(), core);
  std::set<std::string> known;
  for (const RungPlace& place : lattice.rungs()) {
    INFO(place.name());
    CHECK(place.lesson->builds_on.size() <= 1);
    const auto base = lattice.base(place);
    CHECK(base.has_value() == !known.empty());
    if (base) {
      CHECK(known.count(base->id()) == 1);
      CHECK_FALSE(place.lesson->rungs.at(place.rung).cause.empty());
    }
    CHECK(known.insert(place.id()).second);
  }
  CHECK(known.size() == (core == "wgmma" ? 24 : 17));  // without wgmma the steps of 04 and 05 are left out
}
