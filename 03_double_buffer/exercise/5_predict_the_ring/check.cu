/// @file
/// The check of exercise 03.5: each number against the CPU device's clock; on a GPU, against the closed form.
#include EXERCISE

#include <fmt/core.h>
#include <array>

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using namespace exercise;
using ladder::exercise::expect, ladder::exercise::expect_predicted;

constexpr double kLatency = 700, kBytesPerCycle = 42, kCyclesPerLoad = 5, kBarrier = 20;
constexpr int kMin = 2, kMax = 8;  ///< slots

/// The cycles of each further tile.
using CyclesOfSlots = std::array<double, kMax + 1>;

template <int kDepth>
double cycles(int tiles) {
  const std::vector<float> x(tiles * kTileBytes / sizeof(float));
  const ladder::DeviceBuffer<float> x_device(x);
  ladder::DeviceBuffer<float> y(tiles * kThreads);
  const auto counters = ladder::exercise::counted(
      [&] { launch_work<kDepth>(reinterpret_cast<const float4*>(x_device.data()), y.data(), tiles); });
  return counters ? counters->cycles : 0;
}

/// The closed form: the maximum of the compute time and of a load's share with kDepth - 1 loads in flight.
CyclesOfSlots computed() {
  const double load = kLatency + kTileBytes / kBytesPerCycle, compute = kCyclesPerLoad * kLoads + kBarrier;
  CyclesOfSlots each{};
  for (int slots = kMin; slots <= kMax; ++slots)
    each[slots] = std::max(compute, (load + kBarrier) / (slots - 1));
  return each;
}

/// The cycles by the CPU device's clock; on a GPU, by the closed form.
template <int kDepth = kMax>
CyclesOfSlots measured() {
  if constexpr (kDepth < kMin) {
    return computed();
  } else {
    CyclesOfSlots each = measured<kDepth - 1>();
    constexpr int kFew = 20, kMany = 60;
    const double further = cycles<kDepth>(kMany) - cycles<kDepth>(kFew);
    if (further > 0) {
      const double one = further / (kMany - kFew);
      expect(std::abs(one - each[kDepth]) < 0.05 * one,
             fmt::format("the clock was changed: with {} slots each further tile takes {:.0f} cycles, by the "
                         "closed form {:.0f}",
                         kDepth, one, each[kDepth]));
      each[kDepth] = one;
    }
    return each;
  }
}

void check() {
  const CyclesOfSlots each = measured();
  const double load = each[kMin] - kBarrier;  // one load in flight: each tile waits for all of it
  const double compute = each[kMax];
  int slots = kMin;
  while (!(each[slots] < 1.02 * compute)) ++slots;

  constexpr double kTolerance = 0.05;
  expect_predicted("kLoadCycles", kLoadCycles, load,
                   {{kLatency, "you forgot the transfer time of the bytes, which arrive one after the other"},
                    {kTileBytes / kBytesPerCycle, "you forgot the latency"}},
                   kTolerance);
  expect_predicted("kComputeCycles", kComputeCycles, compute,
                   {{kCyclesPerLoad * kLoads, "you forgot the barrier"},
                    {kCyclesPerLoad * kLoads * kThreads,
                     "you added the times of all threads; they work at the same time"}},
                   kTolerance);
  expect_predicted("kSlots", kSlots, slots,
                   {{slots - 1,
                     "with that many slots every step waits for a copy; you forgot the slot that is being "
                     "read, into which nothing is copied before the next barrier"},
                    {slots + 1, "fewer are enough"},
                    {"how many loads must be in flight at the same time?"}});
  expect_predicted("kBytesInFlight", kBytesInFlight, (slots - 1) * kTileBytes,
                   {{slots * kTileBytes, "you counted the slot that is being read as in flight"},
                    {kLatency * kBytesPerCycle,
                     "memory could send that many bytes in one latency, if the ring requested them"},
                    {kTileBytes, "that is one tile; how many copies start before the first has landed?"}});
  expect_predicted(
      "kCyclesOneLess", kCyclesOneLess, each[slots - 1],
      {{(load + compute) / (slots - 1),
        "that is as if a slot were filled again as soon as its tile is done, not after the next barrier"},
       {load / (slots - 1), "that is with all slots; with one slot less, one load less is in flight"},
       {compute, "with one slot less every step waits for a copy"}},
      kTolerance);
}

}  // namespace

int main(int argc, char** argv) {
  return ladder::exercise::run_check(argc, argv, [] { ladder::exercise::all_predicted(check); });
}
