/// @file
/// Part of the shadow of <cuda_runtime.h>: names of CUDA that the CPU device does not have. Whoever uses one
/// reads that in the compiler's error, instead of that there is no such name.
#pragma once
#include "common/cpu_device/declarations/host_types.hpp"

#define CPU_DEVICE_GPU_ONLY __attribute__((unavailable("it exists on a GPU, not on the CPU device")))

#ifndef LADDER_REWRITES  // common/own_kernel/rewrite makes something of it
#define __shared__                                                                                \
  __attribute__((                                                                                 \
      unavailable("__shared__ variables exist on a GPU, not on the CPU device: keep a struct in " \
                  "ladder::shared_storage<>()")))
#endif
#define __managed__ \
  __attribute__((unavailable("__managed__ variables exist on a GPU, not on the CPU device")))

// Kernels.

// The host.
using cudaSurfaceObject_t CPU_DEVICE_GPU_ONLY = unsigned long long;
using cudaTextureObject_t CPU_DEVICE_GPU_ONLY = unsigned long long;
cudaError_t cudaStreamSetAttribute(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaGraphCreate(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaGraphAddKernelNode(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaGraphAddMemcpyNode(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaGraphAddHostNode(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaGraphExecUpdate(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaGraphUpload(...) CPU_DEVICE_GPU_ONLY;
