/// @file
/// The cost model: closed forms against the recurrence, what must hold for every pipeline, and its limits.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <random>

#include "common/model/model.hpp"

using Catch::Approx;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::StartsWith;
using ladder::model::closed_form;
using ladder::model::Pipeline;
using ladder::model::Release;
using ladder::model::schedule;
using ladder::model::Span;
using ladder::model::TileTimes;
using ladder::model::time_per_tile;
using ladder::model::total_time;

namespace {

/// Calls visit with every pipeline whose times are whole numbers from 0 to 6, of at most 4 slots. Sums of
/// small whole numbers are exact, so results can be compared bit for bit.
template <class Visit>
void for_each_small(int most_store, const Visit& visit) {
  for (int load = 0; load <= 6; ++load)
    for (int compute = 0; compute <= 6; ++compute)
      for (int store = 0; store <= most_store; ++store)
        for (int slots = 1; slots <= 4; ++slots)
          for (int staging = 1; staging <= (store > 0 ? 4 : 1); ++staging)
            visit(Pipeline{
                double(load), double(compute), double(store), slots, staging, {}, Release::after_compute});
}

/// Counts instead of a CHECK for each of a million cases, which would take minutes; keeps the first that
/// differs.
struct Differences {
  int cases = 0, found = 0;
  Pipeline first;
  int first_tiles = 0;

  void compare(const Pipeline& pipeline, int tiles, double one, double other) {
    ++cases;
    if (one == other || found++ > 0) return;
    first = pipeline;
    first_tiles = tiles;
  }
};

void check_none(const Differences& differences) {
  INFO("load " << differences.first.load << " compute " << differences.first.compute << " store "
               << differences.first.store << " slots " << differences.first.slots << " staging "
               << differences.first.staging_slots << " interval "
               << differences.first.load_interval.value_or(-1) << " tiles " << differences.first_tiles);
  CHECK(differences.cases > 0);
  CHECK(differences.found == 0);
}

Pipeline random_pipeline(std::mt19937& random) {
  std::uniform_real_distribution<double> time(0, 1000);
  std::uniform_int_distribution<int> ring(1, 6), coin(0, 1);
  Pipeline pipeline{time(random), time(random), time(random),          ring(random),
                    ring(random), {},           Release::after_compute};
  if (coin(random)) pipeline.load_interval = time(random);
  if (coin(random) && pipeline.slots > 1) pipeline.release = Release::after_next_wait;
  return pipeline;
}

constexpr int kSeed = 20, kRandomCases = 2000;

}  // namespace

TEST_CASE("One slot makes two roles take turns: n (l + c)") {
  Differences differences;
  for_each_small(0, [&](Pipeline p) {
    if (p.slots != 1) return;
    for (int n = 0; n <= 12; ++n) differences.compare(p, n, total_time(p, n), n * (p.load + p.compute));
  });
  check_none(differences);
}

TEST_CASE("Two slots or more overlap two roles: n max(l, c) + min(l, c), for every n but 0") {
  Differences differences;
  for_each_small(0, [&](Pipeline p) {
    if (p.slots == 1) return;
    CHECK(total_time(p, 0) == 0);
    for (int n = 1; n <= 12; ++n)
      differences.compare(p, n, total_time(p, n),
                          n * std::max(p.load, p.compute) + std::min(p.load, p.compute));
  });
  check_none(differences);
}

TEST_CASE(
    "Three roles with one slot on each side: l + c + s + (n - 1) max(l + c, c + s), for every n but 0") {
  Differences differences;
  for_each_small(6, [&](Pipeline p) {
    if (p.slots != 1 || p.staging_slots != 1) return;
    const double alone = p.load + p.compute + p.store;
    for (int n = 1; n <= 12; ++n)
      differences.compare(p, n, total_time(p, n),
                          alone + (n - 1) * std::max(p.load + p.compute, p.compute + p.store));
  });
  check_none(differences);
}

