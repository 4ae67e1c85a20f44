/// @file
/// The check of exercise 04.2: rings that are filled never, once and often, by every schedule; and copies
/// that overlap.
#include EXERCISE

#include <numeric>

#include "common/exercise/check.hpp"

namespace {

/// @throws NotYet unless y is right
void reverse(int tiles) {
  constexpr int kTile = exercise::kTile;
  std::vector<float> x(tiles * kTile), expected(x.size());
  std::iota(x.begin(), x.end(), 0.0f);
  for (int i = 0; i < tiles * kTile; ++i) expected[i] = x[i / kTile * kTile + kTile - 1 - i % kTile];
  const ladder::DeviceBuffer<float> x_device(x);
  ladder::exercise::Output<float> y("y", x.size());
  exercise::launch_reverse(x_device.data(), y.data(), tiles);
  y.expect_equal(expected);
}

void check() {
  // Where rings go wrong: around the number of slots, and on their second and third lap.
  for (const int tiles : {1, 3, 4, 5, 13}) ladder::exercise::on_every_schedule([&] { reverse(tiles); });
  constexpr int kTiles = 16, kLatency = 700;  // cycles of the CPU device's clock that a copy takes
  const auto counters = ladder::exercise::counted([&] { reverse(kTiles); });
  if (!counters) return;
  ladder::exercise::expect(counters->cycles < kTiles * kLatency / 2,
                           "y is right, but " + std::to_string(kTiles) + " tiles take " +
                               std::to_string(static_cast<int>(counters->cycles)) +
                               " cycles, and a copy alone " + std::to_string(kLatency) +
                               ": how many are on their way at a time?");
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
