/// @file
/// Does not compile, and must not: the compiler's errors are looked at by the test "what only a GPU has says
/// so", by the numbers of the lines.
#include <cuda_runtime.h>

namespace {

__global__ void reverse(int* values) {
  __shared__ int tile[32];
  tile[threadIdx.x] = values[threadIdx.x];
  values[threadIdx.x] = __dp4a(tile[31 - threadIdx.x], 1, 0);
}

int* managed(int* values) {
  cudaMallocManaged(&values, 128);
  return values;
}

}  // namespace
