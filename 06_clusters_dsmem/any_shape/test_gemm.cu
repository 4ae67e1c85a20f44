/// @file
/// Lesson 06's kernel: every tile and cluster at the trip counts where parities go wrong, and at edges where
/// a block of a cluster has nothing to do.
#include <fmt/core.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "06_clusters_dsmem/any_shape/gemm.cuh"
#include "06_clusters_dsmem/any_shape/kernels.cuh"
#include "06_clusters_dsmem/any_shape/launch.cuh"
#include "06_clusters_dsmem/any_shape/on_demand.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/cuda/residency.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/testing/breadth.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Shape;
using ladder::testing::Breadth;
using ladder::testing::breadth;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_by_turns;
using ladder::testing::check_gemm_on_three_schedules;
using ladder::testing::check_ring;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;

namespace {

/// A kernel, and how many slots its ring has.
struct Choice {
  int rows, columns, cluster_m, cluster_n, cluster_k;
  bool stream_k, swapped;
  int slots;

  ladder::Settings settings() const {
    return {{"tile", fmt::format("{}x{}", rows, columns)}, {"cluster_m", std::to_string(cluster_m)},
            {"cluster_n", std::to_string(cluster_n)},      {"cluster_k", std::to_string(cluster_k)},
            {"stream_k", stream_k ? "on" : "off"},         {"swap", swapped ? "on" : "off"}};
  }
};

template <class S>
Choice choice_of(S) {
  constexpr auto plan = lesson06::any_shape::plan_of<S>();
  return {plan.tile_m,    plan.tile_n,   plan.cluster_m, plan.cluster_n,
          plan.cluster_k, plan.stream_k, plan.swapped,   S::kSlots};
}

/// Counts the K steps that blocks compute of each tile, and who computes steps of it.
template <class Walk>
__global__ void count_steps(const Walk walk, int* steps, int* contributors) {
  for (const auto& tile : walk) {
    atomicAdd(&steps[tile.index], tile.after_step - tile.first_step);
    atomicAdd(&contributors[tile.index], 1 << tile.part);
  }
}

Choice any_choice() {
  std::vector<Choice> all;
  lesson06::any_shape::visit_tested([&](auto shape) { all.push_back(choice_of(shape)); });
  return GENERATE_COPY(from_range(all));
}

/// One of each kind of cluster, and of each number of warpgroups.
Choice kind_of_choice() {
  using lesson06::any_shape::Shape;
  return GENERATE(
      choice_of(Shape<64, 128, 1, 1, 1>()), choice_of(Shape<128, 128, 2, 2, 1>()),
      choice_of(Shape<64, 128, 2, 1, 2>()), choice_of(Shape<64, 256, 1, 1, 4>()),
      choice_of(Shape<128, 192, 2, 1, 1>()), choice_of(Shape<192, 64, 1, 4, 1>()),
      choice_of(Shape<256, 120, 1, 2, 1>()), choice_of(Shape<64, 24, 1, 1, 3>()),
      choice_of(Shape<136, 128, 1, 1, 1, false, true>()), choice_of(Shape<24, 64, 1, 1, 3, false, true>()),
      choice_of(Shape<72, 192, 2, 1, 1, false, true>()), choice_of(Shape<240, 128, 2, 2, 1, false, true>()));
}

/// One of each kind of kernel that splits tiles: blocks alone, blocks that share B, and blocks that share A,
/// too, and split K; and with swapped operands.
Choice stream_k_choice() {
  using lesson06::any_shape::Shape;
  return GENERATE(choice_of(Shape<64, 128, 1, 1, 1, true>()), choice_of(Shape<128, 256, 2, 1, 1, true>()),
                  choice_of(Shape<128, 128, 2, 2, 2, true>()),
                  choice_of(Shape<48, 256, 1, 1, 2, true, true>()),
                  choice_of(Shape<80, 64, 4, 2, 1, true, true>()));
}

}  // namespace

/// One tile for each block of a cluster, of so many steps.
Shape one_tile(const Choice& choice, int steps) {
  return {choice.rows * choice.cluster_m, choice.columns * choice.cluster_n, 64 * steps * choice.cluster_k};
}

