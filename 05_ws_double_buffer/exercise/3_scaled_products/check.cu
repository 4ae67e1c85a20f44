/// @file
/// The check of exercise 05.3: one lap of the ring, and several, by every schedule.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace {

using exercise::kTile;
using Matrix = std::vector<__nv_bfloat16>;

/// C with the scales of the row that is `row ^ distance`.
Matrix product(const Matrix& a, const Matrix& b, const Matrix& scales, int k_steps, int distance) {
  const int k = k_steps * kTile;
  Matrix c;
  for (int row = 0; row < kTile; ++row) {
    float sums[kTile] = {};
    for (int i = 0; i < k; ++i) {
      const float scale = ladder::to_float(scales[i / kTile * kTile + (row ^ distance)]);
      const float scaled = scale * ladder::to_float(a[row * k + i]);
      for (int column = 0; column < kTile; ++column)
        sums[column] += scaled * ladder::to_float(b[i * kTile + column]);
    }
    for (const float sum : sums) c.push_back(ladder::to_bf16(sum));
  }
  return c;
}

/// Which sums of a thread have the scales of another row, if all wrong ones do; else empty.
/// @param with_scales_of what c is with the scales of the row that is `row ^ distance`
std::string explain(const Matrix& got, const Matrix& expected,
                    const std::function<Matrix(int distance)>& with_scales_of) {
  for (int distance = 1; distance < kTile; distance *= 2) {
    const Matrix other = with_scales_of(distance);
    unsigned wrong = 0;  // bit i: of sums i, i + 4, i + 8, ... of a thread
    bool are_all = true;
    for (size_t i = 0; i < got.size() && are_all; ++i) {
      if (ladder::to_float(got[i]) == ladder::to_float(expected[i])) continue;
      are_all = ladder::to_float(got[i]) == ladder::to_float(other[i]);
      wrong |= 1u << (i / kTile % 16 / 8 * 2 + i % 2);
    }
    if (!are_all) continue;
    std::string sums;
    for (int i = 0; i < 4; ++i)
      if (wrong >> i & 1) sums += fmt::format("{}{}", sums.empty() ? "" : ", ", i);
    return fmt::format(
        "the wrong elements, which are a thread's d[i] with i % 4 = {}, have the scales of the row that is "
        "{} away: to which rows do the registers of d belong?",
        sums, distance);
  }
  return "";
}

/// @throws NotYet unless c is right
void multiply(int k_steps) {
  const int k = k_steps * kTile;
  const Matrix a = ladder::exercise::small_integers<__nv_bfloat16>(kTile * k, 1);
  const Matrix b = ladder::exercise::small_integers<__nv_bfloat16>(k * kTile, 2);
  const Matrix scales = ladder::exercise::small_integers<__nv_bfloat16>(k_steps * kTile, 3);
  const auto with_scales_of = [&](int distance) { return product(a, b, scales, k_steps, distance); };
  const Matrix expected = with_scales_of(0);
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(a), b_device(b), scales_device(scales);
  ladder::exercise::Output<__nv_bfloat16> c("c", expected.size(), kTile);
  exercise::launch_multiply(a_device.data(), b_device.data(), scales_device.data(), c.data(), k_steps);
  ladder::exercise::expect_equal_or_explain<decltype(c), __nv_bfloat16>(
      c, expected, [&](const Matrix& got) { return explain(got, expected, with_scales_of); });
}

void check() {
  for (const int k_steps : {2, 3, 7}) ladder::exercise::on_every_schedule([&] { multiply(k_steps); });
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
