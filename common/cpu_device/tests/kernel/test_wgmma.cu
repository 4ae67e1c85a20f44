/// @file
/// wgmma: numbers against a plain triple loop, and every rule of its asynchronous life broken once.
#include <cuda_bf16.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/ptx/wgmma_registers.cuh"
#include "common/ptx/wgmma_widths.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace wgmma_test {
namespace {

constexpr int kM = 64, kK = 64, kTiles = 3;

/// What is left out, or done at the wrong time, in the tile in the middle.
enum class Mistake {
  none,
  no_proxy_fence,
  proxy_fence_before_store,
  no_wgmma_fence,
  written_after_fence,
  no_commit,
  no_wait,
  write_in_flight,
  multiply_in_flight,
  overwrite_in_flight,
  warps_disagree
};

/// A K-slice of both operands in the 128-byte swizzle. B has k contiguous, or panels of 64 columns.
template <int kN>
struct Storage {
  alignas(1024) __nv_bfloat16 a[kM * kK];
  alignas(1024) __nv_bfloat16 b[(kN + 63) / 64 * 64 * kK];
};

/// Where element (row, column) of a panel with rows of 64 elements lies.
int swizzled(int row, int column) { return row * 64 + (column ^ row % 8 * 8); }

template <int kN, bool kBRowMajor>
int b_index(int k, int n) {
  return kBRowMajor ? n / 64 * 64 * kK + swizzled(k, n % 64) : swizzled(n, k);
}

template <int kN, bool kBRowMajor, bool kAColumnMajor>
void multiply(float (&d)[kN / 2], uint64_t a, uint64_t b, bool accumulate) {
  if constexpr (kAColumnMajor) return ptx::wgmma_m64k16<kN, kBRowMajor, true>(d, a, b, accumulate);
  if constexpr (kN == 64) ptx::wgmma_m64n64k16<kBRowMajor>(d, a, b, accumulate);
  if constexpr (kN == 128) ptx::wgmma_m64n128k16<kBRowMajor>(d, a, b, accumulate);
  if constexpr (kN == 192) ptx::wgmma_m64n192k16<kBRowMajor>(d, a, b, accumulate);
  if constexpr (kN == 256) ptx::wgmma_m64n256k16<kBRowMajor>(d, a, b, accumulate);
  if constexpr (kN % 64 != 0) ptx::wgmma_m64k16<kN, kBRowMajor>(d, a, b, accumulate);
}

template <int kN>
struct Problem {
  std::vector<float> a, b, result, expected;  // [m, k * tiles], [k * tiles, n], [m, n]
  Problem() : a(kM * kK * kTiles), b(kK * kTiles * kN), result(kM * kN), expected(kM * kN) {
    std::mt19937 random(11);
    for (float& x : a) x = static_cast<float>(static_cast<int>(random() % 7) - 3);
    for (float& x : b) x = static_cast<float>(static_cast<int>(random() % 7) - 3);
    for (int m = 0; m < kM; ++m) {
      for (int k = 0; k < kK * kTiles; ++k) {
        for (int n = 0; n < kN; ++n)
          expected[at(m, n)] += a[static_cast<size_t>(m * kK * kTiles + k)] * b[at(k, n)];
      }
    }
  }
  static size_t at(int row, int n) { return static_cast<size_t>(row * kN + n); }
  int wrong() const {
    int count = 0;
    for (size_t i = 0; i < result.size(); ++i) count += !(result[i] == expected[i]);
    return count;
  }
};

/// One warpgroup multiplies [64, 192] by [192, kN], a K-slice of 64 at a time. @return wrong elements.
template <int kN, bool kBRowMajor, bool kAColumnMajor = false>
int gemm(const Schedule& schedule, Mistake mistake = Mistake::none) {
  static const Problem<kN> problem_template;
  Problem<kN> problem = problem_template;
  run({.block = 128, .shared_bytes = sizeof(Storage<kN>)}, schedule, [&] {
    auto& shared = ladder::shared_storage<Storage<kN>>();
    const int t = static_cast<int>(threadIdx.x);
    float d[kN / 2];
    for (float& x : d) x = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      const bool makes = tile == 1 && mistake != Mistake::none;
      const auto makes_this = [&](Mistake which) { return makes && mistake == which; };
      if (makes_this(Mistake::proxy_fence_before_store)) ptx::fence_proxy_async();
      for (int i = t; i < kM * kK; i += 128) {
        shared.a[kAColumnMajor ? swizzled(i % kK, i / kK) : swizzled(i / kK, i % kK)] =
            problem.a[static_cast<size_t>(i / kK * kK * kTiles + tile * kK + i % kK)];
      }
      for (int i = t; i < kN * kK; i += 128) {
        shared.b[b_index<kN, kBRowMajor>(i / kN, i % kN)] =
            problem.b[static_cast<size_t>(tile * kN * kK + i)];
      }
      const bool fences =
          !makes_this(Mistake::no_proxy_fence) && !makes_this(Mistake::proxy_fence_before_store);
      if (fences) ptx::fence_proxy_async();
      __syncthreads();

      const uint64_t a = ptx::matrix_descriptor(shared.a, 16, 1024);
      const uint64_t b = ptx::matrix_descriptor(shared.b, kBRowMajor ? 128 * kK : 16, 1024);
      if (makes_this(Mistake::no_wgmma_fence)) d[3] += 1;
      if (!makes_this(Mistake::no_wgmma_fence)) ptx::wgmma_fence();
      if (makes_this(Mistake::written_after_fence) && t == 77) d[3] += 1;
      for (int k = 0; k < kK; k += 16) {
        const int a_step = kAColumnMajor ? 2048 : 32, b_step = kBRowMajor ? 2048 : 32;
        const bool odd = makes_this(Mistake::warps_disagree) && t / 32 == 2;
        multiply<kN, kBRowMajor, kAColumnMajor>(
            d, a + static_cast<uint64_t>(k / 16 * a_step / 16 + (odd ? 64 : 0)),
            b + static_cast<uint64_t>(k / 16 * b_step / 16), tile > 0 || k > 0);
      }
      if (!makes_this(Mistake::no_commit)) ptx::wgmma_commit_group();
      if (makes_this(Mistake::write_in_flight)) d[3] = 0;
      if (makes_this(Mistake::multiply_in_flight)) d[3] *= 0.5f;
      if (makes_this(Mistake::overwrite_in_flight)) {
        __syncthreads();
        shared.b[t] = 99.f;
        ptx::fence_proxy_async();
        __syncthreads();
      }
      if (!makes_this(Mistake::no_wait)) ptx::wgmma_wait_group<0>();
      __syncthreads();
    }
    ptx::keep_in_registers(d);
    for (int j = 0; j < kN / 8; ++j) {
      for (int q = 0; q < 4; ++q) {
        const int row = t / 32 * 16 + t % 32 / 4 + q / 2 * 8, column = 8 * j + t % 4 * 2 + q % 2;
        problem.result[Problem<kN>::at(row, column)] = d[4 * j + q];
      }
    }
  });
  return problem.wrong();
}

