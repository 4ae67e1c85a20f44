/// @file
/// The choice of tile and cluster: what the model must get right whatever its constants are.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "06_clusters_dsmem/any_shape/plan.hpp"

using lesson06::any_shape::Estimate;
using lesson06::any_shape::estimates;
using lesson06::any_shape::Plan;
using lesson06::any_shape::plans_by_waves;
using lesson06::any_shape::varied;

namespace {

/// An H200: 132 multiprocessors; of clusters of 4 only 30 fit and of 8 only 15, since its GPCs are no
/// multiples of these.
constexpr lesson06::any_shape::Gpu kH200 = {{0, 132, 66, 42, 30, 24, 18, 15, 15}, 4.917e6};

std::vector<Estimate> all_estimates(const ladder::Shape& shape) {
  return estimates(shape, plans_by_waves(shape, kH200, {}), kH200);
}

Estimate estimate_of(const ladder::Shape& shape, const Plan& plan) {
  return estimates(shape, {plan}, kH200).front();
}

Plan choice(const ladder::Shape& shape) { return all_estimates(shape).front().plan; }

}  // namespace

TEST_CASE("06: large problems get a large tile and need no split of K") {
  for (const int size : {4096, 8192, 16384}) {
    const Plan plan = choice({size, size, size});
    INFO(plan.name());
    CHECK(plan.tile_m * plan.tile_n >= 128 * 256);
    CHECK(plan.cluster_k == 1);
  }
}

TEST_CASE("06: K is split where there are fewer tiles than multiprocessors and many K steps") {
  for (const ladder::Shape& shape :
       {ladder::Shape{64, 4096, 14336}, {256, 1024, 8192}, {256, 256, 65536}, {17, 3008, 8760}}) {
    const Plan plan = choice(shape);
    INFO(shape.name() << ": " << plan.name());
    CHECK((plan.cluster_k > 1 || plan.stream_k));
  }
}

TEST_CASE("06: a small problem gets a small tile, one for each multiprocessor") {
  const Estimate best = all_estimates({1024, 1024, 1024}).front();
  INFO(best.plan.name());
  CHECK(best.plan.tile_m * best.plan.tile_n == 64 * 128);
  CHECK(best.clusters * best.plan.blocks() == 128);
  CHECK(best.waves == 1);
}

TEST_CASE("06: clusters that find no room make another wave") {
  // 32 clusters of 4 blocks: 128 blocks would fit into 132 multiprocessors, 32 clusters do not.
  CHECK(estimate_of({64 * 30, 256, 8192}, {64, 128, 1, 4, 1}).waves == 1);
  CHECK(estimate_of({64 * 32, 256, 8192}, {64, 128, 1, 4, 1}).waves == 2);
}

TEST_CASE("06: a last wave that is not full is no reason to split K of a large problem in a cluster") {
  // 6.3 and 9.2 waves of 128x256.
  for (const int rows : {1600, 2400}) CHECK(choice({rows, 16384, 16384}).cluster_k == 1);
}

TEST_CASE(
    "06: where the last of many waves of the largest tile is not full, waves of others are, or tiles are "
    "split") {
  for (const ladder::Shape& shape :
       {ladder::Shape{5000, 5000, 5000}, {2506, 2632, 4040}, {1746, 3704, 18104}, {12094, 448, 10720}}) {
    const Estimate best = all_estimates(shape).front();
    INFO(shape.name() << ": " << best.plan.name());
    CHECK(best.useful > estimate_of(shape, {128, 256, 1, 1, 1}).useful + 0.05);
  }
}

TEST_CASE("06: tiles are split only where that promises more than the model overrates it") {
  // 3.9 waves of 128x256. There is hardly anything to split; stream-K was 22 % slower than whole tiles of 05.
  const Estimate full = all_estimates({4096, 4096, 14336}).front();
  INFO(full.plan.name());
  CHECK(!full.plan.stream_k);
  CHECK(full.plan.tile_m * full.plan.tile_n == 128 * 256);
}

TEST_CASE("06: blocks share A or B in large problems where rows straddle lines") {
  for (const int size : {5000, 8200, 12008}) CHECK(choice({size, size, size}).blocks() > 1);
}

