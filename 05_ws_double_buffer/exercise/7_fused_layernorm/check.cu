/// @file
/// The check of exercise 05.7: against a plain computation on the host, ragged edges included; and whole
/// sectors.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"

namespace {

using ladder::to_bf16, ladder::to_float;
using ladder::exercise::expect, ladder::exercise::NotYet;
using Vector = std::vector<__nv_bfloat16>;
constexpr int kK = exercise::kTile.k;

/// factor * (-4 .. 4) + offset.
Vector random_vector(size_t size, unsigned seed, float factor, float offset = 0) {
  Vector values;
  for (const float value : ladder::exercise::small_integers<float>(size, seed))
    values.push_back(to_bf16(factor * value + offset));
  return values;
}

float gelu(float x) { return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); }

/// The layer as its definition says, rounded to bf16 between layernorm and linear as the tensor cores want
/// it.
Vector reference(const Vector& x, const Vector& gamma, const Vector& beta, const Vector& w,
                 const Vector& bias, int m, int n) {
  Vector out;
  for (int row = 0; row < m; ++row) {
    float mean = 0, variance = 0, normal[kK];
    for (int k = 0; k < kK; ++k) mean += to_float(x[row * kK + k]) / kK;
    for (int k = 0; k < kK; ++k) variance += std::pow(to_float(x[row * kK + k]) - mean, 2.0f) / kK;
    for (int k = 0; k < kK; ++k) {
      const float unit = (to_float(x[row * kK + k]) - mean) / std::sqrt(variance + exercise::kEpsilon);
      normal[k] = to_float(to_bf16(unit * to_float(gamma[k]) + to_float(beta[k])));
    }
    for (int column = 0; column < n; ++column) {
      float sum = to_float(bias[column]);
      for (int k = 0; k < kK; ++k) sum += normal[k] * to_float(w[k * n + column]);
      out.push_back(to_bf16(gelu(sum)));
    }
  }
  return out;
}

/// @throws NotYet unless out is right
void run(int m, int n) {
  const Vector x = random_vector(m * kK, 1, 1, 3), gamma = random_vector(kK, 2, 0.125f, 1);
  const Vector beta = random_vector(kK, 3, 0.0625f), w = random_vector(kK * n, 4, 0.03125f);
  const Vector bias = random_vector(n, 5, 0.25f);
  const ladder::DeviceBuffer<__nv_bfloat16> on_device[] = {
      ladder::DeviceBuffer<__nv_bfloat16>(x), ladder::DeviceBuffer<__nv_bfloat16>(gamma),
      ladder::DeviceBuffer<__nv_bfloat16>(beta), ladder::DeviceBuffer<__nv_bfloat16>(w),
      ladder::DeviceBuffer<__nv_bfloat16>(bias)};
  ladder::exercise::Output<__nv_bfloat16> out("out", static_cast<size_t>(m) * n, n);
  try {
    exercise::launch_layer({on_device[0].data(), on_device[1].data(), on_device[2].data(),
                            on_device[3].data(), on_device[4].data(), out.data(), m, n});
  } catch (const std::exception& report) {
    const std::string what = report.what(),
                      end_of_bias = fmt::format("the end of the buffer of {} bytes", 2 * n);
    if (what.find(end_of_bias) == what.npos) throw;
    throw NotYet(fmt::format("bias has {} elements, one for each column of out: {}", n, what));
  }
  constexpr float kTolerance = 0.04f;  // two roundings to bf16 and tanh.approx, for values up to about 4
  out.expect_equal(reference(x, gamma, beta, w, bias, m, n), kTolerance);
}

void check() {
  run(64, 64);
  run(70, 72);
  ladder::exercise::on_every_schedule([] { run(5, 8); });
  const auto counters = ladder::exercise::counted([] { run(64, 64); });
  if (!counters) return;
  // Sectors of 32 bytes: x and w once, gamma and beta once for each row, bias for each thread's columns.
  constexpr uint64_t kMatrices = 64 * kK * 2 * 2 / 32, kVectors = 2 * 64 * kK * 2 / 32, kBias = 4 * 32;
  constexpr uint64_t kEnough = kMatrices + kVectors + kBias;
  expect(counters->global_read_sectors <= kEnough,
         fmt::format("out is right, but warps read {} sectors, where {} are enough: is x read once, and by "
                     "neighbouring lanes?",
                     counters->global_read_sectors, kEnough));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