std::string blame(const Schedule& schedule, Mistake mistake) {
  try {
    return gemm<64, true>(schedule, mistake) ? "wrong result" : "";
  } catch (const Failure& failure) {
    return failure.what();
  }
}

}  // namespace

TEST_CASE("wgmma is exact for small integers, for many N and both layouts of B, on every fixed schedule") {
  const CheckRaces checked;
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK(gemm<64, false>(schedule) == 0);
    CHECK(gemm<64, true>(schedule) == 0);
    CHECK(gemm<128, false>(schedule) == 0);
    CHECK(gemm<128, true>(schedule) == 0);
    CHECK(gemm<192, false>(schedule) == 0);
    CHECK(gemm<192, true>(schedule) == 0);
    CHECK(gemm<8, true>(schedule) == 0);
    CHECK(gemm<72, false>(schedule) == 0);
    CHECK(gemm<200, true>(schedule) == 0);
    CHECK(gemm<256, false>(schedule) == 0);
    CHECK(gemm<256, true>(schedule) == 0);
  }
  CHECK(last_launch().mma_flops == 2ull * kM * 256 * kK * kTiles);
}

TEST_CASE("wgmma reads an A that has m contiguous, beside both layouts of B, on every fixed schedule") {
  const CheckRaces checked;
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK(gemm<8, false, true>(schedule) == 0);
    CHECK(gemm<136, false, true>(schedule) == 0);
    CHECK(gemm<256, false, true>(schedule) == 0);
    CHECK(gemm<200, true, true>(schedule) == 0);
  }
}

TEST_CASE("wgmma is right on random schedules") {
  const CheckRaces checked;
  for (const Schedule& schedule : random_schedules()) REQUIRE(gemm<64, true>(schedule) == 0);
}

