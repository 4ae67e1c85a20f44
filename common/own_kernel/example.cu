// A kernel to begin from: the sum of each row of a matrix. `ladder check my_kernel.cu` runs it.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

constexpr int kThreads = 128;

__global__ void sum_rows(const float* matrix, float* sums, int columns) {
  __shared__ float partial[kThreads];
  const int thread = threadIdx.x;
  float sum = 0;
  for (int column = thread; column < columns; column += kThreads)
    sum += matrix[blockIdx.x * columns + column];
  partial[thread] = sum;
  __syncthreads();  // leave this out, and check again
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  if (thread == 0) sums[blockIdx.x] = partial[0];
}

int main() {
  constexpr int kRows = 5, kColumns = 300;  // sizes that no tile divides find more
  std::vector<float> matrix(kRows * kColumns), expected(kRows), result(kRows);
  for (int i = 0; i < kRows * kColumns; ++i) {
    matrix[i] = i % 7 - 3;  // sums of small integers are exact
    expected[i / kColumns] += matrix[i];
  }
  float *on_device, *sums;
  cudaMalloc(&on_device, matrix.size() * sizeof(float));
  cudaMalloc(&sums, kRows * sizeof(float));
  cudaMemcpy(on_device, matrix.data(), matrix.size() * sizeof(float), cudaMemcpyHostToDevice);
  sum_rows<<<kRows, kThreads>>>(on_device, sums, kColumns);
  cudaMemcpy(result.data(), sums, kRows * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(on_device);
  cudaFree(sums);
  if (result == expected) return 0;
  std::puts("a sum is wrong");
  return 1;  // what `ladder check` calls wrong
}
