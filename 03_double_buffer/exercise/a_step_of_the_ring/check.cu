/// @file
/// The check of exercise 03.a: rings of two to five slots, from fewer tiles than slots to several laps.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::exercise::expect_returned;

void expect_step(int step, int slots, int tiles) {
  const exercise::Step got = exercise::in_step(step, slots, tiles);
  const std::string call = fmt::format("in_step({}, {}, {})", step, slots, tiles);
  const int next = step + slots - 1;  // all before it have been started
  const bool is_left = next < tiles;
  const std::string started = fmt::format("the copy of tile {} has been started before", got.loaded_tile);
  expect_returned(call + ".read_slot", got.read_slot, step % slots,
                  {{step, fmt::format("there are {} slots: which tiles does slot 0 hold?", slots)}});
  if (is_left)
    expect_returned(
        call + ".loaded_tile", got.loaded_tile, next,
        {{step + slots, fmt::format("the slot of tile {} is the one that this step reads", step + slots)},
         {-1, "there is a tile left"},
         {got.loaded_tile < next ? started : fmt::format("tile {} is not the next one", got.loaded_tile)}});
  else
    expect_returned(
        call + ".loaded_tile", got.loaded_tile, -1,
        {{got.loaded_tile < tiles ? started : fmt::format("there is no tile {}", got.loaded_tile)}});
  expect_returned(
      call + ".loaded_slot", got.loaded_slot, is_left ? next % slots : -1,
      {{step % slots, "this step reads that slot, and some warps may read it while the copy lands"},
       {is_left ? "which slot holds neither this step's tile nor one in flight?" : "no copy is started"}});
}

void check() {
  for (int slots = 2; slots <= 5; ++slots)
    for (int tiles = 3 * slots + 1; tiles >= 1; --tiles) {
      expect_returned(fmt::format("loaded_before({}, {})", slots, tiles),
                      exercise::loaded_before(slots, tiles), std::min(slots - 1, tiles),
                      {{slots, "all slots but one: which slot could step 0 load into?"},
                       {slots - 1, fmt::format("there is no tile {}", slots - 2)}});
      for (int step = 0; step < tiles; ++step) expect_step(step, slots, tiles);
    }
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
