// A kernel to begin from: the sum of each row of a matrix. `ladder check my_kernel.cu` runs it.
#include <cstdio>
#include <vector>

#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"

constexpr int kThreads = 128;

struct SharedStorage {  // all shared memory of a block
  float partial[kThreads];
};

__global__ void sum_rows(const float* matrix, float* sums, int columns) {
  auto& shared = ladder::shared_storage<SharedStorage>();
  const int thread = threadIdx.x;
  float sum = 0;
  for (int column = thread; column < columns; column += kThreads)
    sum += matrix[blockIdx.x * columns + column];
  shared.partial[thread] = sum;
  __syncthreads();  // leave this out, and check again
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) shared.partial[thread] += shared.partial[thread + half];
    __syncthreads();
  }
  if (thread == 0) sums[blockIdx.x] = shared.partial[0];
}

int main() {
  constexpr int kRows = 5, kColumns = 300;  // sizes that no tile divides find more
  std::vector<float> matrix(kRows * kColumns), expected(kRows);
  for (int i = 0; i < kRows * kColumns; ++i) {
    matrix[i] = i % 7 - 3;  // sums of small integers are exact
    expected[i / kColumns] += matrix[i];
  }
  ladder::DeviceBuffer<float> on_device(matrix), sums(kRows);
  ladder::launch(
      sum_rows, {.name = "sum_rows", .grid = kRows, .block = kThreads, .shared_bytes = sizeof(SharedStorage)},
      on_device.data(), sums.data(), kColumns);
  if (ladder::download(sums.data(), kRows) == expected) return 0;
  std::puts("a sum is wrong");
  return 1;  // what `ladder check` calls wrong
}