TEST_CASE("of what wgmma reads unwritten, what belongs to the first row is named, which reaches a sum") {
  (void)take_unwritten_read();
  (void)take_work_of_kernels();
  const auto read = [](int rows, int columns) {
    run({.block = 128, .shared_bytes = sizeof(Storage<64>)}, {}, [&] {
      auto& shared = ladder::shared_storage<Storage<64>>();
      for (int i = static_cast<int>(threadIdx.x); i < kM * kK; i += 128) {
        if (i / kK < rows && i % kK < columns) shared.a[swizzled(i / kK, i % kK)] = __float2bfloat16(1);
        shared.b[i] = __float2bfloat16(1);
      }
      ptx::fence_proxy_async();
      __syncthreads();
      float d[32];
      ptx::wgmma_fence();
      for (int k = 0; k < kK; k += 16)
        ptx::wgmma_m64n64k16<false>(
            d, ptx::matrix_descriptor(shared.a, 16, 1024) + static_cast<uint64_t>(k / 8),
            ptx::matrix_descriptor(shared.b, 16, 1024) + static_cast<uint64_t>(k / 8), k > 0);
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<0>();
      ptx::keep_in_registers(d);
    });
    return take_unwritten_read();
  };
  CHECK(read(kM, kK) == "");
  CHECK_THAT(read(40, kK), ContainsSubstring("shared.a[2560]"));  // row 40
  CHECK_THAT(read(40, 24), ContainsSubstring("shared.a[24]"));    // of row 0, though row 40 is read before
  const WorkOfKernels work = take_work_of_kernels();
  CHECK_THAT(work.multiplied_by(), ContainsSubstring("wgmma at test_wgmma.cu:"));
  CHECK(work.offsets_of_descriptors(/*has_k_contiguous=*/true) == std::array{~0u, 1024u});  // one is ignored
  CHECK(work.offsets_of_descriptors(/*has_k_contiguous=*/false) == std::array{~0u, ~0u});
  CHECK(take_work_of_kernels().multiplied_by() == "");
}

TEST_CASE("stores without a fence.proxy.async are not seen") {
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK(blame(schedule, Mistake::no_proxy_fence) == "wrong result");
    CHECK(blame(schedule, Mistake::proxy_fence_before_store) == "wrong result");
  }
}

TEST_CASE("registers that are written without a wgmma.fence are named") {
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK_THAT(blame(schedule, Mistake::no_wgmma_fence),
               ContainsSubstring("accumulator registers were written, or first used, without a wgmma.fence"));
  }
}

TEST_CASE("registers that are written after the wgmma.fence are named, with what they held at the fence") {
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = blame(schedule, Mistake::written_after_fence);
    REQUIRE_THAT(text,
                 ContainsSubstring("accumulator register 3 was written after the wgmma.fence at test_"));
    REQUIRE_THAT(text, ContainsSubstring("in block (0,0,0) warp 2 lane 13 at test_wgmma.cu:"));
  }
}

namespace {

constexpr Shape kTwoOperands{.block = 128, .shared_bytes = 16384};

/// The products of tiles that hold zeros: accumulators keep what they held.
struct ZeroTiles {
  uint64_t descriptor;
  ZeroTiles() {
    auto& shared = ladder::shared_storage<char[16384]>();
    for (unsigned i = threadIdx.x; i < sizeof shared; i += 128) shared[i] = 0;
    ptx::fence_proxy_async();
    __syncthreads();
    descriptor = ptx::matrix_descriptor(&shared, 16, 1024);
  }
  void start(float (&d)[32], bool accumulate = true) const {
    ptx::wgmma_m64n64k16<false>(d, descriptor, descriptor, accumulate);
    ptx::wgmma_commit_group();
  }
};

void fill(float (&d)[32], float value) {
  for (float& x : d) x = value;
}

/// What local variables hold until they are written.
template <size_t count>
void make_fresh(float (&d)[count]) {
  for (float& x : d) std::memcpy(&x, &cpu_device::kUnwrittenLocal, sizeof x);
}

template <class Body>
std::string blame_with_tiles(const Schedule& schedule, Body body) {
  return failure(kTwoOperands, schedule, [&] { body(ZeroTiles()); });
}

void clear_after_fence(const ZeroTiles& tiles) {
  float d[32];
  make_fresh(d);
  ptx::wgmma_fence();
  fill(d, 0);
  tiles.start(d);
  ptx::wgmma_wait_group<0>();
}

void never_clear(const ZeroTiles& tiles) {
  float d[32];
  make_fresh(d);
  ptx::wgmma_fence();
  tiles.start(d);
  ptx::wgmma_wait_group<0>();
}

void leave_two(const ZeroTiles& tiles) {
  float d[32];
  make_fresh(d);
  for (int i = 0; i < 32; ++i) {
    if (i != 7 && i != 9) d[i] = 0;
  }
  ptx::wgmma_fence();
  tiles.start(d);
  ptx::wgmma_wait_group<0>();
}

void clear_all_but_one(const ZeroTiles& tiles) {
  float d[32];
  make_fresh(d);
  for (int i = 0; i < 32; ++i) {
    if (i != 7) d[i] = 0;
  }
  ptx::wgmma_fence();
  tiles.start(d);
  ptx::wgmma_wait_group<0>();
}

/// @param writes_factor_first whether the factor is written before the sums are multiplied by it
void rescale(const ZeroTiles& tiles, bool writes_factor_first) {
  float d[32], factor[1];
  fill(d, 0);
  make_fresh(factor);
  if (writes_factor_first) factor[0] = 2;
  for (float& x : d) x *= factor[0];
  factor[0] = 2;
  ptx::wgmma_fence();
  tiles.start(d);
  ptx::wgmma_wait_group<0>();
  ptx::keep_in_registers(d);
}

}  // namespace

