/// @file
/// The check of exercise 02.2: every element has the bias of its column and is rounded once; nothing is
/// written outside of C.
#include EXERCISE

#include "common/exercise/check.hpp"

namespace {

/// @throws NotYet unless C is right
void multiply(int m, int n) {
  constexpr int kK = 64;
  auto a = ladder::exercise::small_integers<float>(m * kK, 1);
  auto b = ladder::exercise::small_integers<float>(kK * n, 2);
  for (float& value : a) value += 5;  // positive, so that sums need more bits than bf16 has
  for (float& value : b) value += 5;
  const std::vector<__nv_bfloat16> a_bf16(a.begin(), a.end()), b_bf16(b.begin(), b.end());
  std::vector<float> bias(n);
  for (int column = 0; column < n; ++column) bias[column] = 255.0f - 2.0f * column;
  std::vector<__nv_bfloat16> bias_bf16, expected;
  for (const float value : bias) bias_bf16.push_back(ladder::to_bf16(value));
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += a[row * kK + k] * b[k * n + column];
      expected.push_back(ladder::to_bf16(sum + ladder::to_float(bias_bf16[column])));
    }
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(a_bf16), b_device(b_bf16), bias_device(bias_bf16);
  ladder::exercise::Output<__nv_bfloat16> c("C", expected.size(), n);
  exercise::launch_gemm({.a = a_device.data(),
                         .b = b_device.data(),
                         .c = c.data(),
                         .m = m,
                         .n = n,
                         .k = kK,
                         .bias = bias_device.data()});
  c.expect_equal(expected);
}

void check() {
  multiply(64, 64);
  multiply(100, 72);
  multiply(3, 5);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
