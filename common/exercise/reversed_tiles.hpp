/// @file
/// The check of the exercises whose kernel reverses each tile of a vector, through a ring of slots.
#pragma once
#include <fmt/core.h>
#include <numeric>
#include <string>
#include <vector>

#include "common/exercise/check.hpp"

namespace ladder::exercise {

/// y[first + i] = x[first + kTile - 1 - i] for every tile, of kTile elements. x and y are in device memory.
using LaunchReverse = void (*)(const float* x, float* y, int tiles);

/// @throws NotYet unless y is right
template <int kTile>
void reverse(LaunchReverse launch, int tiles) {
  std::vector<float> x(tiles * kTile), expected(x.size());
  std::iota(x.begin(), x.end(), 0.0f);
  for (int i = 0; i < tiles * kTile; ++i) expected[i] = x[i / kTile * kTile + kTile - 1 - i % kTile];
  const DeviceBuffer<float> x_device(x);
  Output<float> y("y", x.size());
  launch(x_device.data(), y.data(), tiles);
  y.expect_equal(expected);
}

/// Fewer tiles than slots, as many and more, by every schedule, and copies that overlap.
template <int kTile>
void check_reversed_tiles(LaunchReverse launch) {
  // Where rings go wrong: around the number of slots, and on their second and third lap.
  for (const int tiles : {1, 3, 4, 5, 13}) on_every_schedule([&] { reverse<kTile>(launch, tiles); });
  constexpr int kTiles = 16, kLatency = 700;  // cycles of the CPU device's clock that a copy takes
  const auto counters = counted([&] { reverse<kTile>(launch, kTiles); });
  if (!counters) return;
  expect(
      counters->cycles < kTiles * kLatency / 2,
      fmt::format("y is right, but {} tiles take {} cycles, and a copy alone {}: how many are in flight at "
                  "a time?",
                  kTiles, static_cast<int>(counters->cycles), kLatency));
}

}  // namespace ladder::exercise
