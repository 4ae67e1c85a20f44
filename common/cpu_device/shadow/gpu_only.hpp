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
cudaError_t cudaGraphAddMemAllocNode(...) CPU_DEVICE_GPU_ONLY;

// Textures and surfaces.
struct CPU_DEVICE_GPU_ONLY cudaChannelFormatDesc {};
struct CPU_DEVICE_GPU_ONLY cudaResourceDesc {};
struct CPU_DEVICE_GPU_ONLY cudaTextureDesc {};
template <class T>
T tex1Dfetch(...) CPU_DEVICE_GPU_ONLY;
template <class T>
T tex1D(...) CPU_DEVICE_GPU_ONLY;
template <class T>
T tex2D(...) CPU_DEVICE_GPU_ONLY;
template <class T>
T tex3D(...) CPU_DEVICE_GPU_ONLY;
template <class T>
T surf2Dread(...) CPU_DEVICE_GPU_ONLY;
void surf2Dwrite(...) CPU_DEVICE_GPU_ONLY;
template <class T>
int cudaCreateChannelDesc() CPU_DEVICE_GPU_ONLY;
cudaError_t cudaCreateTextureObject(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaDestroyTextureObject(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaCreateSurfaceObject(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaMallocArray(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaMalloc3DArray(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaFreeArray(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaMemcpyToArray(...) CPU_DEVICE_GPU_ONLY;
cudaError_t cudaMemcpy2DToArray(...) CPU_DEVICE_GPU_ONLY;
