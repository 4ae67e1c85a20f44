/// @file
/// The check of exercise 06.5: full clusters and a last one with one row, by every schedule; and a cluster
/// reads each table once.
#include EXERCISE

#include "common/exercise/check.hpp"

namespace {

constexpr int kElements = exercise::kTable * exercise::kTable;

/// @throws NotYet unless y is right
void mix(int rows, int tables) {
  const auto table = ladder::exercise::small_integers<float>(static_cast<size_t>(tables * kElements), 1);
  const auto weights = ladder::exercise::small_integers<float>(static_cast<size_t>(rows * tables), 2);
  std::vector<float> expected;
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < kElements; ++i) {
      float sum = 0;
      for (int t = 0; t < tables; ++t) sum += weights[row * tables + t] * table[t * kElements + i];
      expected.push_back(sum);
    }
  const ladder::DeviceBuffer<__nv_bfloat16> table_device(
      std::vector<__nv_bfloat16>(table.begin(), table.end()));
  const ladder::DeviceBuffer<float> weights_device(weights);
  ladder::exercise::Output<float> y("y", expected.size(), kElements);
  exercise::launch_mixture(table_device.data(), weights_device.data(), y.data(), rows, tables);
  y.expect_equal(expected);
}

void check() {
  mix(2, 1);
  mix(3, 5);
  ladder::exercise::on_every_schedule([] { mix(3, 3); });

  constexpr int kRows = 3, kTables = 4;
  const auto counters = ladder::exercise::counted([] { mix(kRows, kTables); });
  if (!counters) return;
  constexpr uint64_t kClusters = (kRows + 1) / 2, kWeights = kClusters * exercise::kBlocks * kTables * 4,
                     kSectors = kClusters * kTables * sizeof(exercise::Table) / 32 + kWeights;
  ladder::exercise::expect(counters->global_read_sectors <= kSectors,
                           fmt::format("y is right, but the kernel reads {} sectors, and {} are enough: a "
                                       "cluster must load each table once",
                                       counters->global_read_sectors, kSectors));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
