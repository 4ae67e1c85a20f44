/// @file
/// Programmatic dependent launch (PDL, sm_90): a kernel begins while the kernel before it in its stream still
/// runs, and waits by itself before it touches that kernel's results. PTX ISA, "griddepcontrol". The launch
/// of the second kernel asks for it (LaunchConfig::pdl); how the first was launched does not matter.
#pragma once

namespace ptx {

/// `griddepcontrol.wait`: waits until the kernel before has ended and its writes are visible to this grid. A
/// kernel that was launched in the ordinary way goes on at once.
__device__ __forceinline__ void griddepcontrol_wait() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// `griddepcontrol.launch_dependents`: the next kernel, if it asks for it, may begin as soon as all blocks
/// have executed this (or ended) and there is room for it.
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace ptx
