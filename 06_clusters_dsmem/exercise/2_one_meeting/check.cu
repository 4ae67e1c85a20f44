/// @file
/// The check of exercise 06.2: several rows, by every schedule; and the number of cluster_syncs.
#include EXERCISE

#include "common/exercise/check.hpp"

namespace {

/// @throws NotYet unless y is right
void normalise(int rows) {
  auto x = ladder::exercise::small_integers<float>(rows * exercise::kColumns, 1);
  for (float& value : x) value += 5;  // positive, so no sum is 0
  std::vector<float> expected;
  for (int row = 0; row < rows; ++row) {
    float sum = 0;  // a sum of small integers is exact in any order
    for (int i = 0; i < exercise::kColumns; ++i) sum += x[row * exercise::kColumns + i];
    for (int i = 0; i < exercise::kColumns; ++i) expected.push_back(x[row * exercise::kColumns + i] / sum);
  }
  const ladder::DeviceBuffer<float> x_device(x);
  ladder::exercise::Output<float> y("y", x.size(), exercise::kColumns);
  exercise::launch_normalise(x_device.data(), y.data(), rows);
  y.expect_equal(expected);
}

void check() {
  for (const int rows : {1, 2, 5}) ladder::exercise::on_every_schedule([&] { normalise(rows); });

  constexpr unsigned kRows = 16, kSyncs = kRows + 1;
  const auto counters = ladder::exercise::counted([] { normalise(kRows); });
  if (!counters) return;
  ladder::exercise::expect(
      counters->barrier_waits <= kSyncs * exercise::kBlocks,
      fmt::format(
          "y is right, but in {} rows each block waits {} times, and {} are enough: must the next row's "
          "quarter overwrite this one?",
          kRows, counters->barrier_waits / exercise::kBlocks, kSyncs));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
