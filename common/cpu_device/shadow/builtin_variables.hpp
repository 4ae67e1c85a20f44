/// @file
/// Part of the shadow of <cuda_runtime.h>: qualifiers and built-in variables.
#pragma once
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/from_source/launch_bounds.hpp"

#ifndef LADDER_REWRITES  // common/own_kernel/rewrite reads it
#define __global__
#define __device__
#endif
#define __host__
#define __constant__
#ifdef LADDER_REWRITES
// g++ refuses to inline by force what is called by a pointer, which files of others do.
#define __forceinline__ inline
#else
#define __forceinline__ inline __attribute__((always_inline))
#endif
/// Empty, and not the attribute: headers of the C++ library write `__attribute__((__noinline__))`.
#define __noinline__
#define __launch_bounds__(...) \
  __attribute__((aligned(      \
      ::cpu_device::LaunchBounds<::cpu_device::hash_of_path(__FILE__), __LINE__, __VA_ARGS__>::kAlignment)))
#define __cluster_dims__(...) \
  __attribute__((aligned(     \
      ::cpu_device::ClusterDims<::cpu_device::hash_of_path(__FILE__), __LINE__, __VA_ARGS__>::kAlignment)))
#define __grid_constant__
#define __align__(bytes) alignas(bytes)

using uint3 = cpu_device::Uint3;
using dim3 = cpu_device::Dim3;
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

// Objects, because programs give their own variables these names. For each thread of a kernel they are
// constant.
extern constinit thread_local const uint3 threadIdx, blockIdx;
extern constinit thread_local const dim3 blockDim, gridDim;
constexpr int warpSize = 32;
