/// @file
/// The device functions that learners type, each with a value that CUDA gives.
#include <cuComplex.h>
#include <cuda_bf16.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <climits>
#include <cmath>
#include <cuda/atomic>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace device_functions_test {
namespace {

__constant__ const float kScale = 2;

__device__ __forceinline__ float scaled(const float* __restrict__ values) { return kScale * values[0]; }
__device__ __noinline__ float unscaled(const float* __restrict__ values) { return values[0]; }

__nv_bfloat16 bf16(float value) { return __float2bfloat16_rn(value); }

// Compiled for a CPU with an FMA, and optimised: only then does a compiler contract.
#if defined(__x86_64__) && !defined(__clang__)
#define LADDER_WITH_FMA __attribute__((target("fma"), optimize("O2")))
bool has_fma() { return __builtin_cpu_supports("fma"); }
#elif defined(__x86_64__)
#define LADDER_WITH_FMA __attribute__((target("fma")))
bool has_fma() { return __builtin_cpu_supports("fma"); }
#else
#define LADDER_WITH_FMA
bool has_fma() { return true; }
#endif
LADDER_WITH_FMA float multiplied_and_added(float a, float b, float c) {
  return __fadd_rn(__fmul_rn(a, b), c);
}
LADDER_WITH_FMA double multiplied_and_added(double a, double b, double c) {
  return __dadd_rn(__dmul_rn(a, b), c);
}
LADDER_WITH_FMA float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }

}  // namespace

TEST_CASE("functions of bits and whole numbers") {
  CHECK(__popc(0xf0u) == 4);
  CHECK(__popcll(0xf000000000000001ull) == 5);
  CHECK(__clz(1) == 31);
  CHECK(__clz(0) == 32);
  CHECK(__clzll(1) == 63);
  CHECK(__clzll(0) == 64);
  CHECK(__ffs(8) == 4);
  CHECK(__ffs(0) == 0);
  CHECK(__ffsll(1ll << 40) == 41);
  CHECK(__brev(1u) == 0x80000000u);
  CHECK(__brev(0x12345678u) == 0x1e6a2c48u);
  CHECK(__brevll(1ull) == 1ull << 63);
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x7240u) == 0x77224400u);
  CHECK(__byte_perm(0x00000080u, 0u, 0x8888u) == 0xffffffffu);
  CHECK(__funnelshift_l(0x80000000u, 1u, 1) == 3u);
  CHECK(__funnelshift_r(0x80000000u, 1u, 31) == 3u);
  CHECK(__mulhi(-1, 2) == -1);
  CHECK(__umulhi(0xffffffffu, 2u) == 1u);
  CHECK(__mul24(-3, 5) == -15);
  CHECK(__mul24(0x01000002, 3) == 6);
  CHECK(__umul24(0x01000002u, 3u) == 6u);
  CHECK(min(3, -4) == -4);
  CHECK(max(3u, 7u) == 7u);
  CHECK(__float_as_int(1.0f) == 0x3f800000);
  CHECK(__longlong_as_double(__double_as_longlong(2.5)) == 2.5);
  CHECK(make_uchar4(1, 2, 3, 4).w == 4);
  CHECK(sizeof(float3) == 12);
  CHECK(alignof(double2) == 16);
}

