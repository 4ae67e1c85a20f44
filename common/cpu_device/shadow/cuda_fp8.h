/// @file
/// Shadow of <cuda_fp8.h>: values of kind e4m3, which can be read. Nothing here rounds to fp8.
#pragma once
#include <cuda_runtime.h>

#include <cmath>
#include <limits>

using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x4_storage_t = unsigned;

/// A sign, 4 bits of exponent with bias 7, 3 bits of mantissa. There are subnormals and NaN, no infinities.
struct __nv_fp8_e4m3 {
  __nv_fp8_storage_t __x;

  explicit operator float() const {
    const int exponent = __x >> 3 & 15, mantissa = __x & 7;
    if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
    const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                          : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    return __x & 0x80 ? -magnitude : magnitude;
  }
};

/// Four of them; the first is in the lowest byte.
struct alignas(4) __nv_fp8x4_e4m3 {
  __nv_fp8x4_storage_t __x;

  explicit operator float4() const {
    const auto value = [this](int i) {
      return static_cast<float>(__nv_fp8_e4m3{static_cast<__nv_fp8_storage_t>(__x >> 8 * i)});
    };
    return {value(0), value(1), value(2), value(3)};
  }
};