TEST_CASE("06: a ring that several blocks fill survives any number of steps, on every schedule") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  if (breadth() <= Breadth::narrow) SKIP("the next test tries these kernels");
  const Choice choice = kind_of_choice();
  check_ring(
      lesson06::any_shape::lesson(), choice.slots, [&](int steps) { return one_tile(choice, steps); },
      choice.settings());
}

TEST_CASE("06: the ring of every kernel survives any number of steps") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  const Choice choice = any_choice();
  // More laps take long with so many kernels, and go wrong alike in all of a kind, which the test above
  // tries.
  for (const int steps : {1, choice.slots, choice.slots + 1})
    check_gemm_by_turns(lesson06::any_shape::lesson(), one_tile(choice, steps), choice.settings());
}

TEST_CASE("06: the ring turns on from tile to tile, and partial sums sync_cluster for each") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  const Choice choice = kind_of_choice();
  const auto [tile_rows, tile_columns, steps] = GENERATE(std::tuple(1, 5, 5), std::tuple(3, 2, 4));
  const Shape shape{choice.rows * tile_rows, choice.columns * tile_columns, 64 * steps};
  if (tile_rows == 1)
    check_gemm_on_three_schedules(lesson06::any_shape::lesson(), shape, choice.settings(), 1);
  else
    check_gemm_by_turns(lesson06::any_shape::lesson(), shape, choice.settings());
}

TEST_CASE("06: a block of a cluster may have no rows, or no columns to store") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  const Choice choice = kind_of_choice();
  const auto shape = GENERATE(Shape{1, 8, 256},       // one row, and one chunk of columns
                              Shape{130, 264, 328},   // nothing fits
                              Shape{65, 136, 1000});  // uneven pieces of K
  check_gemm_by_turns(lesson06::any_shape::lesson(), shape, choice.settings());
}

TEST_CASE("06: clusters split the tiles that do not fill a wave, and complete each tile once") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  const Choice choice = stream_k_choice();
  const int rows = choice.rows * choice.cluster_m, columns = choice.columns * choice.cluster_n;
  const int blocks = choice.cluster_m * choice.cluster_n * choice.cluster_k;
  // One tile more than the clusters that find room.
  const int many = ladder::device_info().multiprocessors / blocks + 1;
  // Where there is room for four clusters, one computes the rests of three tiles, if these are long.
  const int steps_with_rests = blocks == 1 ? 120 : 9;
  const auto [tile_rows, tile_columns, steps] = GENERATE_COPY(
      std::tuple(1, 1, 2 * lesson06::any_shape::kMinSteps),  // two parts, none longer than it must be
      std::tuple(1, 1,
                 4 * lesson06::any_shape::kPartSteps),  // several parts meet in pairs, and pairs of pairs
      std::tuple(3, 1, steps_with_rests), std::tuple(1, many, 9));  // one tile is left after a full wave
  const Shape shape{rows * tile_rows, columns * tile_columns, 64 * steps};
  if (steps == 4 * lesson06::any_shape::kPartSteps && blocks == 1)
    check_gemm_on_three_schedules(lesson06::any_shape::lesson(), shape, choice.settings(), 0);
  else
    check_gemm_by_turns(lesson06::any_shape::lesson(), shape, choice.settings());
}

TEST_CASE("06: every kernel cuts its edges") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  check_gemm(lesson06::any_shape::lesson(), {130, 264, 328}, any_choice().settings());
}

TEST_CASE("06: with swapped operands tiles are cut at any row, and at the ends of columns and of K") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  const auto [tile, cluster_k] = GENERATE(std::tuple("136x128", "1"), std::tuple("24x64", "3"));
  const int rows = GENERATE(1, 7, 8, 9, 26, 65, 387);
  const auto [columns, k] = GENERATE(std::tuple(8, 136), std::tuple(72, 200), std::tuple(264, 136));
  const ladder::Settings kernel{{"tile", tile}, {"cluster_k", cluster_k}, {"swap", "on"}};
  check_gemm(lesson06::any_shape::lesson(), {rows, columns, *cluster_k == '1' ? k - 128 : k}, kernel);
}