TEST_CASE("functions of floating-point numbers") {
  CHECK(rsqrtf(4.0f) == 0.5f);
  CHECK(rsqrt(4.0) == 0.5);
  CHECK(__fdividef(6.0f, 4.0f) == 1.5f);
  CHECK(__frcp_rn(4.0f) == 0.25f);
  CHECK(__fmaf_rn(2, 3, 4) == 10);
  CHECK(fmaf(2.0f, 3.0f, 4.0f) == 10);
  CHECK(fmaxf(1.0f, 2.0f) == 2);
  CHECK(fabsf(-1.5f) == 1.5f);
  CHECK(sqrtf(9.0f) == 3);
  CHECK(std::fabs(__expf(1.0f) - 2.7182818f) < 1e-6f);
  CHECK(__exp10f(2.0f) == 100);
  CHECK(__logf(1.0f) == 0);
  CHECK(__log2f(8.0f) == 3);
  CHECK(__powf(2.0f, 10.0f) == 1024);
  CHECK(__sinf(0.0f) == 0);
  CHECK(__cosf(0.0f) == 1);
  CHECK(std::fabs(__tanhf(1.0f) - tanhf(1.0f)) < 1e-6f);
  CHECK(__saturatef(1.5f) == 1);
  CHECK(__saturatef(-1.5f) == 0);
  CHECK(__saturatef(NAN) == 0);
  CHECK(__float2int_rn(2.5f) == 2);
  CHECK(__float2int_rz(-2.5f) == -2);
  CHECK(__float2int_rd(-2.5f) == -3);
  CHECK(__float2int_ru(2.5f) == 3);
  CHECK(__float2int_rn(1e10f) == 2147483647);
  CHECK(__float2uint_rn(-1.0f) == 0u);
  CHECK(__int2float_rn(-3) == -3);
}

TEST_CASE("NaN becomes the integer that PTX's cvt makes of it") {
  const double nan = std::nan("");
  CHECK(__float2int_rn(NAN) == 0);
  CHECK(__float2uint_rd(NAN) == 0);
  CHECK(__float2ll_rz(NAN) == LLONG_MIN);
  CHECK(__float2ull_ru(NAN) == 1ull << 63);
  CHECK(__double2int_rn(nan) == INT_MIN);
  CHECK(__double2uint_rz(nan) == 0x80000000u);
  CHECK(__double2ll_rd(nan) == LLONG_MIN);
  CHECK(__double2ull_rn(nan) == 1ull << 63);
}

TEST_CASE("other numbers out of an integer's range are clamped") {
  CHECK(__float2int_rn(-HUGE_VALF) == INT_MIN);
  CHECK(__float2uint_rn(HUGE_VALF) == UINT_MAX);
  CHECK(__double2int_rn(1e10) == INT_MAX);
  CHECK(__double2uint_rn(-1) == 0);
  CHECK(__float2ll_rn(0x1p63f) == LLONG_MAX);
  CHECK(__float2ll_rn(-0x1p63f) == LLONG_MIN);
  CHECK(__double2ll_rn(-1e30) == LLONG_MIN);
  CHECK(__double2ull_rn(0x1p64) == ULLONG_MAX);
  CHECK(__double2ull_rn(0x1p63) == 1ull << 63);
}

TEST_CASE("functions that round a product and a sum each are not contracted to an FMA") {
  if (!has_fma()) SKIP("this CPU has no FMA");
  const volatile float a = 1 + 0x1p-12f, c = -1 - 0x1p-11f;
  CHECK(fused(a, a, c) == 0x1p-24f);
  CHECK(multiplied_and_added(a, a, c) == 0);
  const volatile double b = 1 + 0x1p-30, d = -1 - 0x1p-29;
  CHECK(multiplied_and_added(b, b, d) == 0);
}

