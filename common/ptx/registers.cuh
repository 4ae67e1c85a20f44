/// @file
/// Moving registers between warpgroups (sm_90a; PTX ISA, "setmaxnreg"). All warps of a warpgroup execute it;
/// kCount is a multiple of 8 from 24 to 256. ptxas ignores it, and remarks that (C7508), in a kernel without
/// __launch_bounds__(threads, blocks). What can be moved is what the launch gave.
#pragma once

// Code for other GPUs goes without.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LADDER_SETMAXNREG(...) asm volatile(__VA_ARGS__)
#else
#define LADDER_SETMAXNREG(...)
#endif

namespace ptx {

// [setmaxnreg]
/// `setmaxnreg.inc.sync.aligned.u32`: waits until there are kCount registers for each thread, and takes them.
template <int kCount>
__device__ __forceinline__ void setmaxnreg_inc() {
  LADDER_SETMAXNREG("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
// [setmaxnreg]
/// `setmaxnreg.dec.sync.aligned.u32`: gives back what a thread has beyond kCount registers.
template <int kCount>
__device__ __forceinline__ void setmaxnreg_dec() {
  LADDER_SETMAXNREG("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

#undef LADDER_SETMAXNREG

}  // namespace ptx