namespace {

constexpr int kColumns = 128;

/// B [16, 128], with k contiguous or in panels of 64 columns.
struct OperandB {
  alignas(1024) __nv_bfloat16 b[kColumns * kK];
};

/// Where in a step A is written, after what the tensor cores are told of it.
enum class WriteOfA { in_time, after_fence, without_fence, in_flight, after_wait };

/// d = a · b, twice, with a of 64 x 16 in registers. @return elements that are wrong
template <bool kBRowMajor>
int multiply_registers(const Schedule& schedule, WriteOfA when) {
  const auto element_a = [](int row, int k) { return static_cast<float>((row * 5 + k * 3) % 7 - 3); };
  const auto element_b = [](int k, int n) { return static_cast<float>((k * 2 + n) % 5 - 2); };
  std::vector<int> wrong(128);
  run({.block = 128, .shared_bytes = sizeof(OperandB)}, schedule, [&] {
    auto& shared = ladder::shared_storage<OperandB>();
    const int t = static_cast<int>(threadIdx.x);
    for (int i = t; i < kColumns * kK; i += 128) shared.b[i] = 0.f;
    __syncthreads();
    for (int i = t; i < 16 * kColumns; i += 128)
      shared.b[b_index<kColumns, kBRowMajor>(i / kColumns, i % kColumns)] =
          element_b(i / kColumns, i % kColumns);
    ptx::fence_proxy_async();
    __syncthreads();
    const uint64_t b = ptx::matrix_descriptor(shared.b, kBRowMajor ? 128 * kK : 16, 1024);
    float d[kColumns / 2];
    uint32_t a[4];
    if (when == WriteOfA::after_fence) {
      for (uint32_t& pair : a) pair = 0;
      ptx::wgmma_fence();
    }
    for (int q = 0; q < 4; ++q) {
      const int row = t / 32 * 16 + t % 32 / 4 + q % 2 * 8, k = t % 4 * 2 + q / 2 * 8;
      const __nv_bfloat16 pair[2] = {element_a(row, k), element_a(row, k + 1)};
      std::memcpy(&a[q], pair, sizeof pair);
    }
    if (when != WriteOfA::after_fence && when != WriteOfA::without_fence) ptx::wgmma_fence();
    ptx::wgmma_m64n128k16<kBRowMajor>(d, a, b, false);
    ptx::wgmma_m64n128k16<kBRowMajor>(d, a, b, true);
    ptx::wgmma_commit_group();
    if (when == WriteOfA::in_flight && t == 45) a[2] ^= 1;
    ptx::wgmma_wait_group<0>();
    ptx::keep_in_registers(d);
    if (when == WriteOfA::after_wait) a[2] = 0;
    for (int i = 0; i < kColumns / 2; ++i) {
      const int row = t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + t % 4 * 2 + i % 2;
      float expected = 0;
      for (int k = 0; k < 16; ++k) expected += 2 * element_a(row, k) * element_b(k, column);
      wrong[static_cast<size_t>(t)] += !(d[i] == expected);
    }
  });
  int count = 0;
  for (const int of_thread : wrong) count += of_thread;
  return count;
}

std::string blame_for_a(const Schedule& schedule, WriteOfA when) {
  try {
    return multiply_registers<true>(schedule, when) ? "wrong result" : "";
  } catch (const Failure& failure) {
    return failure.what();
  }
}

}  // namespace

