/// @file
/// The check of exercise 03.1: the tiles, the handshake, and four tiles in flight.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/reversed_tiles.hpp"

namespace {

using exercise::kSlots, exercise::kTile;

void check() {
  ladder::exercise::check_reversed_tiles<kTile>(exercise::launch_reverse);
  constexpr int kTiles = 4 * kSlots, kLatency = 700;  // cycles of the CPU device's clock that a copy takes
  const auto counters =
      ladder::exercise::counted([] { ladder::exercise::reverse<kTile>(exercise::launch_reverse, kTiles); });
  if (!counters) return;
  // With all slots in flight, each lap takes a latency and the time of one tile's computation. With one slot
  // less there are more laps.
  ladder::exercise::expect(
      counters->cycles < 1.0 * kTiles * kLatency / (kSlots - 1),
      fmt::format(
          "y is right, but {} tiles take {} cycles, as with {} slots: does the copy of tile t + {} start "
          "as soon as tile t has been released?",
          kTiles, static_cast<int>(counters->cycles), kSlots - 1, kSlots));
  ladder::exercise::expect(
      counters->block_barriers < kTiles,
      fmt::format("y is right, but {} tiles execute {} barriers besides the four verbs: what would a barrier "
                  "wait for that the verbs do not?",
                  kTiles, counters->block_barriers));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