TEST_CASE("arithmetic and conversions round in the direction of their name") {
  // 1/3 and the root of 2 lie between two numbers; 2^-30 is less than half of what 1 can be told from.
  const float third = 1.0f / 3, root = std::sqrt(2.0f);
  CHECK(__fdiv_rd(1, 3) < __fdiv_ru(1, 3));
  CHECK((__fdiv_rd(1, 3) == third || __fdiv_ru(1, 3) == third));
  CHECK(__fdiv_rz(-1, 3) == -__fdiv_rd(1, 3));
  CHECK(__frcp_ru(3) == __fdiv_ru(1, 3));
  CHECK(__fsqrt_ru(2) == std::nextafter(__fsqrt_rd(2), 2.0f));
  CHECK((__fsqrt_rd(2) == root || __fsqrt_ru(2) == root));
  CHECK(__fadd_rd(1, 0x1p-30f) == 1);
  CHECK(__fadd_ru(1, 0x1p-30f) == 1 + 0x1p-23f);
  CHECK(__fadd_rz(-1, -0x1p-30f) == -1);
  CHECK(__fsub_rd(1, 0x1p-30f) == 1 - 0x1p-24f);
  CHECK(__fmul_ru(1 + 0x1p-12f, 1 + 0x1p-12f) == 1 + 0x1p-11f + 0x1p-23f);
  CHECK(__fmul_rd(1 + 0x1p-12f, 1 + 0x1p-12f) == 1 + 0x1p-11f);
  CHECK(__fmaf_ru(1, 1, 0x1p-30f) == 1 + 0x1p-23f);
  CHECK(__dadd_ru(1, 0x1p-60) == 1 + 0x1p-52);
  CHECK(__dmul_rd(-1 - 0x1p-30, 1 + 0x1p-30) == -1 - 0x1p-29 - 0x1p-52);
  CHECK(__ddiv_rd(1, 3) < __ddiv_ru(1, 3));
  CHECK(__fma_rz(1, 1, 0x1p-60) == 1);
  CHECK(__drcp_ru(3) == __ddiv_ru(1, 3));
  CHECK(__dsqrt_rd(2) < __dsqrt_ru(2));
  CHECK(__double2float_ru(1 + 0x1p-40) == 1 + 0x1p-23f);
  CHECK(__double2float_rd(1 + 0x1p-40) == 1);
  CHECK(__int2float_ru(0x1000001) == 0x1000002);
  CHECK(__uint2float_rz(0xffffffffu) == 0x1.fffffep31f);
  CHECK(__ull2float_ru(~0ull) == 0x1p64f);
  CHECK(__ll2double_rd((1ll << 53) + 1) == 0x1p53);
  // Nothing stays of a direction.
  CHECK(1.0f / 3 == third);
}

TEST_CASE("complex numbers are divided without leaving the range") {
  const cuDoubleComplex a = make_cuDoubleComplex(3, 4), b = make_cuDoubleComplex(1, -2);
  const cuDoubleComplex product = cuCmul(a, b), quotient = cuCdiv(product, b);
  CHECK((product.x == 11 && product.y == -2));
  CHECK((std::fabs(quotient.x - 3) < 1e-12 && std::fabs(quotient.y - 4) < 1e-12));
  CHECK(cuCabs(a) == 5);
  CHECK((cuCfma(a, b, cuConj(a)).x == 14 && cuCfma(a, b, cuConj(a)).y == -6));
  const cuComplex large = make_cuComplex(1e38f, 2e38f), one = cuCdivf(large, large);
  CHECK((std::fabs(one.x - 1) < 1e-6f && std::fabs(one.y) < 1e-6f));
  CHECK(cuCimagf(cuComplexDoubleToFloat(cuComplexFloatToDouble(cuCsubf(large, large)))) == 0);
}

TEST_CASE("bf16 arithmetic rounds once") {
  const __nv_bfloat162 pair = __halves2bfloat162(bf16(1), bf16(-2));
  CHECK(__low2float(pair) == 1);
  CHECK(__high2float(__lowhigh2highlow(pair)) == 1);
  CHECK(__bfloat1622float2(__hadd2(pair, pair)).y == -4);
  CHECK(__high2float(__hmul2(pair, pair)) == 4);
  CHECK(__high2float(__hfma2(pair, pair, pair)) == 2);
  CHECK(float(__hadd(bf16(256), bf16(1))) == 256);  // a tie, to even
  CHECK(float(bf16(256) + bf16(1)) == 256);
  CHECK(float(__hadd(bf16(256), bf16(1.0078125f))) == 258);
  CHECK(float(__hmul(bf16(1.0078125f), bf16(1.0078125f))) == 1.015625f);
  CHECK(float(__hsub(bf16(3), bf16(1))) == 2);
  CHECK(float(__hdiv(bf16(1), bf16(3))) == float(bf16(1.0f / 3)));
  // 1.5 * 1.0078125 = 1.51171875 lies between two bf16: what is added decides, however small it is.
  const __nv_bfloat16 tiny = bf16(1e-30f);
  CHECK(float(__hfma(bf16(1.5f), bf16(1.0078125f), tiny)) == 1.515625f);
  CHECK(float(__hfma(bf16(1.5f), bf16(1.0078125f), __hneg(tiny))) == 1.5078125f);
  CHECK(float(__hfma(bf16(1.5f), bf16(1.0078125f), bf16(0))) == 1.515625f);  // to even
  CHECK(float(__hfma(bf16(0x1p100f), bf16(0x1p100f), bf16(-INFINITY))) == -INFINITY);
  CHECK(float(__hmax(bf16(NAN), bf16(1))) == 1);
  CHECK(std::signbit(float(__hmin(bf16(0.0f), bf16(-0.0f)))));
  CHECK(__hlt(bf16(1), bf16(2)));
  CHECK(!__hne(bf16(NAN), bf16(1)));
  __nv_bfloat16 sum = bf16(256);
  sum += bf16(1);
  CHECK(float(sum) == 256);
}

