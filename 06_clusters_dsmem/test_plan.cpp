/// @file
/// The choice of tile and cluster: what the model must get right whatever its constants are.
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "06_clusters_dsmem/plan.hpp"

using lesson06::Candidate;
using lesson06::Estimate;
using lesson06::estimates;
using lesson06::Plan;

namespace {

/// An H200: 132 multiprocessors; of clusters of 4 only 30 fit, since its GPCs are no multiples of 4.
const std::vector<Candidate> kH200 = {
    {{128, 256, 1, 1}, 132}, {{128, 256, 2, 1}, 66},  {{128, 256, 4, 1}, 30}, {{128, 256, 1, 2}, 66},
    {{128, 256, 1, 4}, 30},  {{256, 128, 1, 1}, 132}, {{256, 128, 2, 1}, 66}, {{128, 128, 1, 1}, 132},
    {{128, 128, 2, 1}, 66},  {{128, 128, 1, 2}, 66},  {{128, 128, 2, 2}, 30}, {{64, 128, 1, 1}, 132},
    {{64, 128, 2, 1}, 66},   {{64, 128, 1, 2}, 66},   {{64, 128, 2, 2}, 30}};

Estimate estimate_of(const ladder::Shape& shape, const Plan& plan) {
  for (const Estimate& estimate : estimates(shape, kH200))
    if (estimate.plan == plan) return estimate;
  FAIL("there is no such plan");
  return {};
}

}  // namespace

TEST_CASE("06: large problems get a large tile and need no split of K") {
  for (const int size : {4096, 8192, 16384}) {
    const Plan plan = estimates({size, size, size}, kH200).front().plan;
    INFO(plan.name());
    CHECK(plan.tile_m * plan.tile_n == 128 * 256);
    CHECK(plan.cluster_k == 1);
  }
}

TEST_CASE("06: K is split where there are fewer tiles than multiprocessors and many K steps") {
  for (const ladder::Shape& shape : {ladder::Shape{64, 8192, 8192}, {1024, 1024, 8192}, {64, 4096, 14336}})
    CHECK(estimates(shape, kH200).front().plan.cluster_k > 1);
}

TEST_CASE("06: a small problem gets a small tile, one for each multiprocessor") {
  const Estimate best = estimates({1024, 1024, 1024}, kH200).front();
  CHECK(best.plan == Plan{64, 128, 1, 1});
  CHECK(best.clusters == 128);
  CHECK(best.waves == 1);
}

TEST_CASE("06: clusters that find no room make another wave") {
  // 32 clusters of 4 blocks: 128 blocks would fit into 132 multiprocessors, 32 clusters do not.
  CHECK(estimate_of({64 * 32, 256, 8192}, {128, 256, 1, 4}).waves == 1);
  CHECK(estimate_of({128 * 32, 256, 8192}, {128, 256, 1, 4}).waves == 2);
}

TEST_CASE("06: a last wave that is not full is no reason to split K of a large problem") {
  // 6.3 and 9.2 waves of 128x256. In waves alone, two halves of K would look 5 % cheaper; they are slower.
  for (const int rows : {1600, 2400})
    CHECK(estimates({rows, 16384, 16384}, kH200).front().plan.cluster_k == 1);
}

TEST_CASE("06: K is not split into more parts than it has steps") {
  for (const Estimate& estimate : estimates({64, 128, 128}, kH200)) CHECK(estimate.plan.cluster_k <= 2);
  for (const Estimate& estimate : estimates({64, 128, 8}, kH200)) CHECK(estimate.plan.cluster_k == 1);
}

TEST_CASE("06: an uneven split is as slow as its longest part") {
  CHECK(estimate_of({64, 8192, 64 * 9}, {64, 128, 1, 2}).k_steps == 5);
}

TEST_CASE("06: the explanation names the choice first and lists what it was chosen from") {
  const ladder::Shape shape{1024, 1024, 8192};
  const auto all = estimates(shape, kH200);
  const std::string text = explanation(shape, all);
  CHECK(text.rfind("1024x1024x8192: " + all.front().plan.name(), 0) == 0);
  for (const Estimate& estimate : all) CHECK(text.find(estimate.plan.name()) != std::string::npos);
}

TEST_CASE("06: multiprocessors are spared in whole clusters, and one cluster always remains") {
  using lesson06::clusters_beside;
  CHECK(clusters_beside(0, 2, 66) == 66);
  CHECK(clusters_beside(8, 1, 132) == 124);
  CHECK(clusters_beside(8, 2, 66) == 62);
  CHECK(clusters_beside(3, 2, 66) == 64);
  CHECK(clusters_beside(32, 1, 4) == 1);
}
