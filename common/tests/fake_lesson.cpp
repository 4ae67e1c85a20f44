/// @file
/// A lesson that multiplies on the host.
#include "common/tests/fake_lesson.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "common/cuda/device_buffer.hpp"
#include "common/host/problem/bf16.hpp"

namespace ladder::fake {
namespace {

using Matrix = std::vector<__nv_bfloat16>;

/// C, row-major. Sums are kept in fp32, as in a kernel.
Matrix product(const Gemm& gemm, const Matrix& a, const Matrix& b, int k, bool round_sums) {
  Matrix c(size_t(gemm.m) * gemm.n);
  for (int row = 0; row < gemm.m; ++row)
    for (int column = 0; column < gemm.n; ++column) {
      float sum = 0;
      for (int p = 0; p < k; ++p) {
        sum += to_float(a[size_t(row) * gemm.k + p]) * to_float(b[(size_t(p) * gemm.n + column) % b.size()]);
        if (round_sums) sum = to_float(to_bf16(sum));
      }
      c[size_t(row) * gemm.n + column] = to_bf16(sum);
    }
  return c;
}

void write(__nv_bfloat16* device, const __nv_bfloat16* values, size_t count) {
  ladder::copy_to_device(device, values, count * sizeof(__nv_bfloat16));
}

}  // namespace

void multiply(const Gemm& gemm, Mistake mistake) {
  if (mistake == Mistake::writes_nothing) return;
  const Matrix a = download(gemm.a, size_t(gemm.m) * gemm.k);
  const Matrix b = mistake == Mistake::a_in_place_of_b ? a : download(gemm.b, size_t(gemm.k) * gemm.n);
  const int k = mistake == Mistake::forgets_last_column ? gemm.k - 1 : gemm.k;
  Matrix c = product(gemm, a, b, k, mistake == Mistake::rounds_sums_early);

  if (mistake == Mistake::one_wrong_element) c.back() = to_bf16(to_float(c.back()) + 1);
  if (mistake == Mistake::one_nan) c[c.size() / 2] = to_bf16(NAN);
  if (mistake == Mistake::shifted_tile)
    for (int row = 0; row < std::min(gemm.m, 8); ++row)
      std::rotate(&c[row * gemm.n + 8], &c[row * gemm.n + 9], &c[row * gemm.n + 16]);
  write(gemm.c, c.data(), c.size());

  const __nv_bfloat16 stray = to_bf16(1);
  if (mistake == Mistake::writes_behind) write(gemm.c + c.size(), &stray, 1);
  if (mistake == Mistake::writes_before) write(gemm.c - 1, &stray, 1);
}

const Lesson& lesson() {
  static const Lesson fake = [] {
    Lesson l;
    l.name = "99_fake";
    l.idea = "the host multiplies";
    l.knobs = {{"slots", "how many", {"2", "1", "3"}},
               {"core", "which", {"auto", "fma"}},
               {"mistake", "whether to make one", {"no", "yes"}}};
    l.rungs = {{"fake, CUDA cores", {{"core", "fma"}}}, {"fake, three slots", {{"slots", "3"}}}};
    l.check = [](const Gemm& gemm, const Settings&) {
      if (gemm.n % 2)
        throw std::invalid_argument("n is " + std::to_string(gemm.n) + "; must be a multiple of 2");
      if (gemm.k % 2)
        throw std::invalid_argument("k is " + std::to_string(gemm.k) + "; must be a multiple of 2");
    };
    l.launch = [check = l.check](const Gemm& gemm, const Settings& settings, cudaStream_t) {
      check(gemm, settings);
      multiply(gemm, settings.at("mistake") == "yes" ? Mistake::one_wrong_element : Mistake::none);
    };
    return l;
  }();
  return fake;
}

}  // namespace ladder::fake