TEST_CASE("loads and stores with hints are loads and stores") {
  std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8};
  __nv_bfloat16 narrow = bf16(0);
  const auto* four = reinterpret_cast<const float4*>(values.data());
  run({.block = 1}, {}, [&] {
    __stcg(&values[0], __ldcg(&values[1]) + __ldca(&values[2]) + __ldcs(&values[3]) + __ldcv(&values[4]));
    __stcs(reinterpret_cast<float4*>(values.data()) + 1, __ldcg(four));
    __stwt(&values[1], scaled(&values[7]) + unscaled(&values[7]));
    __stwt(&narrow, values[2]);  // what is stored is converted
  });
  CHECK(float(narrow) == 3);
  CHECK(values == std::vector<float>{14, 12, 3, 4, 14, 2, 3, 4});
}

TEST_CASE("reductions of a warp, and votes of a block") {
  for (const Schedule& schedule : all_schedules()) {
    int wrong = 0;
    run({.block = 64}, schedule, [&] {
      const unsigned thread = threadIdx.x, lane = thread % 32;
      const int signed_value = static_cast<int>(lane) - 5;
      wrong += __reduce_add_sync(~0u, signed_value) != 336;
      wrong += __reduce_min_sync(~0u, signed_value) != -5;
      wrong += __reduce_max_sync(~0u, signed_value) != 26;
      wrong += __reduce_min_sync(~0u, lane + 3) != 3;
      wrong += __reduce_max_sync(~0u, static_cast<unsigned>(signed_value)) != 0xffffffff;
      wrong += __reduce_and_sync(~0u, lane | 64) != 64;
      wrong += __reduce_or_sync(~0u, lane) != 31;
      wrong += __reduce_xor_sync(~0u, lane == 3 ? 7u : 0u) != 7;
      const unsigned half = lane < 16 ? 0x0000ffff : 0xffff0000;
      wrong += __reduce_add_sync(half, 1u) != 16;
      int all_equal = 2;
      wrong += __match_all_sync(~0u, 7, &all_equal) != ~0u || all_equal != 1;
      wrong += __match_all_sync(~0u, lane, &all_equal) != 0 || all_equal != 0;
      wrong += __syncthreads_count(thread < 40) != 40;
      wrong += __syncthreads_count(thread < 3) != 3;
      __syncthreads();
      wrong += __syncthreads_or(thread == 63) != 1 || __syncthreads_or(0) != 0;
      wrong += __syncthreads_and(thread < 64) != 1 || __syncthreads_and(thread < 63) != 0;
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("atomic operations return what was there, and change it") {
  int i = 5;
  unsigned u = 5;
  unsigned long long wide = 5;
  float f = 5;
  __nv_bfloat16 b = bf16(256);
  __nv_bfloat162 pair{1, 2};
  unsigned short narrow = 7;
  run({.block = 1}, {}, [&] {
    CHECK(atomicAdd(&i, -2) == 5);
    CHECK(atomicSub(&i, 1) == 3);
    CHECK(atomicMax(&i, -7) == 2);
    CHECK(atomicMin(&i, -7) == 2);
    CHECK(atomicExch(&i, 9) == -7);
    CHECK(atomicCAS(&i, 8, 1) == 9);
    CHECK(atomicCAS(&i, 9, 1) == 9);
    CHECK(i == 1);
    CHECK(atomicInc(&u, 5) == 5);
    CHECK(atomicInc(&u, 5) == 0);
    CHECK(atomicDec(&u, 5) == 1);
    CHECK(atomicDec(&u, 5) == 0);
    CHECK(u == 5);
    CHECK(atomicOr(&u, 8) == 5);
    CHECK(atomicAnd(&u, 9) == 13);
    CHECK(atomicXor(&u, 1) == 9);
    CHECK(atomicAdd_block(&u, 1) == 8);
    CHECK(u == 9);
    CHECK(atomicMax(&wide, 1ull << 40) == 5);
    CHECK(atomicCAS_system(&wide, 1ull << 40, 3) == 1ull << 40);
    CHECK(wide == 3);
    CHECK(atomicExch(&f, 2) == 5);
    CHECK(atomicAdd(&f, 1) == 2);
    CHECK(float(atomicAdd(&b, bf16(1))) == 256);
    CHECK(float(b) == 256);
    atomicAdd(&pair, pair);
    CHECK(float(pair.y) == 4);
    CHECK(atomicCAS(&narrow, 7, 8) == 7);
    using Ref = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
    CHECK(Ref(u).exchange(6, cuda::std::memory_order_acquire) == 9);
    CHECK(Ref(u).fetch_max(4, cuda::std::memory_order_relaxed) == 6);
    CHECK(Ref(u).fetch_sub(4) == 6);
    unsigned expected = 1;
    CHECK(!Ref(u).compare_exchange_strong(expected, 7, cuda::memory_order_acq_rel));
    CHECK(expected == 2);
    CHECK(Ref(u).compare_exchange_weak(expected, 7));
    CHECK(u == 7);
    const long long before = clock64();
    CHECK(before < clock64());
  });
}

TEST_CASE("a lock that atomicCAS takes, and atomicExch gives back, hangs on no schedule") {
  for (const Schedule& schedule : all_schedules()) {
    int lock = 0, sum = 0;
    run({.block = 64}, schedule, [&] {
      for (int round = 0; round < 5; ++round) {
        while (atomicCAS(&lock, 0, 1) != 0) continue;
        const int before = sum;
        __nanosleep(1);  // others run, while it has the lock
        sum = before + 1;
        atomicExch(&lock, 0);
      }
    });
    REQUIRE(sum == 64 * 5);
  }
}

TEST_CASE("a look at what never changes is named") {
  int flag = 0;
  CHECK_THAT(failure({.block = 1}, {},
                     [&] {
                       while (atomicAdd(&flag, 0) == 0) continue;
                     }),
             ContainsSubstring("every running thread polls and nothing changes"));
  CHECK_THAT(failure({.block = 1}, {},
                     [&] {
                       while (__ldcg(&flag) == 0) continue;
                     }),
             ContainsSubstring("every running thread polls and nothing changes"));
}

TEST_CASE("a look that waits for another thread ends") {
  int flag = 0, seen = 0;
  run({.block = 2}, {Order::lowest_first, Landing::late}, [&] {
    if (threadIdx.x == 1) atomicExch(&flag, 1);
    if (threadIdx.x == 0)
      while (__ldcg(&flag) == 0) continue;
    ++seen;
  });
  CHECK(seen == 2);
}

TEST_CASE("many atomic operations that change nothing are no wait") {
  int largest = 100;
  run({.block = 64}, {}, [&] {
    for (int i = 0; i < 100; ++i) atomicMax(&largest, i);
  });
  CHECK(largest == 100);
}

TEST_CASE("lanes that leave a reduction out are named") {
  CHECK_THAT(failure({.block = 32}, {},
                     [] {
                       if (threadIdx.x < 16) {
                         __reduce_add_sync(~0u, 1u);
                       } else {
                         __syncwarp();
                       }
                     }),
             ContainsSubstring("__reduce_add_sync"));
}

}  // namespace device_functions_test
