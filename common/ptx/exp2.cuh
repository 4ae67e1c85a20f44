/// @file
/// Two to a power in one instruction (sm_20).
#pragma once

namespace ptx {

/// `ex2.approx.ftz.f32` (PTX ISA, "ex2"): relative error up to 2^-22; of minus infinity 0. A multiprocessor
/// computes 16 in a clock. exp2f() takes three instructions more, for results below 2^-126, which are 0 here.
__device__ __forceinline__ float exp2_approx(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace ptx
