/// @file
/// Does not compile, and must not: the compiler's errors are looked at by the test "what only a GPU has says
/// so", by the numbers of the lines.
#include <cuda_runtime.h>

namespace {

__global__ void sample(cudaTextureObject_t texture, float* values) {
  values[threadIdx.x] = tex1Dfetch<float>(texture, 0);
}

void make(cudaGraphNode_t* node) { cudaGraphAddMemAllocNode(node); }
void launch(int* memory) {
  void* arguments[] = {&memory};
  cudaLaunchKernel(reinterpret_cast<const void*>(sample), dim3(1), dim3(1), arguments);
}

}  // namespace
