/// @file
/// The check of exercise 06.3: fewer tiles than slots, and laps of the ring, by every schedule.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace {

/// @throws NotYet unless y is right
void multiply(int tiles) {
  const auto x = ladder::exercise::small_integers<float>(tiles * exercise::kTile * exercise::kTile, 1);
  const std::vector<__nv_bfloat16> x_bf16(x.begin(), x.end());
  std::vector<__nv_bfloat16> expected;
  for (int rank = 0; rank < exercise::kBlocks; ++rank)
    for (const float value : x) expected.push_back(ladder::to_bf16(static_cast<float>(rank + 1) * value));
  const ladder::DeviceBuffer<__nv_bfloat16> x_device(x_bf16);
  ladder::exercise::Output<__nv_bfloat16> y("y", expected.size(), exercise::kTile);
  exercise::launch_multiply(x_device.data(), y.data(), tiles);
  y.expect_equal(expected);
}

/// The same; if a slot was filled before all had read it, the message adds the arrivals of `empty`.
void multiply_in_laps(int tiles) {
  try {
    multiply(tiles);
  } catch (const ladder::exercise::NotYet&) {
    throw;
  } catch (const std::runtime_error& report) {
    const std::string what = report.what();
    if (what.find("the phase in which it was issued has ended") == std::string::npos) throw;
    throw std::runtime_error(
        fmt::format("{}\n`empty` expects {} arrivals in a phase: the readers of which blocks "
                    "must have read a slot before a loader fills it again?",
                    what, exercise::kEmptyArrivals));
  }
}

void check() {
  multiply(exercise::kSlots);
  ladder::exercise::unless_deadlocked(
      "with more tiles than slots the loaders wait forever: how many readers arrive at the barrier "
      "pipe_lc.empty[0] of each block?",
      [] { multiply_in_laps(exercise::kSlots + 1); });
  for (const int tiles : {1, 3, 5}) ladder::exercise::on_every_schedule([&] { multiply_in_laps(tiles); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