TEST_CASE("Three roles with two slots or more on each side: n max + (l + c + s - max), for every n but 0") {
  Differences differences;
  for_each_small(6, [&](Pipeline p) {
    if (p.slots == 1 || (p.store > 0 && p.staging_slots == 1)) return;
    const double longest = std::max({p.load, p.compute, p.store});
    for (int n = 1; n <= 12; ++n)
      differences.compare(p, n, total_time(p, n), n * longest + (p.load + p.compute + p.store - longest));
  });
  check_none(differences);
}

TEST_CASE("The closed form of simple pipelines is the recurrence, for every mixture of rings") {
  Differences differences;
  for_each_small(6, [&](Pipeline p) {
    for (int n = 0; n <= 12; ++n) differences.compare(p, n, total_time(p, n), *closed_form(p, n));
  });
  check_none(differences);
}

TEST_CASE("The closed forms of copies that overlap, and of slots released late, are the recurrence") {
  Differences differences;
  for_each_small(0, [&](Pipeline p) {
    for (int interval = 0; interval <= 8; ++interval)
      for (const Release release : {Release::after_compute, Release::after_next_wait}) {
        if (release == Release::after_next_wait && p.slots == 1) continue;
        p.load_interval = interval;
        p.release = release;
        for (int n = 0; n <= 12; ++n) differences.compare(p, n, total_time(p, n), *closed_form(p, n));
      }
  });
  check_none(differences);
}

TEST_CASE("Closed forms are the recurrence for random times and many tiles") {
  std::mt19937 random(kSeed);
  int known = 0;
  for (int i = 0; i < kRandomCases; ++i) {
    Pipeline pipeline = random_pipeline(random);
    if (i % 2 == 0) pipeline.store = 0;
    const int tiles = static_cast<int>(random() % 300);
    const auto closed = closed_form(pipeline, tiles);
    if (!closed) continue;
    ++known;
    if (*closed != Approx(total_time(pipeline, tiles)).epsilon(1e-9))
      FAIL("case " << i << ", " << tiles << " tiles");
  }
  CHECK(known > kRandomCases / 2);
}

TEST_CASE("There is no closed form for three roles whose copies overlap or whose slots are released late") {
  CHECK_FALSE(closed_form({.load = 1, .compute = 1, .store = 1, .load_interval = 0.5}, 3));
  CHECK_FALSE(
      time_per_tile({.load = 1, .compute = 1, .store = 1, .slots = 2, .release = Release::after_next_wait}));
}

TEST_CASE("In a long run each tile adds what time_per_tile says") {
  std::mt19937 random(kSeed);
  for (int i = 0; i < kRandomCases; ++i) {
    Pipeline pipeline = random_pipeline(random);
    if (i % 2 == 0) pipeline.store = 0;
    const auto step = time_per_tile(pipeline);
    if (!step) continue;
    // Over a number of tiles that every ring, and every ring less one, divides.
    constexpr int kLong = 600, kLaps = 60;
    const double added = (total_time(pipeline, kLong) - total_time(pipeline, kLong - kLaps)) / kLaps;
    if (added != Approx(*step).epsilon(1e-9).margin(1e-9))
      FAIL("case " << i << ": " << added << " and " << *step);
  }
}

TEST_CASE("A pipeline whose loader waits for each copy is one whose interval is the whole load") {
  std::mt19937 random(kSeed);
  for (int i = 0; i < kRandomCases; ++i) {
    Pipeline waits = random_pipeline(random);
    waits.load_interval.reset();
    Pipeline same = waits;
    same.load_interval = waits.load;
    if (total_time(waits, 20) != total_time(same, 20)) FAIL("case " << i);
  }
}

TEST_CASE("More tiles and longer times never end earlier") {
  std::mt19937 random(kSeed);
  for (int i = 0; i < kRandomCases; ++i) {
    const Pipeline pipeline = random_pipeline(random);
    const int tiles = 1 + static_cast<int>(random() % 30);
    const double total = total_time(pipeline, tiles);
    const auto never_earlier = [&](const char* what, const Pipeline& longer, int of_tiles) {
      if (total_time(longer, of_tiles) < total) FAIL("case " << i << ": " << what);
    };
    never_earlier("a tile more", pipeline, tiles + 1);
    for (double Pipeline::*time : {&Pipeline::load, &Pipeline::compute, &Pipeline::store}) {
      Pipeline longer = pipeline;
      longer.*time += 10;
      never_earlier("a longer time", longer, tiles);
    }
    Pipeline longer = pipeline;
    longer.load_interval = pipeline.load_interval.value_or(pipeline.load) + 10;
    never_earlier("a longer interval", longer, tiles);
    if (pipeline.slots > 1) {
      longer = pipeline;
      longer.release = Release::after_next_wait;
      never_earlier("a later release", longer, tiles);
    }
  }
}