TEST_CASE("wgmma with A from registers is exact for both layouts of B") {
  for (const Schedule& schedule : all_schedules()) {
    CHECK(multiply_registers<false>(schedule, WriteOfA::in_time) == 0);
    CHECK(multiply_registers<true>(schedule, WriteOfA::in_time) == 0);
    CHECK(multiply_registers<true>(schedule, WriteOfA::after_wait) == 0);
  }
}

TEST_CASE("registers of A that are written while a product may read them are named") {
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = blame_for_a(schedule, WriteOfA::in_flight);
    REQUIRE_THAT(text, ContainsSubstring("register 2 of operand A was written while the product at "
                                         "test_wgmma.cu:"));
    REQUIRE_THAT(text, ContainsSubstring("warp 1 lane 13"));
  }
}

TEST_CASE("registers of A that are written behind the wgmma.fence, or without one, are named") {
  for (const Schedule& schedule : all_schedules()) {
    REQUIRE_THAT(
        blame_for_a(schedule, WriteOfA::after_fence),
        ContainsSubstring("register 0 of operand A was written after the wgmma.fence at test_wgmma.cu:"));
    REQUIRE_THAT(blame_for_a(schedule, WriteOfA::without_fence), ContainsSubstring("without a wgmma.fence"));
  }
}

TEST_CASE("accumulators that are first written after the wgmma.fence are named") {
  for (const Schedule& schedule : fixed_schedules())
    CHECK_THAT(
        blame_with_tiles(schedule, clear_after_fence),
        ContainsSubstring("accumulator register 0 was written after the wgmma.fence at test_wgmma.cu:"));
}

TEST_CASE("accumulators that were never written are named where a product is added to them") {
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK_THAT(blame_with_tiles(schedule, never_clear),
               ContainsSubstring(
                   "the product is added to accumulators that were never written (register 0 and 31 more)"));
    CHECK_THAT(
        blame_with_tiles(schedule, clear_all_but_one),
        ContainsSubstring("the product is added to accumulators that were never written (register 7)"));
    // What a call before has left in the registers looks as if it were written.
    CHECK_THAT(blame_with_tiles(schedule, leave_two),
               ContainsSubstring("that were never written (register 7 and at least 1 more of 32)"));
  }
}

TEST_CASE("accumulators that were multiplied by what nobody has written are told from those never written") {
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text =
        blame_with_tiles(schedule, [](const ZeroTiles& tiles) { rescale(tiles, false); });
    CHECK_THAT(text, ContainsSubstring("the product is added to accumulators that were computed from a "
                                       "variable that nobody has written (register 0 and 31 more hold NaN)"));
    CHECK_THAT(text, !ContainsSubstring("never written"));
    CHECK(blame_with_tiles(schedule, [](const ZeroTiles& tiles) { rescale(tiles, true); }) == "");
  }
}

TEST_CASE("accumulators may be used between a wait and the next fence, several at a time") {
  // NaN with a payload is a value like others.
  static constexpr float kSpecial[] = {1, -0.f, INFINITY, NAN};
  for (const Schedule& schedule : all_schedules()) {
    static float last[2][32];
    REQUIRE(blame_with_tiles(schedule, [](const ZeroTiles& tiles) {
              float d[2][32];
              fill(d[0], 1);
              fill(d[1], 100);
              for (int round = 0; round < 4; ++round) {
                ptx::wgmma_fence();
                tiles.start(d[0]);
                ptx::wgmma_fence();  // d[0] is in flight, and stays so
                tiles.start(d[1]);
                ptx::wgmma_wait_group<1>();
                tiles.start(d[0]);  // nobody has touched it since: no fence is needed
                ptx::wgmma_wait_group<1>();
                fill(d[1], static_cast<float>(round));
                ptx::wgmma_fence();  // d[0] is in flight again
                tiles.start(d[1]);
                ptx::wgmma_wait_group<1>();
                tiles.start(d[0]);  // delivered since that fence, and not touched
                ptx::wgmma_wait_group<0>();
                for (auto& sums : d) ptx::keep_in_registers(sums);
                for (float& x : d[0]) x += 1;
                fill(d[1], kSpecial[round]);
              }
              for (int round = 0; round < 2; ++round) {  // a variable of each round, overwritten first
                float e[32];
                ptx::wgmma_fence();
                tiles.start(e, /*accumulate=*/false);
                tiles.start(d[0]);
                ptx::wgmma_wait_group<0>();
                ptx::keep_in_registers(e);
                ptx::keep_in_registers(d[0]);
                d[0][0] += e[0];
              }
              if (threadIdx.x == 0) std::memcpy(last, d, sizeof last);
            }) == "");
    REQUIRE(last[0][3] == 5);
    REQUIRE(std::isnan(last[1][3]));
  }
}

