/// @file
/// Lessons 05 and 06 add the same integers: 05 in one block, 06 from multicast tiles, in blocks that
/// split K, and in clusters that split tiles, also in the largest. The sums are the same, bit for bit.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "06_clusters_dsmem/any_shape/kernels.hpp"
#include "common/cuda/error.hpp"
#include "common/cuda/residency.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/host/verify/verifier.hpp"
#include "common/testing/gemm_checks.hpp"

namespace {

#ifdef LADDER_CPU_DEVICE
/// Room for two of the largest clusters: one cluster alone does not split tiles.
const int kBlocksAtOnce = ladder::blocks_at_once = 16;
#endif

/// C for the verifier's small integers, as it lies in memory.
std::vector<uint16_t> product(const ladder::Lesson& lesson, const ladder::Settings& settings,
                              const ladder::Shape& shape, ladder::Verifier& verifier) {
  const ladder::Contender contender = ladder::contender_of(lesson, lesson.name, settings);
  std::vector<uint16_t> c(size_t(shape.m) * shape.n);
  const auto verdict = verifier.check_exact([&](const ladder::Gemm& gemm) {
    multiply_and_wait(contender, gemm);
    CUDA_CHECK(cudaMemcpy(c.data(), gemm.c, c.size() * sizeof(uint16_t), cudaMemcpyDeviceToHost));
  });
  INFO(verdict.complaint);
  CHECK(verdict.passed());
  return c;
}

}  // namespace

TEST_CASE("06: sums of integers are those of 05, bit for bit") {
  ladder::testing::skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  // One tile of a large cluster or a few small ones, with enough steps to be split; and whole tiles.
  const auto shape = GENERATE(ladder::Shape{130, 136, 648}, ladder::Shape{512, 512, 256});
  ladder::Verifier verifier(shape, 1);
  const auto expected = product(lesson05::lesson(), {}, shape, verifier);
  for (const lesson06::any_shape::Plan& plan : lesson06::any_shape::kCpuKernels) {
    CAPTURE(shape.name(), plan.name());
    CHECK(product(lesson06::any_shape::lesson(),
                  {{"tile", plan.tile()},
                   {"cluster_m", std::to_string(plan.cluster_m)},
                   {"cluster_n", std::to_string(plan.cluster_n)},
                   {"cluster_k", std::to_string(plan.cluster_k)},
                   {"stream_k", plan.stream_k ? "on" : "off"}},
                  shape, verifier) == expected);
  }
}

TEST_CASE("06: clusters of blocks that share A and B and split K split a tile with other clusters, too") {
  ladder::testing::skip_unless_runnable(lesson06::any_shape::lesson(), "wgmma");
  const auto shape = GENERATE(ladder::Shape{130, 136, 648}, ladder::Shape{256, 768, 1088});
  ladder::testing::check_gemm_on_three_schedules(
      lesson06::any_shape::lesson(), shape,
      {{"tile", "128x128"}, {"cluster_m", "2"}, {"cluster_n", "2"}, {"cluster_k", "2"}, {"stream_k", "on"}},
      0);
}
