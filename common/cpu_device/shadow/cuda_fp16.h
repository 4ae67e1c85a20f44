/// @file
/// Shadow of <cuda_fp16.h>: fp16 with the hardware's rounding, to nearest even.
#pragma once
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/cpu_device/base/float16.hpp"

struct __half_raw {
  unsigned short x;
};

struct __half {
  unsigned short bits;

  __half() = default;
  __half(__half_raw raw) : bits(raw.x) {}
  __half(float value) : bits(cpu_device::float_to_float16(value)) {}
  template <class Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
  __half(Number value) : __half(cpu_device::round_to_odd(static_cast<double>(value))) {}
  operator float() const { return cpu_device::float16_to_float(bits); }
  operator __half_raw() const { return {bits}; }

  static __half of_bits(unsigned short bits) { return __half_raw{bits}; }
  static __half rounded(double value, cpu_device::Rounding mode) {
    return of_bits(static_cast<unsigned short>(cpu_device::round_to_bits(value, 5, 10, mode)));
  }
};

struct alignas(4) __half2 {
  __half x, y;
};

using half = __half;
using half2 = __half2;
using nv_half = __half;
using __nv_half = __half;
using nv_half2 = __half2;

inline __half2 __half2half2(__half value) { return {value, value}; }

#define CPU_DEVICE_ONE __half
#define CPU_DEVICE_TWO __half2
#define CPU_DEVICE_NAME(before, after) before##half##after
#include "common/cpu_device/shadow/sixteen_bit_functions.inc"

#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_ZERO_FP16 __ushort_as_half(0)
