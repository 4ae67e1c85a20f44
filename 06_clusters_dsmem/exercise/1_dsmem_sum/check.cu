/// @file
/// The check of exercise 06.1: several clusters, by every schedule.
#include EXERCISE

#include "common/exercise/check.hpp"

namespace {

/// @throws NotYet unless y is right
void normalise(int rows) {
  constexpr int kColumns = exercise::kBlocks * exercise::kQuarter;
  auto x = ladder::exercise::small_integers<float>(rows * kColumns, 1);
  for (float& value : x) value += 5;  // positive, so no sum is 0
  std::vector<float> expected;
  for (int row = 0; row < rows; ++row) {
    float sum = 0;  // a sum of small integers is exact in any order
    for (int i = 0; i < kColumns; ++i) sum += x[row * kColumns + i];
    for (int i = 0; i < kColumns; ++i) expected.push_back(x[row * kColumns + i] / sum);
  }
  const ladder::DeviceBuffer<float> x_device(x);
  ladder::exercise::Output<float> y("y", x.size(), kColumns);
  exercise::launch_normalise(x_device.data(), y.data(), rows);
  std::vector<float> got(x.size());
  CUDA_CHECK(cudaMemcpy(got.data(), y.data(), got.size() * sizeof(float), cudaMemcpyDefault));
  ladder::exercise::expect(got != x, "every row is divided by 1, not by its sum: fill in the marked lines");
  y.expect_equal(expected);
}

void check() {
  for (const int rows : {1, 3}) ladder::exercise::on_every_schedule([&] { normalise(rows); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
