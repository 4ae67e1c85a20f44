/// @file
/// The check of exercise 03.2: sizes that are no multiple of the grid, blocks of any size, negative numbers
/// in all places, and copies that overlap.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"

namespace {

using ladder::exercise::expect, ladder::exercise::small_integers;

/// @throws NotYet unless out is right
void run(int n, int blocks, int threads, float scale) {
  const auto q = small_integers<float>(n, 1), k = small_integers<float>(n, 2),
             v = small_integers<float>(n, 3);
  std::vector<float> expected;  // + 0, so that no message calls a 0 -0
  for (int i = 0; i < n; ++i) expected.push_back(std::max((q[i] * k[i]) * scale, 0.0f) * v[i] + 0.0f);
  const ladder::DeviceBuffer<float> q_device(q), k_device(k), v_device(v);
  ladder::exercise::Output<float> out("out", n);
  exercise::launch_staged(q_device.data(), k_device.data(), v_device.data(), out.data(), scale, n, blocks,
                          threads);
  out.expect_equal(expected, 0,
                   {{"each of them is relu(q * k) * scale * v, and scale is negative: apply relu after it",
                     [&](size_t i) { return std::max(q[i] * k[i], 0.0f) * scale * v[i]; }},
                    {"each of them is relu((q * k) * scale * v): apply relu before the product with v",
                     [&](size_t i) { return std::max((q[i] * k[i]) * scale * v[i], 0.0f); }}});
}

void check() {
  struct Grid {
    int blocks, threads;
    float scale = 0.5f;
  };
  for (const Grid grid : {Grid{1, 64}, Grid{2, 96, -0.5f}, Grid{3, 33}, Grid{1, 512}})
    for (const int n : {300, 1})
      ladder::exercise::on_every_schedule([&] { run(n, grid.blocks, grid.threads, grid.scale); });
  ladder::exercise::on_every_block_order([] { run(300, 2, 96, 0.5f); });  // no two write the same element
  constexpr int kThreads = 32, kRounds = 32,
                kLatency = 700;  // cycles of the CPU device's clock that a copy takes
  const auto counters = ladder::exercise::counted([&] { run(kRounds * kThreads, 1, kThreads, 0.5f); });
  if (!counters) return;
  expect(counters->async_copies > 0,
         "out is right, but nothing was copied asynchronously: start the next copies first");
  expect(counters->cycles < 0.75 * kRounds * kLatency,
         fmt::format("out is right, but {} iterations take {} cycles, and a copy alone {}: which batches are "
                     "in flight while you wait? Start the next copies before you wait for these",
                     kRounds, static_cast<int>(counters->cycles), kLatency));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
