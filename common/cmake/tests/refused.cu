/// @file
/// Two kernels that must not compile, each where its name is defined.
#include "common/ptx/registers.cuh"

#ifdef ignored_setmaxnreg
// Without __launch_bounds__, ptxas ignores setmaxnreg and only remarks on it.
__global__ void narrow() { ptx::setmaxnreg_dec<40>(); }
#endif

#ifdef spill
// 80 values live at once, at most 32 registers a thread.
__global__ void __launch_bounds__(1024, 2) sums(const float* in, float* out) {
  constexpr int kValues = 80;
  float values[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) values[i] = in[i * blockDim.x + threadIdx.x];
#pragma unroll 1
  for (int round = 0; round < 100; ++round) {
#pragma unroll
    for (int i = 0; i < kValues; ++i) values[i] = values[i] * values[(i + 7) % kValues] + 1.0f;
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kValues; ++i) sum += values[i];
  out[threadIdx.x] = sum;
}
#endif
