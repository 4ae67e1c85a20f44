/// @file
/// The reference of the CPU device: a plain loop on the host, spread over its cores.
#include "common/host/problem/bf16.hpp"

#include <array>
#include <cstdint>

#include "common/cuda/device_buffer.hpp"
#include "common/host/base/parallel.hpp"
#include "common/host/verify/reference.hpp"

namespace ladder {
namespace {

// Separate functions with `__restrict` parameters: without aliasing the compiler can vectorise the loops.

/// c[j] += a * b[j]. A product of two bf16 values has at most 16 significant bits, so `a * b` is exact in
/// float, unless it leaves float's range.
void add_row(float a, const float* __restrict b, int64_t n, double* __restrict c) {
  for (int64_t j = 0; j < n; ++j) c[j] += a * b[j];
}

/// The same for four rows of b, one after the other: sums are loaded and stored once.
void add_four_rows(const std::array<float, 4>& a, const float* __restrict b, int64_t n,
                   double* __restrict c) {
  const float a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
  const float *b1 = b + n, *b2 = b1 + n, *b3 = b2 + n;
  for (int64_t j = 0; j < n; ++j) {
    double sum = c[j];
    sum += a0 * b[j];
    sum += a1 * b1[j];
    sum += a2 * b2[j];
    sum += a3 * b3[j];
    c[j] = sum;
  }
}

}  // namespace

double affordable_products() { return 2e9; }

Reference reference_product(const Gemm& gemm, const std::vector<int>& rows) {
  const int64_t n = gemm.n, k = gemm.k;
  const std::vector<__nv_bfloat16> host_a = download(gemm.a, size_t(gemm.m) * gemm.k);
  const std::vector<__nv_bfloat16> host_b = download(gemm.b, size_t(gemm.k) * gemm.n);
  std::vector<float> b(k * n);
  parallel_for(k * n, 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) b[i] = to_float(host_b[i]);
  });
  Reference reference{{gemm.m, gemm.n, gemm.k}, rows, std::vector<double>(rows.size() * n)};
  parallel_for(static_cast<int64_t>(rows.size()), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double* c = &reference.values[i * n];
      const __nv_bfloat16* a = &host_a[rows[i] * k];
      int64_t p = 0;
      for (; p + 4 <= k; p += 4)
        add_four_rows({to_float(a[p]), to_float(a[p + 1]), to_float(a[p + 2]), to_float(a[p + 3])}, &b[p * n],
                      n, c);
      for (; p < k; ++p) add_row(to_float(a[p]), &b[p * n], n, c);
    }
  });
  return reference;
}

}  // namespace ladder
