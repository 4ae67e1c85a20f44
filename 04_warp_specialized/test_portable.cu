/// @file
/// The portable variant of lesson 04: small integers in fp32, which every order of summation adds up to the
/// same sum, against fp64.
#include <fmt/core.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <limits>
#include <numeric>
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

namespace {

constexpr int kSeeds = 2;

/// Unlike the lesson, the variant runs on any GPU from sm_75 on: what a Lesson says that says nothing else.
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

struct Columns {
  static constexpr int kSlots = 2, kRows = 4, kTiles = 2 * kSlots + 1;
  float rows[kSlots][kRows][ladder::kWarp];
  cuda::pipeline_shared_state<cuda::thread_scope_block, kSlots> pipe;
};

/// kLoaders warps share the rows of each tile; one more warp adds up the columns of all tiles.
/// @param data [kTiles, kRows, 32]
/// @param sums [32]
template <int kLoaders>
__global__ void add_columns(const float* data, float* sums) {
  auto& smem = ladder::shared_storage<Columns>();
  const int warp = static_cast<int>(threadIdx.x) / ladder::kWarp, lane = ladder::lane_index();
  const auto role = warp < kLoaders ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &smem.pipe, role);
  for (int tile = 0; tile < Columns::kTiles; ++tile) {
    auto& rows = smem.rows[tile % Columns::kSlots];
    if (role == cuda::pipeline_role::producer) {
      pipe.producer_acquire();
      for (int row = warp; row < Columns::kRows; row += kLoaders)
        cuda::memcpy_async(&rows[row][lane], &data[(tile * Columns::kRows + row) * ladder::kWarp + lane],
                           sizeof(float), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();  // until the copies of all loaders have landed
      for (const auto& row : rows) sums[lane] += row[lane];
      pipe.consumer_release();
    }
  }
}

template <int kLoaders>
void check_loaders(const std::vector<float>& data, const std::vector<float>& expected) {
  const ladder::DeviceBuffer<float> input(data);
  ladder::DeviceBuffer<float> sums(std::vector<float>(expected.size(), 0));
  ladder::launch(add_columns<kLoaders>,
                 {.name = "add_columns",
                  .grid = dim3(1),
                  .block = dim3((kLoaders + 1) * ladder::kWarp),
                  .shared_bytes = sizeof(Columns)},
                 input.data(), sums.data());
  CHECK(ladder::download(sums.data(), sums.size()) == expected);
}

}  // namespace

TEST_CASE("04: two loaders, or four, feed one consumer as one does") {
  skip_unless_runnable();
  std::vector<float> data(Columns::kTiles * Columns::kRows * ladder::kWarp), expected(ladder::kWarp, 0);
  std::iota(data.begin(), data.end(), 1.0f);
  for (size_t i = 0; i < data.size(); ++i) expected[i % ladder::kWarp] += data[i];
  for_each_schedule([&] {
    check_loaders<1>(data, expected);
    check_loaders<2>(data, expected);
    check_loaders<4>(data, expected);
  });
}

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
