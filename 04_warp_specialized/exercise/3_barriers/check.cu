/// @file
/// The check of exercise 04.3: one tile and laps of the ring, by every schedule.
#include EXERCISE

#include "common/exercise/check.hpp"

namespace {

/// @throws NotYet unless C is right
void add(int tiles) {
  constexpr int kColumns = exercise::kColumns;
  constexpr float kPaddingValue = 7;
  const auto a = ladder::exercise::small_integers<float>(tiles * exercise::kRows * kColumns, 1);
  const auto b = ladder::exercise::small_integers<float>(a.size(), 2);
  std::vector<__nv_bfloat16> expected(exercise::kPadding * kColumns, ladder::to_bf16(kPaddingValue));
  for (size_t i = 0; i < a.size(); ++i) expected.push_back(ladder::to_bf16(a[i] + b[i]));
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(std::vector<__nv_bfloat16>(a.begin(), a.end())),
      b_device(std::vector<__nv_bfloat16>(b.begin(), b.end()));
  ladder::exercise::Output<__nv_bfloat16> c("C", expected.size(), kColumns);
  exercise::launch_add(a_device.data(), b_device.data(), c.data(), kPaddingValue, tiles);
  c.expect_equal(expected);
}

void check() {
  for (const int tiles : {1, 2, 5}) ladder::exercise::on_every_schedule([&] { add(tiles); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