TEST_CASE("06: where all waves are full, or K is short, sharing steps is no other plan than whole tiles") {
  // 132 tiles of 128x256, and two K steps.
  for (const ladder::Shape& shape : {ladder::Shape{128 * 12, 256 * 11, 4096}, {5000, 5000, 128}}) {
    CHECK(!choice(shape).stream_k);
    const Estimate whole = estimate_of(shape, {128, 256, 1, 1, 1}),
                   split = estimate_of(shape, {128, 256, 1, 1, 1, true});
    CHECK(split.partials == 1);
    CHECK(split.waves == whole.waves);
  }
}

TEST_CASE("06: stream-K makes waves a fraction, and a tile has a sum of each cluster that has steps of it") {
  const Plan plan{128, 256, 1, 1, 1, true};
  const auto of = [&](int tiles) { return estimate_of({128 * tiles, 256, 8192}, plan); };
  CHECK(of(198).waves == 1.5);
  CHECK(of(198).partials == 2);
  CHECK(of(66).waves == 0.5);
  CHECK(of(66).partials == 2);
  CHECK(of(50).waves == 0.5);  // for three parts there are too few clusters
  CHECK(of(50).partials == 2);
  CHECK(of(70).waves == 91. / 128);  // 62 clusters compute the rests, 37 steps, of two tiles each
  CHECK(of(70).partials == 2);
  CHECK(of(12).waves == 13. / 128);
  CHECK(of(12).partials == 10);
}

TEST_CASE("06: K is not split into more pieces than it has steps") {
  for (const Estimate& estimate : all_estimates({64, 128, 128})) CHECK(estimate.plan.cluster_k <= 2);
  for (const Estimate& estimate : all_estimates({64, 128, 8})) CHECK(estimate.plan.cluster_k == 1);
}

TEST_CASE("06: an uneven split is as slow as its longest part") {
  CHECK(estimate_of({64, 8192, 64 * 9}, {64, 128, 1, 1, 2}).k_steps == 5);
}

