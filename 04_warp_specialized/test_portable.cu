/// @file
/// The portable variant of lesson 04: small integers in fp32, which every order of summation adds up to the
/// same sum, against fp64.
#include <fmt/core.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <limits>
#include <string>
#include <vector>

#include "04_warp_specialized/variants/portable.cuh"
#include "common/cuda/device_buffer.hpp"
#include "common/host/problem/lesson.hpp"
#include "common/host/problem/shape.hpp"
#include "common/testing/gemm_checks.hpp"

using ladder::Shape;
using ladder::testing::for_each_schedule;
using ladder::testing::trip_counts;
using lesson04::portable::kTile;
using lesson04::portable::Sgemm;

namespace {

constexpr int kSeeds = 2;

/// Unlike the lesson, the variant runs on any GPU from sm_80 on: what a Lesson says that says nothing else.
void skip_unless_runnable() {
  ladder::Lesson lesson;
  lesson.name = "04_warp_specialized, portable";
  ladder::testing::skip_unless_runnable(lesson);
}

/// -4 to 4, by a rule that repeats neither from row to row nor from tile to tile.
std::vector<float> small_integers(int count, int factor) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>(i * factor % 1009 % 9 - 4);
  return values;
}

/// C in fp64.
std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b, const Shape& shape) {
  const auto n = static_cast<size_t>(shape.n), k = static_cast<size_t>(shape.k);
  std::vector<double> c(static_cast<size_t>(shape.m) * n);
  for (size_t i = 0; i < c.size(); ++i)
    for (size_t l = 0; l < k; ++l)
      c[i] += static_cast<double>(a[i / n * k + l]) * static_cast<double>(b[l * n + i % n]);
  return c;
}

/// Names the first element of C that is not as expected, NaN included; empty if there is none.
std::string first_wrong(const std::vector<float>& c, const std::vector<double>& expected, int columns) {
  for (size_t i = 0; i < c.size(); ++i) {
    if (static_cast<double>(c[i]) == expected[i]) continue;
    const auto n = static_cast<size_t>(columns);
    return fmt::format("C[{}, {}] is {:f}, not {:f}", i / n, i % n, c[i], expected[i]);
  }
  return "";
}

/// Multiplies with a ring of kSlots by every schedule, and compares bit for bit.
template <int kSlots>
void check(const Shape& shape) {
  const std::vector<float> a = small_integers(shape.m * shape.k, 7);
  const std::vector<float> b = small_integers(shape.k * shape.n, 11);
  const std::vector<double> expected = product(a, b, shape);
  const ladder::DeviceBuffer<float> device_a(a), device_b(b);
  ladder::DeviceBuffer<float> device_c(expected.size());
  INFO(shape.name() << ", " << kSlots << " slots");
  for_each_schedule(
      [&] {
        device_c.upload(std::vector<float>(expected.size(), std::numeric_limits<float>::quiet_NaN()));
        lesson04::portable::launch_gemm<kSlots>(
            {device_a.data(), device_b.data(), device_c.data(), shape.m, shape.n, shape.k});
        CUDA_CHECK(cudaDeviceSynchronize());
        CHECK(first_wrong(ladder::download(device_c.data(), device_c.size()), expected, shape.n) == "");
      },
      kSeeds);
}

/// check() for a number of slots that is known at run time.
void check(int slots, const Shape& shape) {
  switch (slots) {
    case 1:
      return check<1>(shape);
    case 2:
      return check<2>(shape);
    case 3:
      return check<3>(shape);
    case 4:
      return check<4>(shape);
    case 5:
      return check<5>(shape);
    default:
      FAIL("no test has " << slots << " slots");
  }
}

}  // namespace

TEST_CASE("04: a portable ring of any depth survives any number of steps") {
  skip_unless_runnable();
  const int slots = GENERATE(1, 2, 3, 4, 5);
  for (const int steps : trip_counts(slots)) check(slots, {kTile.m, kTile.n, kTile.k * steps});
}

TEST_CASE("04: the portable variant takes any shape") {
  skip_unless_runnable();
  const auto shape = GENERATE(Shape{1, 1, 1},        // the smallest
                              Shape{1, 70, 100},     // one row
                              Shape{70, 1, 100},     // one column
                              Shape{33, 31, 161},    // next to a tile, and to a full ring
                              Shape{64, 96, 128},    // whole tiles
                              Shape{100, 77, 129});  // nothing fits
  check(4, shape);
}
