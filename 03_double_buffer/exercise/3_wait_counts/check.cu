/// @file
/// The check of exercise 03.3: fewer tiles than slots, as many and more, and copies that overlap.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"

namespace {

using exercise::kSlots, exercise::kTile;

/// @throws NotYet unless out is right
void weigh(int tiles) {
  const auto keys = ladder::exercise::small_integers<float>(tiles * kTile, 1),
             values = ladder::exercise::small_integers<float>(tiles * kTile, 2);
  std::vector<float> expected;
  for (int i = 0; i < tiles * kTile; ++i) {
    float score = 0;
    for (int j = i / 4 * 4; j < i / 4 * 4 + 4; ++j) score += keys[j] * keys[j];
    expected.push_back(score * values[i]);
  }
  const ladder::DeviceBuffer<float> keys_device(keys), values_device(values);
  ladder::exercise::Output<float> out("out", expected.size());
  exercise::launch_weigh_values(keys_device.data(), values_device.data(), out.data(), tiles);
  out.expect_equal(expected);
}

void check() {
  // Fewer tiles than slots, as many, and more.
  for (const int tiles : {4, 1, 2, 3, 10}) ladder::exercise::on_every_schedule([&] { weigh(tiles); });
  constexpr int kTiles = 8 * kSlots, kLatency = 700;  // cycles of the CPU device's clock that a copy takes
  const auto counters = ladder::exercise::counted([] { weigh(kTiles); });
  if (!counters) return;
  ladder::exercise::expect(
      counters->cycles < 1.0 * kTiles * kLatency / (kSlots - 1),
      fmt::format(
          "out is right, but {} tiles take {} cycles, and a copy alone {}: at a wait, how many batches "
          "have been committed after the one that is needed?",
          kTiles, static_cast<int>(counters->cycles), kLatency));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