TEST_CASE("06: the explanation names the choice first and lists what it was chosen from") {
  const ladder::Shape shape{1024, 1024, 8192};
  const auto all = all_estimates(shape);
  const std::string text = explanation(shape, all);
  CHECK(text.rfind("1024x1024x8192: " + all.front().plan.name(), 0) == 0);
  for (size_t i = 0; i < 8; ++i) CHECK(text.find(all[i].plan.name()) != std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
}

TEST_CASE("06: multiprocessors are spared in whole clusters, and one cluster always remains") {
  using lesson06::any_shape::clusters_beside;
  CHECK(clusters_beside(0, 2, 66) == 66);
  CHECK(clusters_beside(8, 1, 132) == 124);
  CHECK(clusters_beside(8, 2, 66) == 62);
  CHECK(clusters_beside(3, 2, 66) == 64);
  CHECK(clusters_beside(32, 1, 4) == 1);
}

TEST_CASE(
    "06: clusters share the last wave in equal parts, and rests that take one cluster as long as a part") {
  using lesson06::any_shape::kMinSteps;
  using lesson06::any_shape::share_last_wave;
  using lesson06::any_shape::Sharing;
  const auto is = [](const Sharing& shared, int tiles, int parts, int rest, int rests) {
    return shared.tiles == tiles && shared.parts == parts && shared.rest == rest && shared.rests == rests;
  };
  CHECK(is(share_last_wave(/*tiles=*/264, /*clusters=*/132, /*k_steps=*/64), 0, 1, 0, 0));
  CHECK(is(share_last_wave(66, 132, 64), 66, 2, 0, 0));
  CHECK(is(share_last_wave(300, 132, 128), 36, 3, 0, 0));
  CHECK(is(share_last_wave(5, 132, 640), 5, 16, 0, 0));   // more parts would be more sums
  CHECK(is(share_last_wave(5, 132, 40), 5, 3, 0, 0));     // of kPartSteps at least
  CHECK(is(share_last_wave(5, 132, 9), 5, 2, 0, 0));      // or two of kMinSteps
  CHECK(is(share_last_wave(88, 132, 90), 88, 1, 24, 2));  // 66 steps, or 24 and 24
  CHECK(is(share_last_wave(95, 132, 90), 0, 1, 0, 0));    // 16 steps of three tiles: not worth it
  CHECK(is(share_last_wave(131, 132, 64), 0, 1, 0, 0));   // 131 rests for one cluster
  CHECK(is(share_last_wave(131, 132, 2 * kMinSteps - 1), 0, 1, 0, 0));
  CHECK(is(share_last_wave(1, 132, 33'000'000), 1, 16, 0, 0));
}

TEST_CASE(
    "06: however tiles are shared, no cluster has more to do than without, or fewer steps than are worth "
    "it") {
  using lesson06::any_shape::kMinSteps;
  using lesson06::any_shape::share_last_wave;
  for (const int clusters : {1, 4, 15, 66, 132})
    for (int tiles = 1; tiles < 3 * clusters; ++tiles)
      for (const int k_steps : {8, 9, 31, 100, 1000}) {
        const auto shared = share_last_wave(tiles, clusters, k_steps);
        if (shared.tiles == 0) continue;
        INFO(tiles << " tiles, " << clusters << " clusters, " << k_steps << " steps");
        REQUIRE(shared.tiles == tiles % clusters);
        REQUIRE(shared.contributors() > 1);
        REQUIRE(shared.clusters() <= clusters);
        REQUIRE(shared.part(k_steps) < k_steps);
        REQUIRE((k_steps - shared.rest) / shared.parts >= kMinSteps);
        REQUIRE((shared.rests == 0 || shared.rest >= kMinSteps));
        REQUIRE(shared.rests * shared.rest <= shared.part(k_steps));
      }
}

TEST_CASE("06: where no tile is shared, it is said why") {
  using lesson06::any_shape::share_last_wave;
  using lesson06::any_shape::why_none_is_shared;
  const auto none = [](int tiles, int clusters, int k_steps) {
    CHECK(share_last_wave(tiles, clusters, k_steps).tiles == 0);
    return why_none_is_shared(tiles, clusters, k_steps);
  };
  CHECK(none(8, 4, 64) == "8 tiles fill every wave of 4 clusters");
  CHECK(none(6, 4, 7) == "K has fewer than 8 steps of 64");
  CHECK(none(12, 1, 64) == "there is room for one cluster at a time");
  CHECK(none(131, 132, 64) == "the last wave, 131 of 132 clusters, is nearly full");
}

TEST_CASE(
    "06: a plan that could share tiles is left out where it shares none, if there is one for whole tiles") {
  for (const ladder::Shape& shape : {ladder::Shape{12096, 12672, 512}, {512, 512, 256}, {9673, 1312, 3120}})
    for (const Estimate& estimate : all_estimates(shape)) {
      INFO(shape.name() << ": " << estimate.plan.name());
      CHECK(estimate.plan.stream_k == (estimate.partials > 1));
    }
  // Who asks for it gets it.
  const auto alone = estimates({512, 512, 256}, {{192, 192, 2, 1, 1, true}}, kH200);
  REQUIRE(alone.size() == 1);
  CHECK(alone.front().partials == 1);
}

TEST_CASE("06: for each number of waves there is a plan with the narrowest tile that covers C in so many") {
  // 1082 rows are nine tiles of 128: 29 columns of tiles are two waves of 132, and 29 x 200 covers 5792.
  const ladder::Shape shape{1082, 5792, 2392};
  const auto plans = plans_by_waves(shape, kH200, {});
  const auto has = [&](const Plan& wanted) {
    return std::find(plans.begin(), plans.end(), wanted) != plans.end();
  };
  CHECK(has({128, 200, 1, 1, 1}));
  CHECK(estimate_of(shape, {128, 200, 1, 1, 1}).waves == 2);
  CHECK(estimate_of(shape, {128, 192, 1, 1, 1}).waves == 3);
  // Three blocks that split K: 44 tiles, 38 x 1 of 128 x 224.
  CHECK(std::any_of(plans.begin(), plans.end(), [](const Plan& plan) { return plan.cluster_k == 3; }));
  for (const Plan& plan : plans) REQUIRE(lesson06::any_shape::is_possible(plan));
}

TEST_CASE("06: knobs fix a plan's parts, also those that no wave asks for") {
  const auto plans = plans_by_waves({1000, 1000, 1000}, kH200, {.tile_m = 128, .tile_n = 88, .cluster_k = 1});
  REQUIRE(!plans.empty());
  for (const Plan& plan : plans) CHECK((plan.tile() == "128x88" && plan.cluster_k == 1));
  CHECK(plans_by_waves({1000, 1000, 1000}, kH200, {.tile_m = 192, .tile_n = 200}).empty());
  CHECK(plans_by_waves({1000, 1000, 1000}, kH200, {.cluster_m = 4, .cluster_n = 4}).empty());
}

TEST_CASE("06: with swapped operands a plan has rows in eights, as few as cover C in whole waves") {
  // 387 rows are three tiles of 136, and 4632 columns 37 of 128: 111 tiles. In tiles of 64 rows they are
  // more.
  const ladder::Shape shape{387, 4632, 1432};
  const auto plans = plans_by_waves(shape, kH200, {});
  const Plan wanted{136, 128, 1, 1, 1, false, true};
  CHECK(std::find(plans.begin(), plans.end(), wanted) != plans.end());
  CHECK(estimate_of(shape, wanted).waves == 1);
  CHECK(estimate_of(shape, wanted).clusters == 111);
  CHECK(wanted.name() == "136x128, swapped");
  for (const Plan& plan : plans) {
    INFO(plan.name());
    REQUIRE((plan.swapped ? plan.tile_n : plan.tile_m) % 64 == 0);
    REQUIRE((plan.swapped ? plan.tile_m : plan.tile_n) % (8 * plan.cluster_k) == 0);
    REQUIRE(plan.tile_m % (8 * plan.cluster_n) == 0);
  }
  for (const ladder::Shape& best_swapped : {shape, ladder::Shape{3222, 272, 2720}}) {
    const auto all = all_estimates(best_swapped);
    INFO(explanation(best_swapped, all));
    CHECK(std::any_of(all.begin(), all.begin() + 8, [](const auto& one) { return one.plan.swapped; }));
  }
}

TEST_CASE("06: a problem and its transposed one have the same plans, with and without swapped operands") {
  const ladder::Shape shape{387, 4632, 1432}, transposed{4632, 387, 1432};
  const auto plans = plans_by_waves(shape, kH200, {.swapped = true});
  const auto others = plans_by_waves(transposed, kH200, {.swapped = false});
  REQUIRE(!plans.empty());
  for (const Plan& plan : plans) {
    Plan other = plan.transposed();
    other.swapped = false;
    INFO(plan.name());
    REQUIRE(plan.swapped);
    // Blocks that share A load rows of it in eights each, and whole panels leave a ring fewer slots.
    if (plan.cluster_n == 1 && lesson06::any_shape::is_possible(other))
      REQUIRE(std::find(others.begin(), others.end(), other) != others.end());
  }
}

TEST_CASE("06: blocks beside each other gain where rows of C straddle cache lines") {
  const auto beside_over_below = [](int n) {
    const ladder::Shape shape{8192, n, 64};
    return estimate_of(shape, {128, 128, 1, 2, 1}).us / estimate_of(shape, {128, 128, 2, 1, 1}).us;
  };
  CHECK(beside_over_below(8200) < beside_over_below(8192));
}

TEST_CASE(
    "06: blocks need not share rows that L2 merges the requests for, and do share rows within sectors") {
  CHECK(choice({1024, 1024, 1024}).blocks() == 1);
  // Rows of A and B begin at odd multiples of 16 bytes.
  const Plan plan = choice({1160, 1224, 1016});
  INFO(plan.name());
  CHECK(plan.cluster_m * plan.cluster_n > 1);
  // More blocks that ask for the same whole lines are more requests that meet.
  const auto gain = [](int n) {
    return estimate_of({1024, n, 8192}, {128, 128, 1, 2, 1}).us /
           estimate_of({1024, n, 8192}, {128, 128, 1, 1, 1}).us;
  };
  CHECK(gain(128 * 16) > gain(128 * 2));
}

TEST_CASE("06: a tile that begins within a sector costs more than a wider one that does not") {
  // 800 columns are whole sectors. Tiles of 104 begin at odd multiples of 16 bytes, tiles of 112 do not.
  const ladder::Shape shape{1779, 800, 2760};
  CHECK(estimate_of(shape, {128, 112, 2, 2, 1}).us < estimate_of(shape, {128, 104, 2, 2, 1}).us);
}

TEST_CASE("06: beside the narrowest tile there is the narrowest of whole sectors, where rows of C are") {
  const auto has = [](const ladder::Shape& shape, const Plan& wanted) {
    const auto plans = plans_by_waves(shape, kH200, {});
    return std::find(plans.begin(), plans.end(), wanted) != plans.end();
  };
  // Two tiles beside each other cover 272 columns, and ten cover 1040.
  for (const int width : {136, 144}) CHECK(has({3222, 272, 2720}, {64, width, 4, 1, 1}));
  for (const int width : {104, 112}) CHECK(has({1505, 1040, 2376}, {128, width, 4, 2, 1}));
  // Three blocks that split K complete a third of the columns each: 40, or 48.
  for (const int width : {120, 144}) CHECK(has({64, 112 * 44, 6400}, {64, width, 1, 1, 3}));
  // Every other row of C begins within a sector. No tile changes that.
  CHECK(has({3222, 264, 2720}, {64, 136, 4, 1, 1}));
  CHECK(!has({3222, 264, 2720}, {64, 144, 4, 1, 1}));
}

TEST_CASE("06: whole sectors are worth some columns outside C, once a launch, where rows of C are whole") {
  const auto loss = [](int n, int k) {
    const ladder::Shape shape{1505, n, k};
    return estimate_of(shape, {128, 104, 4, 2, 1}).us - estimate_of(shape, {128, 112, 4, 2, 1}).us;
  };
  CHECK(loss(1040, 2376) > 3);  // on an H200 it was 4.4
  CHECK(loss(1032, 2376) < 0);
  CHECK(loss(1040, 20 * 2376) < 0);  // products count more there
  // Each of two blocks that split K completes 104 columns of 208, and 112 of 224.
  const ladder::Shape shape{1505, 1040, 2376};
  CHECK(estimate_of(shape, {128, 208, 4, 1, 2}).us > estimate_of(shape, {128, 224, 4, 1, 2}).us);
}

TEST_CASE("06: panels that lie outside B are not loaded, so a last tile of few columns costs less") {
  // The last tile has 72 columns, or 248. Rows of both begin at odd multiples of 16 bytes.
  const auto of = [](int n) { return estimate_of({64 * 60, n, 8192}, {64, 256, 1, 1, 1}).us; };
  CHECK(of(328) < 0.85 * of(504));
}

TEST_CASE("06: the first plans to try are of several tiles, and none is lost") {
  for (const ladder::Shape& shape :
       {ladder::Shape{12094, 448, 10720}, {1024, 1024, 1024}, {27, 3400, 4600}}) {
    const auto all = all_estimates(shape), tried = varied(all);
    REQUIRE(tried.size() == all.size());
    CHECK(tried.front().plan == all.front().plan);
    const auto of_its_tile = [](const auto& list, size_t i) {
      return std::count_if(list.begin(), list.begin() + i + 1, [&](const Estimate& other) {
        return other.plan.tile() == list[i].plan.tile() && other.plan.swapped == list[i].plan.swapped;
      });
    };
    size_t first = 0;
    while (first < tried.size() && of_its_tile(tried, first) <= 2) ++first;
    CHECK(first >= 8);
    for (size_t i = first; i < tried.size(); ++i) REQUIRE(of_its_tile(tried, i) > 2);
    const auto by_cost = [](const Estimate& a, const Estimate& b) { return a.us < b.us; };
    CHECK(std::is_sorted(tried.begin(), tried.begin() + first, by_cost));
    CHECK(std::is_sorted(tried.begin() + first, tried.end(), by_cost));
    for (const Estimate& estimate : all)
      REQUIRE(std::any_of(tried.begin(), tried.end(),
                          [&](const Estimate& other) { return other.plan == estimate.plan; }));
  }
}
