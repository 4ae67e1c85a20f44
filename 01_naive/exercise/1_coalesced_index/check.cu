/// @file
/// The check of exercise 01.1: every element is computed, and a warp reads and writes whole sectors.
#include EXERCISE

#include <fmt/core.h>

#include "common/exercise/check.hpp"

namespace {

using ladder::exercise::Output;

struct Shape {
  int m, n, k;
};

/// @throws NotYet unless C is right
void multiply(const Shape& s) {
  const auto a = ladder::exercise::small_integers<float>(s.m * s.k, 1);
  const auto b = ladder::exercise::small_integers<float>(s.k * s.n, 2);
  const std::vector<__nv_bfloat16> a_bf16(a.begin(), a.end()), b_bf16(b.begin(), b.end());
  std::vector<__nv_bfloat16> expected;
  for (int row = 0; row < s.m; ++row)
    for (int column = 0; column < s.n; ++column) {
      float sum = 0;
      for (int k = 0; k < s.k; ++k) sum += a[row * s.k + k] * b[k * s.n + column];
      expected.push_back(ladder::to_bf16(sum));
    }
  const ladder::DeviceBuffer<__nv_bfloat16> a_device(a_bf16), b_device(b_bf16);
  Output<__nv_bfloat16> c("C", expected.size(), s.n);
  exercise::launch_gemm(
      {.a = a_device.data(), .b = b_device.data(), .c = c.data(), .m = s.m, .n = s.n, .k = s.k});
  c.expect_equal(expected);
}

void check() {
  multiply({8, 96, 4});
  multiply({19, 45, 7});
  const Shape whole{16, 64, 16};
  const auto counters = ladder::exercise::counted([&] { multiply(whole); });
  if (!counters) return;
  // A warp writes 32 elements of 2 bytes, two sectors. In each step it reads two sectors of B and one of A.
  const uint64_t warps = whole.m * whole.n / 32;
  const uint64_t fewest = warps * 2 + warps * whole.k * 3;
  const uint64_t sectors = counters->global_read_sectors + counters->global_write_sectors;
  ladder::exercise::expect(sectors <= fewest,
                           fmt::format("C is right, but warps touched {} sectors of memory where {} are "
                                       "enough: which elements does one warp access?",
                                       sectors, fewest));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
