/// @file
/// The check of exercise 03.4: fewer tiles than slots, as many and more, by every schedule; copies that
/// overlap, and one barrier for each tile.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"

namespace {

using exercise::kAhead, exercise::kMargin, exercise::kSlots, exercise::kTile;
using ladder::exercise::expect;

/// @throws NotYet unless y is right
void smooth(int tiles) {
  const auto x = ladder::exercise::small_integers<float>(kMargin + tiles * kTile + kMargin, 1);
  std::vector<float> expected;
  for (int i = kMargin; i < kMargin + tiles * kTile; ++i) expected.push_back(x[i - 1] + 2 * x[i] + x[i + 1]);
  const ladder::DeviceBuffer<float> x_device(x);
  ladder::exercise::Output<float> y("y", expected.size());
  exercise::launch_smooth(x_device.data() + kMargin, y.data(), tiles);
  y.expect_equal(expected);
}

void check() {
  for (const int tiles : {9, 1, kSlots, kSlots + 1})
    ladder::exercise::on_every_schedule([&] { smooth(tiles); });
  constexpr int kTiles = 4 * kSlots, kLatency = 700;  // cycles of the CPU device's clock that a copy takes
  const auto counters = ladder::exercise::counted([] { smooth(kTiles); });
  if (!counters) return;
  expect(counters->cycles < 1.0 * kTiles * kLatency / (kAhead - 1),
         fmt::format(
             "y is right, but {} tiles take {} cycles, and a copy alone {}: how many tiles are in flight "
             "while one is smoothed?",
             kTiles, static_cast<int>(counters->cycles), kLatency));
  expect(counters->block_barriers <= kTiles + 1,
         fmt::format("y is right, but {} tiles execute {} barriers: which two things can one barrier order?",
                     kTiles, counters->block_barriers));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
