/// @file
/// Moving registers between warpgroups (sm_90a).
#pragma once

namespace ptx {

// `setmaxnreg.inc/dec.sync.aligned.u32` (PTX ISA, "setmaxnreg"): this warpgroup may use kCount registers a
// thread, a multiple of 8 from 24 to 256. `inc` waits until enough have been given back. Executed by all
// warps of a warpgroup; the compiler ignores it, with warning C7508, unless the kernel has
// __launch_bounds__(threads, blocks).
// What can be moved is what the launch gave: with one block on an SM at most 65,536 / threads registers each,
// rounded down to a multiple of 8, times the threads. The remainder stays unused.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LADDER_SETMAXNREG(direction, count) \
  asm volatile("setmaxnreg." direction ".sync.aligned.u32 %0;" ::"n"(count))
#else
#define LADDER_SETMAXNREG(direction, count)
#endif

// [setmaxnreg]
/// `setmaxnreg.inc.sync.aligned.u32`: raises the registers of each thread to kCount; waits until others have
/// given them back.
template <int kCount>
__device__ __forceinline__ void setmaxnreg_inc() {
  LADDER_SETMAXNREG("inc", kCount);
}
// [setmaxnreg]
/// `setmaxnreg.dec.sync.aligned.u32`: gives back what a thread has beyond kCount registers.
template <int kCount>
__device__ __forceinline__ void setmaxnreg_dec() {
  LADDER_SETMAXNREG("dec", kCount);
}

#undef LADDER_SETMAXNREG

}  // namespace ptx
