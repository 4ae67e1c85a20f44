/// @file
/// The check of exercise 04.1: one tile and several, the last of them ragged, by every schedule.
#include EXERCISE

#include "common/exercise/check.hpp"

namespace {

/// @throws NotYet unless C is right
void double_rows(int rows) {
  const auto x = ladder::exercise::small_integers<float>(rows * exercise::kTile, 1);
  const std::vector<__nv_bfloat16> x_bf16(x.begin(), x.end());
  std::vector<__nv_bfloat16> expected;
  for (const float value : x) expected.push_back(ladder::to_bf16(2 * value));
  const ladder::DeviceBuffer<__nv_bfloat16> x_device(x_bf16);
  ladder::exercise::Output<__nv_bfloat16> c("C", expected.size(), exercise::kTile);
  exercise::launch_double_rows(x_device.data(), c.data(), rows);
  c.expect_equal(expected);
}

void check() {
  for (const int rows : {64, 100, 240}) ladder::exercise::on_every_schedule([&] { double_rows(rows); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