TEST_CASE("a missing commit leaves the accumulators in flight") {
  for (const Schedule& schedule : fixed_schedules()) {
    // The next tile's group covers it, but its slice of shared memory is overwritten before that.
    if (schedule.landing == Landing::late) CHECK(blame(schedule, Mistake::no_commit) == "wrong result");
  }
  CHECK_THAT(failure({.block = 128, .shared_bytes = 32768}, {},
                     [] {
                       float d[32] = {};
                       const uint64_t tile =
                           ptx::matrix_descriptor(&ladder::shared_storage<char[32768]>(), 16, 1024);
                       ptx::wgmma_fence();
                       ptx::wgmma_m64n64k16<false>(d, tile, tile, false);
                       ptx::wgmma_wait_group<0>();
                     }),
             ContainsSubstring("exits with wgmma operations that were never committed") &&
                 ContainsSubstring(" at test_wgmma.cu:"));
}

TEST_CASE("a missing wait shows where wgmma lands late") {
  int shown = 0;
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.landing == Landing::late) shown += !blame(schedule, Mistake::no_wait).empty();
  }
  CHECK(shown == 3);
}

TEST_CASE("accumulators in flight are NaN, however early the product lands") {
  for (const Schedule& schedule : all_schedules()) {
    static float seen;
    seen = 0;
    run({.block = 128, .shared_bytes = 32768}, schedule, [&] {
      float d[32] = {};
      const uint64_t tile = ptx::matrix_descriptor(&ladder::shared_storage<char[32768]>(), 16, 1024);
      ptx::wgmma_fence();
      ptx::wgmma_m64n64k16<false>(d, tile, tile, false);
      ptx::wgmma_commit_group();
      if (threadIdx.x == 17) seen = d[9];
      ptx::wgmma_wait_group<0>();
      ptx::keep_in_registers(d);
    });
    REQUIRE(std::isnan(seen));
  }
}

TEST_CASE("writing an accumulator in flight is named") {
  for (const Schedule& schedule : all_schedules()) {
    REQUIRE_THAT(blame(schedule, Mistake::write_in_flight),
                 ContainsSubstring("accumulator register 3 was written while the product at test_wgmma.cu:"));
    // What a thread makes of the NaN that it finds there is a NaN, too.
    REQUIRE_THAT(blame(schedule, Mistake::multiply_in_flight),
                 ContainsSubstring("accumulator register 3 was written while the product at test_wgmma.cu:"));
  }
}

TEST_CASE("where sums are written in flight behind a wait that ended no product, this wait is named") {
  const Shape shape{.block = 128, .shared_bytes = 8192};
  enum class Idle { none, before_the_product, behind_it };
  for (const Schedule& schedule : fixed_schedules())
    for (const Idle idle : {Idle::none, Idle::before_the_product, Idle::behind_it}) {
      const std::string text = failure(shape, schedule, [=] {
        float first[32] = {}, second[32] = {};
        const uint64_t tile = ptx::matrix_descriptor(&ladder::shared_storage<char[8192]>(), 16, 1024);
        ptx::wgmma_fence();
        ptx::wgmma_m64n64k16<false>(first, tile, tile, false);
        ptx::wgmma_commit_group();
        if (idle == Idle::before_the_product) ptx::wgmma_wait_group<1>();
        ptx::wgmma_m64n64k16<false>(second, tile, tile, false);
        ptx::wgmma_commit_group();
        if (idle == Idle::behind_it) ptx::wgmma_wait_group<2>();
        second[0] = 1;
        ptx::wgmma_wait_group<0>();
        ptx::keep_in_registers(first);
      });
      CHECK_THAT(text, ContainsSubstring("the sums belong to the tensor cores until the wait at test_wgmma"));
      CHECK((idle == Idle::behind_it) ==
            ContainsSubstring("; before it the wgmma_wait_group<2> at test_wgmma.cu:").match(text));
    }
}

