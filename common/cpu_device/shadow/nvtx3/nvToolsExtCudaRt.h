/// @file
/// Shadow of <nvtx3/nvToolsExtCudaRt.h>: names that a profiler would show.
#pragma once
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

inline void nvtxNameCudaDeviceA(int, const char*) {}
inline void nvtxNameCudaStreamA(cudaStream_t, const char*) {}
inline void nvtxNameCudaEventA(cudaEvent_t, const char*) {}
