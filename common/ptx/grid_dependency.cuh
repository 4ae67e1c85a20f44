/// @file
/// Programmatic dependent launch (sm_90): a kernel begins while the one before it in its stream still runs,
/// and itself waits before it touches that one's results. PTX ISA, "griddepcontrol". Both do nothing in a
/// kernel that was launched in the ordinary way.
#pragma once

namespace ptx {

/// `griddepcontrol.wait`: waits until the kernel before has ended and what it wrote can be read.
__device__ __forceinline__ void wait_for_grid_before() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// `griddepcontrol.launch_dependents`: the kernel after this one may begin as soon as all blocks have said so
/// (or ended) and there is room for it.
__device__ __forceinline__ void let_next_grid_begin() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace ptx