TEST_CASE("A slot more, on either side, never hurts") {
  std::mt19937 random(kSeed);
  for (int i = 0; i < kRandomCases; ++i) {
    const Pipeline pipeline = random_pipeline(random);
    const int tiles = static_cast<int>(random() % 30);
    for (int Pipeline::*ring : {&Pipeline::slots, &Pipeline::staging_slots}) {
      Pipeline deeper = pipeline;
      ++(deeper.*ring);
      if (total_time(deeper, tiles) > total_time(pipeline, tiles)) FAIL("case " << i);
    }
  }
}

TEST_CASE("More slots than tiles are as good as one for each tile") {
  for_each_small(2, [](Pipeline p) {
    p.slots = 3;
    Pipeline deeper = p;
    deeper.slots = 100;
    if (total_time(p, 3) != total_time(deeper, 3)) FAIL("load " << p.load << " compute " << p.compute);
  });
}

TEST_CASE("One tile passes from role to role, whatever the rings are") {
  for_each_small(6, [](Pipeline p) {
    if (total_time(p, 1) != p.load + p.compute + p.store) FAIL("slots " << p.slots);
  });
}

TEST_CASE("The schedule of four tiles is the one drawn on the page") {
  const std::vector<TileTimes> turns = schedule({.load = 2, .compute = 3, .store = 0}, 3);
  REQUIRE(turns.size() == 3);
  CHECK(turns[0].compute == Span{2, 5});
  CHECK(turns[1].load == Span{5, 7});
  CHECK(turns[2].compute == Span{12, 15});

  const std::vector<TileTimes> overlap = schedule({.load = 2, .compute = 3, .slots = 2}, 4);
  CHECK(overlap[1].load == Span{2, 4});
  CHECK(overlap[2].load == Span{5, 7});  // its slot is that of tile 0
  CHECK(overlap[3].compute == Span{11, 14});
}

TEST_CASE("A late release keeps the loader a tile closer to compute") {
  Pipeline ring{.load = 10, .compute = 3, .slots = 2, .load_interval = 1};
  CHECK(*time_per_tile(ring) == 6.5);  // two copies in flight
  ring.release = Release::after_next_wait;
  CHECK(*time_per_tile(ring) == 10);  // one
  ring.slots = 3;
  CHECK(*time_per_tile(ring) == 5);
}

TEST_CASE("Nothing takes no time") {
  CHECK(schedule({.load = 1, .compute = 1}, 0).empty());
  CHECK(total_time({.load = 1, .compute = 1}, 0) == 0);
  CHECK(*closed_form({.load = 1, .compute = 1}, 0) == 0);
  CHECK(total_time({}, 100) == 0);
}

TEST_CASE("What has no sense is refused by name") {
  const auto refuses = [](const Pipeline& pipeline, int tiles, const char* name) {
    CHECK_THROWS_MATCHES(total_time(pipeline, tiles), std::invalid_argument,
                         MessageMatches(StartsWith(name)));
    CHECK_THROWS_MATCHES(closed_form(pipeline, tiles), std::invalid_argument,
                         MessageMatches(StartsWith(name)));
  };
  refuses({.load = -1}, 1, "load:");
  refuses({.compute = std::numeric_limits<double>::quiet_NaN()}, 1, "compute:");
  refuses({.store = std::numeric_limits<double>::infinity()}, 1, "store:");
  refuses({.load_interval = -0.5}, 1, "load_interval:");
  refuses({.slots = 0}, 1, "slots:");
  refuses({.staging_slots = 0}, 1, "staging_slots:");
  refuses({.slots = 1, .release = Release::after_next_wait}, 1, "release:");
  refuses({}, -1, "tiles:");
}
