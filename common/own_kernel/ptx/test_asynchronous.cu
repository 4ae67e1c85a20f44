/// @file
/// Whole kernels of inline PTX: copies, TMA, mbarriers and tensor cores together, as public files write them.
#include <cuda.h>
#include <cuda_bf16.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/cpu_device/tests/tensor_map.cuh"
#include "common/device/shared_storage.cuh"
#include "common/own_kernel/ptx/test_asm.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;
using ladder::inline_ptx::in;
using ladder::inline_ptx::inout;
using ladder::inline_ptx::out;

namespace asynchronous_test {
namespace {

uint32_t address(const void* pointer) { return to_shared_window(pointer); }

void init(uint64_t* barrier, int count) {
  PTX("mbarrier.init.shared::cta.b64 [%0], %1;", in("r", "", address(barrier)), in("r", "", count));
}
void arrive(uint64_t* barrier) {
  PTX("mbarrier.arrive.shared::cta.b64 _, [%0];", in("r", "", address(barrier)));
}
void arrive_expect_tx(uint64_t* barrier, int bytes) {
  PTX("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", in("r", "", address(barrier)),
      in("r", "", bytes));
}
void wait(uint64_t* barrier, int parity) {
  PTX("{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n",
      in("r", "", address(barrier)), in("r", "", parity));
}
void load(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  PTX("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
      "[%4];",
      in("r", "", address(to)), in("l", "", map), in("r", "", x), in("r", "", y),
      in("r", "", address(barrier)));
}
uint64_t descriptor(const void* p) {
  return (address(p) & 0x3FFFF) >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}
void multiply(float (&d)[32], uint64_t a, uint64_t b) {
  PTX("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, 1, 1, 1, 0, 0;\n",
      SUMS_32(d), in("l", "", a), in("l", "", b));
}

constexpr int kTile = 64, kStages = 2, kTileBytes = kTile * kTile * 2;
struct Ring {
  alignas(1024) __nv_bfloat16 a[kStages][kTile * kTile];
  alignas(1024) __nv_bfloat16 b[kStages][kTile * kTile];
  uint64_t full[kStages], empty[kStages];
};
enum class Mistake { none, early_release, no_expect };

/// C = A * B^T: a producer warpgroup loads by TMA, a consumer warpgroup multiplies with wgmma.
void multiply_tiles(const CUtensorMap& map_a, const CUtensorMap& map_b, float* c, int n, int k,
                    Mistake mistake) {
  auto& smem = ladder::shared_storage<Ring>();
  const int tiles = k / kTile;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init(&smem.full[s], 1);
      init(&smem.empty[s], 128);
    }
    PTX("fence.proxy.async.shared::cta;");
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    if (threadIdx.x) return;
    for (int i = 0; i < tiles; ++i) {
      const int s = i % kStages;
      if (i >= kStages) wait(&smem.empty[s], (i / kStages - 1) & 1);
      if (mistake != Mistake::no_expect) arrive_expect_tx(&smem.full[s], 2 * kTileBytes);
      load(smem.a[s], &map_a, i * kTile, static_cast<int>(blockIdx.y) * kTile, &smem.full[s]);
      load(smem.b[s], &map_b, i * kTile, static_cast<int>(blockIdx.x) * kTile, &smem.full[s]);
    }
    return;
  }
  float d[32];
  for (float& sum : d) sum = 0;
  for (int i = 0; i < tiles; ++i) {
    const int s = i % kStages;
    wait(&smem.full[s], (i / kStages) & 1);
    PTX("wgmma.fence.sync.aligned;");
    for (int kk = 0; kk < kTile; kk += 16)
      multiply(d, descriptor(smem.a[s] + kk), descriptor(smem.b[s] + kk));
    PTX("wgmma.commit_group.sync.aligned;");
    if (mistake != Mistake::early_release) PTX("wgmma.wait_group.sync.aligned %0;", in("n", "", 0));
    arrive(&smem.empty[s]);
  }
  PTX("wgmma.wait_group.sync.aligned %0;", in("n", "", 0));
  const unsigned t = threadIdx.x - 128, warp = t / 32, lane = t % 32;
  float* const tile = c + blockIdx.y * kTile * static_cast<unsigned>(n) + blockIdx.x * kTile;
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned row = warp * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    tile[row * static_cast<unsigned>(n) + column] = d[i];
  }
}

}  // namespace

TEST_CASE("a ring of TMA loads feeds wgmma, all of it inline PTX, on every schedule") {
  const CheckRaces checked;
  constexpr int kM = kTile, kN = 2 * kTile, kK = 5 * kTile;
  alignas(16) static __nv_bfloat16 a[kM * kK], b[kN * kK];
  for (int i = 0; i < kM * kK; ++i) a[i] = __float2bfloat16(float((i * 5) % 7 - 3));
  for (int i = 0; i < kN * kK; ++i) b[i] = __float2bfloat16(float((i * 3) % 11 - 5));
  const CUtensorMap map_a = map_of(a, kM, kK, kTile), map_b = map_of(b, kN, kK, kTile);
  std::vector<float> c(kM * kN), expected(kM * kN, 0.0f);
  for (int m = 0; m < kM; ++m)
    for (int n = 0; n < kN; ++n)
      for (int k = 0; k < kK; ++k)
        expected[size_t(m * kN + n)] += __bfloat162float(a[m * kK + k]) * __bfloat162float(b[n * kK + k]);
  const Shape shape{.block = 256, .shared_bytes = sizeof(Ring), .grid = {kN / kTile, kM / kTile}};
  for (const Schedule& schedule : all_schedules()) {
    std::fill(c.begin(), c.end(), -1.0f);
    run(shape, schedule, [&] { multiply_tiles(map_a, map_b, c.data(), kN, kK, Mistake::none); });
    REQUIRE(c == expected);
  }
  const auto blame = [&](Mistake mistake) {
    return failure(shape, {}, [&] { multiply_tiles(map_a, map_b, c.data(), kN, kK, mistake); });
  };
  // Late copies show the reader of a slot that was given back before its products were waited for.
  CHECK_THAT(blame(Mistake::early_release),
             ContainsSubstring("race in shared memory of block 0") && ContainsSubstring("(wgmma)"));
  CHECK_THAT(blame(Mistake::no_expect),
             ContainsSubstring("deadlock: warps 4-7 wait at test_asynchronous.cu:") &&
                 ContainsSubstring("1 of 1 arrivals missing") &&
                 ContainsSubstring("in mbarrier.try_wait for"));
}

}  // namespace asynchronous_test
