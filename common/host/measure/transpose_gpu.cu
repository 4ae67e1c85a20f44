/// @file
/// Transposes a matrix, once for each set of inputs of a baseline: it need not be fast.
#include "common/cuda/error.hpp"
#include "common/host/measure/transpose_gpu.hpp"

namespace ladder {
namespace {

__global__ void transpose_kernel(const __nv_bfloat16* from, size_t rows, size_t columns, __nv_bfloat16* to) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * columns; i += stride)
    to[i] = from[i % rows * columns + i / rows];
}

}  // namespace

void transpose(const __nv_bfloat16* from, int rows, int columns, __nv_bfloat16* to) {
  transpose_kernel<<<4096, 256>>>(from, rows, columns, to);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace ladder
