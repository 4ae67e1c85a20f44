/// @file
/// The check of exercise 05.2: triangles of several widths, by every schedule; and no unnecessary copies.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace {

using exercise::kTile, exercise::Work;
using ladder::exercise::NotYet;
using Matrix = std::vector<__nv_bfloat16>;

/// @throws NotYet unless c is right
void multiply(const Work& work, int blocks) {
  const int k = work.k_steps * kTile, rows = work.tiles * kTile;
  Matrix a = ladder::exercise::small_integers<__nv_bfloat16>(rows * k, 1);
  for (int i = 0; i < rows * k; ++i)
    if (i % k / kTile > i / k / kTile) a[i] = ladder::to_bf16(0);
  const Matrix b = ladder::exercise::small_integers<__nv_bfloat16>(k * kTile, 2);
  Matrix expected;
  for (int row = 0; row < rows; ++row) {
    float sums[kTile] = {};
    for (int i = 0; i < k; ++i) {
      const float a_value = ladder::to_float(a[row * k + i]);
      for (int column = 0; column < kTile; ++column)
        sums[column] += a_value * ladder::to_float(b[i * kTile + column]);
    }
    for (const float sum : sums) expected.push_back(ladder::to_bf16(sum));
  }
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(a), b_device(b);
  ladder::exercise::Output<__nv_bfloat16> c("c", expected.size(), kTile);
  exercise::launch_multiply(a_device.data(), b_device.data(), c.data(), work, blocks);
  c.expect_equal(expected);
}

/// The same; the message begins with the depth.
void multiply_named(const Work& work, int blocks) {
  ladder::exercise::in_case(
      fmt::format("with {} step(s) a tile and {} tiles for {} block(s)", work.k_steps, work.tiles, blocks),
      [&] { multiply(work, blocks); });
}

void check() {
  for (const int k_steps : {1, 3, 2, 4, 5})
    ladder::exercise::on_every_schedule([&] { multiply_named({.tiles = 5, .k_steps = k_steps}, 2); });
  constexpr Work kCounted{.tiles = 5, .k_steps = 3};
  constexpr uint64_t kEnough = 2 * (1 + 2 + 3 + 3 + 3);  // tiles of a and b
  const auto counters = ladder::exercise::counted([&] { multiply(kCounted, 2); });
  if (!counters) return;
  ladder::exercise::expect(
      counters->async_copies <= kEnough,
      fmt::format("c is right, but {} tiles are copied, where {} are enough: what do the others contain?",
                  counters->async_copies, kEnough));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 90); }
