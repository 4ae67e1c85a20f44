/// @file
/// The check of exercise 04.2: less than a lap of the ring, and several laps, by every schedule.
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
  exercise::launch_reverse_tiles(x_device.data(), y.data(), tiles);
  y.expect_equal(expected);
}

void check() {
  for (const int tiles : {1, 3, 4, 7, 20}) ladder::exercise::on_every_schedule([&] { reverse(tiles); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 80); }
