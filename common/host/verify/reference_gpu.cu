/// @file
/// The reference on the GPU. Its arithmetic has nothing in common with that of the lessons: fp64, one thread
/// for a column, no tensor cores and no shared memory.
#include "common/cuda/device_buffer.hpp"
#include "common/host/verify/reference.hpp"

namespace ladder {
namespace {

constexpr int kThreads = 128;
constexpr int kRowsPerThread = 8;  // each element of B that is read serves eight rows

__global__ void __launch_bounds__(kThreads)
    multiply_rows(Gemm gemm, const int* rows, int row_count, double* values) {
  const int column = blockIdx.x * kThreads + threadIdx.x;
  const int first = blockIdx.y * kRowsPerThread;
  if (column >= gemm.n) return;

  const __nv_bfloat16* a[kRowsPerThread];
  for (int i = 0; i < kRowsPerThread; ++i) {
    const int row = first + i < row_count ? rows[first + i] : rows[row_count - 1];
    a[i] = gemm.a + size_t(row) * gemm.k;
  }
  double sum[kRowsPerThread] = {};
  for (int p = 0; p < gemm.k; ++p) {
    const float b = __bfloat162float(gemm.b[size_t(p) * gemm.n + column]);
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) sum[i] += double(__bfloat162float(a[i][p]) * b);
  }
  for (int i = 0; i < kRowsPerThread; ++i)
    if (first + i < row_count) values[size_t(first + i) * gemm.n + column] = sum[i];
}

}  // namespace

double affordable_products() { return 7e10; }

Reference reference_product(const Gemm& gemm, const std::vector<int>& rows) {
  DeviceBuffer<int> device_rows(rows);
  DeviceBuffer<double> values(rows.size() * gemm.n);
  // Blocks side by side in y would be limited to 65535: 524280 rows at a time.
  constexpr size_t kRowsOfLaunch = size_t{65535} * kRowsPerThread;
  for (size_t first = 0; first < rows.size(); first += kRowsOfLaunch) {
    const int count = static_cast<int>(std::min(kRowsOfLaunch, rows.size() - first));
    const dim3 grid((gemm.n + kThreads - 1) / kThreads, (count + kRowsPerThread - 1) / kRowsPerThread);
    multiply_rows<<<grid, kThreads>>>(gemm, device_rows.data() + first, count,
                                      values.data() + first * gemm.n);
    CUDA_CHECK(cudaGetLastError());
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  return {{gemm.m, gemm.n, gemm.k}, rows, download(values.data(), values.size())};
}

}  // namespace ladder
