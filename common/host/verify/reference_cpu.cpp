/// @file
/// The reference of the CPU device: a plain loop on the host, spread over its cores.
#include "common/host/problem/bf16.hpp"

#include <cstdint>

#include "common/cuda/device_buffer.hpp"
#include "common/host/base/parallel.hpp"
#include "common/host/verify/reference.hpp"

namespace ladder {

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
      for (int64_t p = 0; p < k; ++p) {
        const float a = to_float(host_a[rows[i] * k + p]);
        for (int64_t j = 0; j < n; ++j) c[j] += a * b[p * n + j];
      }
    }
  });
  return reference;
}

}  // namespace ladder
