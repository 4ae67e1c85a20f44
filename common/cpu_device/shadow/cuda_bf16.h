/// @file
/// Shadow of <cuda_bf16.h>: bf16 with the hardware's rounding, to nearest even.
#pragma once
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/cpu_device/base/float16.hpp"

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct __nv_bfloat16 {
  unsigned short bits;

  __nv_bfloat16() = default;
  __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
  __nv_bfloat16(float value) : bits(cpu_device::float_to_bfloat16(value)) {}
  template <class Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
  __nv_bfloat16(Number value) : __nv_bfloat16(cpu_device::round_to_odd(static_cast<double>(value))) {}
  operator float() const { return cpu_device::bfloat16_to_float(bits); }
  operator __nv_bfloat16_raw() const { return {bits}; }

  static __nv_bfloat16 of_bits(unsigned short bits) { return __nv_bfloat16_raw{bits}; }
  static __nv_bfloat16 rounded(double value, cpu_device::Rounding mode) {
    return of_bits(static_cast<unsigned short>(cpu_device::round_to_bits(value, 8, 7, mode)));
  }
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return {value, value}; }

#define CPU_DEVICE_ONE __nv_bfloat16
#define CPU_DEVICE_TWO __nv_bfloat162
#define CPU_DEVICE_NAME(before, after) before##bfloat16##after
#include "common/cpu_device/shadow/sixteen_bit_functions.inc"

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0)
