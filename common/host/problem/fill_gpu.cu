/// @file
/// Fills matrices on the GPU.
#include "common/cuda/error.hpp"
#include "common/host/problem/fill.hpp"

namespace ladder {
namespace {

template <class Values>
__global__ void fill_kernel(__nv_bfloat16* data, size_t count, Values values) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) data[i] = values(i);
}

template <class Values>
void fill_on_gpu(__nv_bfloat16* device, size_t count, const Values& values) {
  fill_kernel<<<1024, 256>>>(device, count, values);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

void fill(__nv_bfloat16* device, size_t count, NormalValues values) { fill_on_gpu(device, count, values); }
void fill(__nv_bfloat16* device, size_t count, IntegerValues values) { fill_on_gpu(device, count, values); }

}  // namespace ladder
