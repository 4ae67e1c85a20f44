/// @file
/// The check of exercise 01.2: every element once, whatever the grid, and whole sectors.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"

namespace {

/// @throws NotYet unless y is right
void run(int n, int blocks, int threads) {
  const auto x = ladder::exercise::small_integers<float>(n, 3);
  std::vector<float> expected;
  for (const float value : x) expected.push_back(value > 0 ? value : 0);
  const ladder::DeviceBuffer<float> x_device(x);
  ladder::exercise::Output<float> y("y", n);
  exercise::launch_relu(x_device.data(), y.data(), n, blocks, threads);
  y.expect_equal(expected);
}

void check() {
  run(256, 4, 64);   // a thread for each element
  run(1000, 4, 64);  // more elements than threads
  run(100, 4, 64);   // fewer
  run(1, 2, 96);
  constexpr int kElements = 1024, kElementsOfSector = 32 / sizeof(float);
  const auto counters = ladder::exercise::counted([&] { run(kElements, 2, 64); });
  if (!counters) return;
  // Each element is read and written once.
  const uint64_t fewest = 2 * kElements / kElementsOfSector;
  const uint64_t sectors = counters->global_read_sectors + counters->global_write_sectors;
  ladder::exercise::expect(sectors <= fewest,
                           fmt::format("y is right, but warps touched {} sectors of memory where {} are "
                                       "enough: which threads access the same sector?",
                                       sectors, fewest));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
