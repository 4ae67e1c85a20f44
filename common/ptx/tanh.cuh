/// @file
/// The hyperbolic tangent in one instruction (sm_75).
#pragma once

namespace ptx {

/// `tanh.approx.f32` (PTX ISA, "tanh"): relative error up to 2^-11, an eighth of what rounding to bf16 may
/// cost. Of 1 + tanh(x) with x far below 0 the relative error is larger: leading digits cancel.
__device__ __forceinline__ float tanh_approx(float x) {
  float result;
  asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace ptx
