/// @file
/// Shadow of <cuda_bf16.h>: bf16 with the hardware's rounding, to nearest even.
#pragma once
#include <cuda_runtime.h>

#include <type_traits>

#include "common/cpu_device/base/bfloat16.hpp"

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct __nv_bfloat16 {
  unsigned short bits;

  __nv_bfloat16() = default;
  __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
  template <class Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
  __nv_bfloat16(Number value) : bits(cpu_device::float_to_bfloat16(static_cast<float>(value))) {}
  operator float() const { return cpu_device::bfloat16_to_float(bits); }
  operator __nv_bfloat16_raw() const { return {bits}; }
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline __nv_bfloat16 __float2bfloat16(float value) { return value; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return value; }
inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 pair) { return {pair.x, pair.y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 pair) { return {pair.x, pair.y}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline float __low2float(__nv_bfloat162 pair) { return pair.x; }
inline float __high2float(__nv_bfloat162 pair) { return pair.y; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16_raw{bits}; }
