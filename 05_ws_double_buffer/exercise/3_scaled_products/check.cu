/// @file
/// The check of exercise 05.3: one lap of the ring, and several, by every schedule.
#include EXERCISE

#include "common/exercise/check.hpp"

namespace {

using exercise::kTile;
using Matrix = std::vector<__nv_bfloat16>;

/// @throws NotYet unless c is right
void multiply(int k_steps) {
  const int k = k_steps * kTile;
  const Matrix a = ladder::exercise::small_integers<__nv_bfloat16>(kTile * k, 1);
  const Matrix b = ladder::exercise::small_integers<__nv_bfloat16>(k * kTile, 2);
  const Matrix scales = ladder::exercise::small_integers<__nv_bfloat16>(k_steps * kTile, 3);
  Matrix expected;
  for (int row = 0; row < kTile; ++row) {
    float sums[kTile] = {};
    for (int i = 0; i < k; ++i) {
      const float scale = ladder::to_float(scales[i / kTile * kTile + row]);
      const float scaled = scale * ladder::to_float(a[row * k + i]);
      for (int column = 0; column < kTile; ++column)
        sums[column] += scaled * ladder::to_float(b[i * kTile + column]);
    }
    for (const float sum : sums) expected.push_back(ladder::to_bf16(sum));
  }
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(a), b_device(b), scales_device(scales);
  ladder::exercise::Output<__nv_bfloat16> c("c", expected.size(), kTile);
  exercise::launch_multiply(a_device.data(), b_device.data(), scales_device.data(), c.data(), k_steps);
  c.expect_equal(expected);
}

void check() {
  for (const int k_steps : {2, 3, 7}) ladder::exercise::on_every_schedule([&] { multiply(k_steps); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