TEST_CASE("06: an epilogue finds its columns in every block that splits K") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  const auto epilogue = GENERATE("bias_relu", "bias_gelu");
  const auto [tile, cluster_m, cluster_k, stream_k] =
      GENERATE(std::tuple("128x256", "2", "1", "off"), std::tuple("64x128", "1", "1", "off"),
               std::tuple("64x128", "1", "2", "off"), std::tuple("64x128", "1", "1", "on"),
               std::tuple("136x128", "1", "1", "off"), std::tuple("48x256", "1", "2", "on"));
  check_gemm_by_turns(lesson06::any_shape::lesson(), {130, 264, 648},
                      {{"tile", tile},
                       {"cluster_m", cluster_m},
                       {"cluster_k", cluster_k},
                       {"stream_k", stream_k},
                       {"epilogue", epilogue}});
}

TEST_CASE("06: an epilogue needs a bias, and a kernel that was compiled with it") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  if (lesson06::any_shape::compiles_on_demand()) SKIP("every kernel is compiled with it");
  expect_refused(lesson06::any_shape::lesson(), {128, 128, 64},
                 {{"epilogue", "bias_relu"}, {"tile", "192x128"}}, {"--epilogue bias_relu"});
}

TEST_CASE("06: a launch does not go by what was chosen for other settings") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  const Shape shape{128, 256, 256};
  check_gemm(lesson06::any_shape::lesson(), shape, {{"tile", "64x256"}});
  expect_refused(lesson06::any_shape::lesson(), shape,
                 {{"tile", "64x256"}, {"cluster_m", "4"}, {"cluster_n", "4"}}, {"--cluster_n 4", "64x256"});
}

TEST_CASE("06: the clusters that remain beside spared multiprocessors cover C") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  const auto spare = GENERATE("4", "32");
  check_gemm(lesson06::any_shape::lesson(), {128 * 9 + 8, 256 * 3, 64}, {{"spare_sms", spare}});
  check_gemm(lesson06::any_shape::lesson(), {128, 128, 1024}, {{"spare_sms", spare}, {"stream_k", "on"}});
}

TEST_CASE("06: every order of tiles covers C") {
  skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  const auto group = GENERATE("1", "4", "8", "16");
  check_gemm(lesson06::any_shape::lesson(), {128 * 9 + 8, 256 * 3, 64}, {{"group", group}});
}

TEST_CASE("06: all steps of a tile are computed once, by as many clusters as the plan says") {
  namespace any_shape = lesson06::any_shape;
  skip_unless_runnable(any_shape::lesson(), "wgmma");
  using S = any_shape::Shape<64, 128, 1, 1, 1, true>;
  auto* const kernel = count_steps<S::Walk>;
  const int resident = ladder::resident_clusters(kernel, S::kThreads, sizeof(any_shape::SharedStorage<S>), 1);
  float4 sums;  // only that there is a workspace counts
  for (int tiles = 1; tiles <= 3 * resident; tiles += ladder::on_cpu_device() ? 1 : 7)
    for (const int k_steps : {7, 8, 9, 37, 300}) {
      const S::Walk walk{any_shape::work_of(
          any_shape::plan_of<S>(),
          {nullptr, nullptr, nullptr, S::kTile.m * tiles, S::kTile.n, S::kTile.k * k_steps}, resident,
          {.group = 1, .pdl = false, .spare_sms = 0}, {&sums, nullptr})};
      const std::vector<int> zeros(tiles);
      ladder::DeviceBuffer steps(zeros), contributors(zeros);
      ladder::launch(kernel, {.name = "count_steps", .grid = dim3(walk.clusters), .block = dim3(1)}, walk,
                     steps.data(), contributors.data());
      CUDA_CHECK(cudaDeviceSynchronize());
      INFO(tiles << " tiles of " << k_steps << " steps");
      const any_shape::Sharing shared = any_shape::share_last_wave(tiles, resident, k_steps);
      std::vector<int> expected(tiles, 1);  // the first contributor alone
      std::fill_n(expected.begin(), shared.tiles, (1 << shared.contributors()) - 1);
      CHECK(ladder::download(steps.data(), tiles) == std::vector<int>(tiles, k_steps));
      CHECK(ladder::download(contributors.data(), tiles) == expected);
    }
}
