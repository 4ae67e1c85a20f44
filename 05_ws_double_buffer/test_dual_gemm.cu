/// @file
/// The dual GEMM: edges and trip counts, bit for bit where there is no silu; and what the verifier makes of
/// halves that are swapped.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>
#include <vector>

#include "05_ws_double_buffer/variants/dual_gemm.cuh"
#include "common/host/device/device.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/verify/verifier.hpp"
#include "common/testing/breadth.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Settings;
using ladder::Shape;
using ladder::testing::check_gemm;
using ladder::testing::check_gemm_by_turns;
using ladder::testing::check_gemm_on_three_schedules;
using ladder::testing::expect_refused;
using ladder::testing::skip_unless_runnable;
using ladder::testing::trip_counts;
using lesson05::dual::lesson;

namespace {

/// C is [m, n], and there are two B.
Shape dual(int m, int n, int k) { return {m, n, k, 2}; }

const Settings kExact = {{"activation", "identity"}};

/// Under racecheck, which takes 20 s for a problem of any size, on an H200.
bool few() {
  return ladder::testing::breadth() == ladder::testing::Breadth::narrow && !ladder::on_cpu_device();
}

}  // namespace

TEST_CASE("05: a dual GEMM survives any number of steps, bit for bit") {
  skip_unless_runnable(lesson(), "wgmma");
  const int tiles = GENERATE(4, 1, 9);
  if (few() && tiles != 4) return;
  constexpr int kSlots = lesson05::dual::Shape::kSlots;
  for (const int steps : few() ? std::vector{1, kSlots, kSlots + 1} : trip_counts(kSlots))
    if (steps == kSlots || steps == kSlots + 1)
      check_gemm_on_three_schedules(lesson(), dual(128, 128 * tiles, 64 * steps), kExact, 2);
    else
      check_gemm_by_turns(lesson(), dual(128, 128 * tiles, 64 * steps), kExact);
}

TEST_CASE("05: a dual GEMM has its edges cut by TMA, bit for bit") {
  skip_unless_runnable(lesson(), "wgmma");
  const auto shape =
      GENERATE(dual(1, 8, 8),         // the smallest
               dual(1, 136, 72),      // one row
               dual(130, 8, 64),      // the fewest columns
               dual(65, 72, 200),     // the second warpgroup has one row, the second panel 8 columns
               dual(257, 264, 136));  // nothing fits
  if (few() && shape.m < 65) return;
  check_gemm_by_turns(lesson(), shape, kExact);
}

TEST_CASE("05: a dual GEMM with its silu is as close as separate kernels") {
  skip_unless_runnable(lesson(), "wgmma");
  const auto shape =
      GENERATE(dual(192, 256, 8),  // few products: sums where silu is neither 0 nor its argument
               dual(128, 128, 16), dual(65, 136, 200), dual(1, 8, 8), dual(257, 520, 64));
  if (few() && shape.m != 65) return;
  check_gemm_by_turns(lesson(), shape, {});
}

TEST_CASE("05: a dual GEMM covers C in every order of tiles") {
  skip_unless_runnable(lesson(), "wgmma");
  const std::string group = GENERATE("1", "4", "8", "16");
  if (few() && group != "4") return;
  check_gemm(lesson(), dual(128 * 9 + 8, 128 * 3, 64), {{"activation", "identity"}, {"group", group}});
}

TEST_CASE("05: the verifier sees the wrong activation, and the silu of the wrong product") {
  skip_unless_runnable(lesson(), "wgmma");
  const ladder::Contender silu = ladder::contender_of(lesson(), "silu", {}),
                          identity = ladder::contender_of(lesson(), "identity", kExact);
  ladder::ReferenceEpilogue swapped = silu.epilogue;
  swapped.apply = [apply = silu.epilogue.apply](double gate, double up) { return apply(up, gate); };
  ladder::Verifier verifier(dual(65, 136, 64), 1);
  const auto passes = [&](const ladder::Contender& contender, const ladder::ReferenceEpilogue& wanted) {
    return verifier.check([&](const ladder::Gemm& gemm) { multiply_and_wait(contender, gemm); }, wanted)
        .passed();
  };
  CHECK(passes(silu, silu.epilogue));
  CHECK(passes(identity, identity.epilogue));
  CHECK_FALSE(passes(silu, identity.epilogue));
  CHECK_FALSE(passes(identity, silu.epilogue));
  CHECK_FALSE(passes(silu, swapped));
}

TEST_CASE("05: a dual GEMM counts the work and the bytes of both products") {
  const Shape shape = dual(64, 32, 16);
  CHECK(shape.flops() == 4.0 * 64 * 32 * 16);
  CHECK(shape.bytes() == 2.0 * (64 * 16 + 2 * 16 * 32 + 64 * 32));
  const ladder::Gemm gemm{nullptr, nullptr, nullptr, 64, 32, 16};
  CHECK(lesson().global_bytes(gemm, lesson().settings()) == shape.bytes());
  for (const ladder::Alternative& other : lesson().alternatives(lesson().settings()))
    CHECK(other.global_bytes(gemm) >= shape.bytes() + 2.0 * 4 * 64 * 32);
}

TEST_CASE("05: a dual GEMM refuses rows that TMA cannot copy") {
  skip_unless_runnable(lesson(), "wgmma");
  expect_refused(lesson(), dual(128, 132, 64), {}, {"n = 132", "multiple of 8"});
  expect_refused(lesson(), dual(128, 128, 63), {}, {"k = 63", "multiple of 8"});
}