/// It stands at the end of this file, which a directive there calls another one.
[[gnu::always_inline]] inline void start_in_other_file(float (&d)[32], uint64_t tile);

TEST_CASE("a product of a helper in another file is named with the line that calls the helper") {
  constexpr size_t kBytes = 8192;
  unsigned line = 0;
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = failure({.block = 128, .shared_bytes = kBytes}, schedule, [&] {
      float d[32] = {};
      const uint64_t tile = ptx::matrix_descriptor(&ladder::shared_storage<char[kBytes]>(), 16, 1024);
      line = __LINE__ + 1;
      start_in_other_file(d, tile);
      d[0] = 1;
      ptx::wgmma_wait_group<0>();
    });
    CHECK_THAT(text,
               ContainsSubstring("register 0 was written while the product at other_file.cuh:4 (called at "
                                 "test_wgmma.cu:" +
                                 std::to_string(line) + ") was in flight") &&
                   ContainsSubstring("until the wait at test_wgmma.cu:" + std::to_string(line + 2) + "\n"));
  }
}

TEST_CASE("overwriting an operand in flight shows where wgmma lands late") {
  int shown = 0;
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.landing == Landing::late)
      shown += blame(schedule, Mistake::overwrite_in_flight) == "wrong result";
  }
  CHECK(shown == 3);
}

TEST_CASE("warps that pass different descriptors are named") {
  for (const Schedule& schedule : all_schedules()) {
    REQUIRE_THAT(blame(schedule, Mistake::warps_disagree),
                 ContainsSubstring("threads of one warpgroup pass different descriptors or flags"));
  }
}

TEST_CASE("threads of a warpgroup that are at different wgmma instructions are named") {
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure({.block = 128, .shared_bytes = 8192}, schedule, [] {
      float d[32] = {};
      const uint64_t tile = ptx::matrix_descriptor(&ladder::shared_storage<char[8192]>(), 16, 1024);
      ptx::wgmma_fence();
      if (threadIdx.x % 2) {
        ptx::wgmma_m64n64k16<false>(d, tile, tile, false);
      } else {
        ptx::wgmma_m64n64k16<false>(d, tile, tile, false);
      }
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<0>();
    });
    CHECK_THAT(text, ContainsSubstring("the threads of one warpgroup are at different instructions"));
  }
}

TEST_CASE("descriptors that point outside, or belong to an incomplete warpgroup are named") {
  const auto issue = [](uint64_t descriptor) {
    float d[32] = {};
    ptx::wgmma_fence();
    ptx::wgmma_m64n64k16<false>(d, descriptor, descriptor, false);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  };
  const auto start = [] { return ptx::matrix_descriptor(&ladder::shared_storage<char[8192]>(), 16, 1024); };
  CHECK_THAT(failure({.block = 128, .shared_bytes = 8191 + 1}, {}, [&] { issue(start() + 64); }),
             ContainsSubstring("wgmma: a descriptor reaches outside of the block's shared memory") &&
                 ContainsSubstring("with a leading offset of 16 and a stride offset of 1024 bytes"));
  CHECK_THAT(failure({.block = 96, .shared_bytes = 8192}, {}, [&] { issue(start()); }),
             ContainsSubstring("the warpgroup of this thread has fewer than 128 threads"));
}

TEST_CASE("a warp that never commits is what the others wait for") {
  const std::string text = failure({.block = 128, .shared_bytes = 8192}, {}, [] {
    float d[32] = {};
    const uint64_t tile = ptx::matrix_descriptor(&ladder::shared_storage<char[8192]>(), 16, 1024);
    ptx::wgmma_fence();
    ptx::wgmma_m64n64k16<false>(d, tile, tile, false);
    if (threadIdx.x / 32 == 1) __syncthreads();
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  });
  CHECK_THAT(text, ContainsSubstring("warp 0 waits at test_wgmma.cu:"));
  CHECK_THAT(text, ContainsSubstring("wgmma.wait_group: not all four warps have committed the group"));
  CHECK_THAT(text, ContainsSubstring("warp 1 waits at test_wgmma.cu:"));
}

