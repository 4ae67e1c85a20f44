/// @file
/// The check of exercise 04.5: fewer tiles than staging tiles and more, the last of them ragged, by every
/// schedule; and no wait that is longer than it must be.
#include EXERCISE

#include "common/exercise/check.hpp"

namespace {

/// @throws NotYet unless C is right
void fill(int rows) {
  std::vector<__nv_bfloat16> expected;
  for (int i = 0; i < rows * exercise::kTile; ++i)
    expected.push_back(ladder::to_bf16(exercise::element(i / exercise::kTile, i % exercise::kTile)));
  ladder::exercise::Output<__nv_bfloat16> c("C", expected.size(), exercise::kTile);
  exercise::launch_fill(c.data(), rows);
  c.expect_equal(expected);
}

void check() {
  for (const int rows : {64, 100, 128, 450}) ladder::exercise::on_every_schedule([&] { fill(rows); });
  // How long tiles are kept, the clock can tell; whether a store was in line before the last one had read its
  // tile, it cannot.
  constexpr int kTiles = 16, kLatency = 700;  // cycles of the CPU device's clock until a store is written
  const auto counters = ladder::exercise::counted([] { fill(kTiles * exercise::kTile); });
  if (!counters) return;
  ladder::exercise::expect(
      counters->cycles < kTiles * kLatency / 2,
      fmt::format(
          "C is right, but {} tiles take {} cycles, and a store is written {} after its tile has been "
          "read: for which of the two does a staging tile have to wait?",
          kTiles, static_cast<int>(counters->cycles), kLatency));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
