/// @file
/// The check of exercise 02.5: one step and several, by every schedule, with at most two barriers a step.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"

namespace {

using exercise::kTile;

/// @throws NotYet unless C is right
void multiply(int M, int N, int K) {
  const int groups = K / kTile;
  const auto q = ladder::exercise::small_integers<float>(M * K, 1),
             b = ladder::exercise::small_integers<float>(K * N, 2);
  std::vector<float> scales(M * groups), expected(M * N);
  for (int i = 0; i < M * groups; ++i) scales[i] = static_cast<float>(1 << i % 5);
  for (int row = 0; row < M; ++row)
    for (int k = 0; k < K; ++k)
      for (int column = 0; column < N; ++column)
        expected[row * N + column] += q[row * K + k] * scales[row * groups + k / kTile] * b[k * N + column];
  const ladder::DeviceBuffer<float> q_device(q), scales_device(scales), b_device(b);
  ladder::exercise::Output<float> c("C", expected.size(), N);
  exercise::launch_gemm({q_device.data(), scales_device.data(), b_device.data(), c.data(), M, N, K});
  c.expect_equal(expected);
}

void check() {
  for (const int steps : {1, 2})
    ladder::exercise::on_every_schedule([&] { multiply(kTile, kTile, steps * kTile); });
  multiply(2 * kTile, 2 * kTile, 3 * kTile);
  constexpr int kSteps = 8;
  const auto counters = ladder::exercise::counted([] { multiply(kTile, kTile, kSteps * kTile); });
  if (!counters) return;
  ladder::exercise::expect(
      counters->block_barriers <= 2 * kSteps + 1,
      fmt::format("C is right, but {} steps execute {} barriers: two a step are enough. Between which two "
                  "can the scales be stored?",
                  kSteps, counters->block_barriers));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