TEST_CASE("sums that are waited for, and of which the compiler is not told, are named") {
  enum class Keep { after_each_wait, before_the_wait, in_the_first_tile, never };
  const auto two_tiles = [](Keep keep, bool accumulates) {
    return [=] {
      float d[32] = {};
      const uint64_t tile = ptx::matrix_descriptor(&ladder::shared_storage<char[32768]>(), 16, 1024);
      for (int i = 0; i < 2; ++i) {
        ptx::wgmma_fence();
        ptx::wgmma_m64n64k16<false>(d, tile, tile, accumulates);
        ptx::wgmma_commit_group();
        if (keep == Keep::before_the_wait) ptx::keep_in_registers(d);
        ptx::wgmma_wait_group<0>();
        if (keep == Keep::after_each_wait || (keep == Keep::in_the_first_tile && i == 0))
          ptx::keep_in_registers(d);
      }
    };
  };
  const Shape shape{.block = 128, .shared_bytes = 32768};
  for (const Schedule& schedule : fixed_schedules()) {
    for (const bool accumulates : {false, true}) {
      CHECK(failure(shape, schedule, two_tiles(Keep::after_each_wait, accumulates)) == "");
      for (const Keep keep : {Keep::before_the_wait, Keep::in_the_first_tile, Keep::never})
        CHECK_THAT(failure(shape, schedule, two_tiles(keep, accumulates)),
                   ContainsSubstring("and no keep_in_registers followed"));
    }
  }
}

TEST_CASE("sums that came with those of another product, which alone are kept, may lack a wait") {
  const Shape shape{.block = 128, .shared_bytes = 32768};
  for (const Schedule& schedule : fixed_schedules()) {
    enum class First { waits, waits_for_none, no_wait };
    for (const First wait : {First::waits, First::waits_for_none, First::no_wait}) {
      const std::string said = failure(shape, schedule, [=] {
        float first[32] = {}, second[32] = {};
        const uint64_t tile = ptx::matrix_descriptor(&ladder::shared_storage<char[32768]>(), 16, 1024);
        for (auto* d : {&first, &second}) {
          ptx::wgmma_fence();
          ptx::wgmma_m64n64k16<false>(*d, tile, tile, true);
          ptx::wgmma_commit_group();
        }
        if (wait == First::waits) ptx::wgmma_wait_group<1>();
        if (wait == First::waits_for_none) ptx::wgmma_wait_group<2>();
        if (wait != First::no_wait) ptx::keep_in_registers(first);
        ptx::wgmma_wait_group<0>();
        ptx::keep_in_registers(second);
      });
      const std::string of_one = "ended two products, and keep_in_registers followed for the sums of one";
      if (wait == First::waits)
        CHECK(said == "");
      else if (wait == First::waits_for_none)
        CHECK_THAT(said,
                   ContainsSubstring(of_one + "; before it the wgmma_wait_group<2> at test_wgmma.cu:") &&
                       ContainsSubstring(" ended none: does it leave too many groups in flight?"));
      else
        CHECK_THAT(said,
                   ContainsSubstring(of_one + ": a wait is missing before those of the other are read"));
    }
  }
}

TEST_CASE("an arrival before the wait, which lets others overtake slow warps, is told of in the deadlock") {
  struct Storage {
    char tile[8192];
    uint64_t empty;
  };
  for (const bool arrives_early : {true, false}) {
    const std::string text = failure({.block = 128, .shared_bytes = sizeof(Storage)}, {}, [=] {
      auto& shared = ladder::shared_storage<Storage>();
      if (threadIdx.x == 0) ptx::mbarrier_init(&shared.empty, 1);
      __syncthreads();
      float d[32] = {};
      const uint64_t tile = ptx::matrix_descriptor(shared.tile, 16, 1024);
      if (threadIdx.x / 32 == 3) __syncthreads();
      ptx::wgmma_fence();
      ptx::wgmma_m64n64k16<false>(d, tile, tile, false);
      ptx::wgmma_commit_group();
      if (threadIdx.x == 0 && arrives_early) ptx::mbarrier_arrive(&shared.empty);
      ptx::wgmma_wait_group<0>();
    });
    CHECK_THAT(text, ContainsSubstring("not all four warps have committed the group; missing: warp 3"));
    CHECK((text.find("warp 0 lane 0 arrived at empty (test_wgmma.cu:") != std::string::npos) ==
          arrives_early);
  }
}

}  // namespace wgmma_test

#line 1 "other_file.cuh"
namespace wgmma_test {
inline void start_in_other_file(float (&d)[32], uint64_t tile) {
  ptx::wgmma_fence();
  ptx::wgmma_m64n64k16<false>(d, tile, tile, false);
  ptx::wgmma_commit_group();
}
}  // namespace wgmma_test
