/// @file
/// Shadow of <cuda_bf16.h>: bf16 with the hardware's rounding, to nearest even.
#pragma once
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
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
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return {value, value}; }
inline __nv_bfloat162 __float2bfloat162_rn(float value) { return {value, value}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 pair) { return pair.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 pair) { return pair.y; }
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 pair) { return {pair.x, pair.x}; }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 pair) { return {pair.y, pair.y}; }
inline __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 pair) { return {pair.y, pair.x}; }
inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.x, b.x}; }
inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.y, b.y}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }

// --- arithmetic -------------------------------------------------------------------------------------------

namespace cpu_device {

/// Rounds to odd: toward zero, and the last bit is set where something was cut off. A second rounding, to
/// fewer bits, then gives what one rounding would.
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value) || std::isinf(value)) return nearest;
  const float cut =
      std::fabs(static_cast<double>(nearest)) > std::fabs(value) ? std::nextafter(nearest, 0.0f) : nearest;
  uint32_t bits;
  std::memcpy(&bits, &cut, sizeof bits);
  bits |= 1;
  float odd;
  std::memcpy(&odd, &bits, sizeof odd);
  return odd;
}

/// a + b, rounded to odd.
inline double add_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double b_there = sum - a, rest = (a - (sum - b_there)) + (b - b_there);
  if (rest == 0) return sum;
  const double cut = std::signbit(rest) == std::signbit(sum) ? sum : std::nextafter(sum, 0.0);
  uint64_t bits;
  std::memcpy(&bits, &cut, sizeof bits);
  bits |= 1;
  double odd;
  std::memcpy(&odd, &bits, sizeof odd);
  return odd;
}

}  // namespace cpu_device

inline __nv_bfloat16 __double2bfloat16(double value) { return cpu_device::round_to_odd(value); }

// float has more than twice the bits of bf16, so that a sum, product or quotient that is rounded to float and
// then to bf16 is as if it were rounded once. For a sum with a product that is not so.
inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) + static_cast<float>(b);
}
inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) - static_cast<float>(b);
}
inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) * static_cast<float>(b);
}
inline __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) / static_cast<float>(b);
}
inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  const double product = static_cast<double>(static_cast<float>(a)) * static_cast<float>(b);
  return cpu_device::round_to_odd(cpu_device::add_to_odd(product, static_cast<float>(c)));
}
inline __nv_bfloat16 __hneg(__nv_bfloat16 a) { return __ushort_as_bfloat16(a.bits ^ 0x8000); }
inline __nv_bfloat16 __habs(__nv_bfloat16 a) { return __ushort_as_bfloat16(a.bits & 0x7fff); }
inline bool __hisnan(__nv_bfloat16 a) { return std::isnan(static_cast<float>(a)); }
/// Of a number and a NaN the number; -0 is less than +0.
inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
  if (__hisnan(a) || __hisnan(b)) return std::fmax(static_cast<float>(a), static_cast<float>(b));
  if (static_cast<float>(a) == static_cast<float>(b)) return __ushort_as_bfloat16(a.bits & b.bits);
  return static_cast<float>(a) < static_cast<float>(b) ? b : a;
}
inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) {
  if (__hisnan(a) || __hisnan(b)) return std::fmin(static_cast<float>(a), static_cast<float>(b));
  if (static_cast<float>(a) == static_cast<float>(b)) return __ushort_as_bfloat16(a.bits | b.bits);
  return static_cast<float>(a) < static_cast<float>(b) ? a : b;
}
inline bool __heq(__nv_bfloat16 a, __nv_bfloat16 b) { return static_cast<float>(a) == static_cast<float>(b); }
inline bool __hlt(__nv_bfloat16 a, __nv_bfloat16 b) { return static_cast<float>(a) < static_cast<float>(b); }
inline bool __hle(__nv_bfloat16 a, __nv_bfloat16 b) { return static_cast<float>(a) <= static_cast<float>(b); }
inline bool __hgt(__nv_bfloat16 a, __nv_bfloat16 b) { return __hlt(b, a); }
inline bool __hge(__nv_bfloat16 a, __nv_bfloat16 b) { return __hle(b, a); }
/// False of a NaN.
inline bool __hne(__nv_bfloat16 a, __nv_bfloat16 b) { return __hlt(a, b) || __hlt(b, a); }

#define CPU_DEVICE_OF_PAIRS(name, of_one)                          \
  inline __nv_bfloat162 name(__nv_bfloat162 a, __nv_bfloat162 b) { \
    return {of_one(a.x, b.x), of_one(a.y, b.y)};                   \
  }
CPU_DEVICE_OF_PAIRS(__hadd2, __hadd)
CPU_DEVICE_OF_PAIRS(__hsub2, __hsub)
CPU_DEVICE_OF_PAIRS(__hmul2, __hmul)
CPU_DEVICE_OF_PAIRS(__h2div, __hdiv)
CPU_DEVICE_OF_PAIRS(__hmax2, __hmax)
CPU_DEVICE_OF_PAIRS(__hmin2, __hmin)
#undef CPU_DEVICE_OF_PAIRS
inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __nv_bfloat162 __hneg2(__nv_bfloat162 a) { return {__hneg(a.x), __hneg(a.y)}; }
inline __nv_bfloat162 __habs2(__nv_bfloat162 a) { return {__habs(a.x), __habs(a.y)}; }

// Operators of two bf16 round their result, too. They are templates lest a float take part as a bf16.
#define CPU_DEVICE_OPERATOR(op, of_one, of_two)                                         \
  template <class T, std::enable_if_t<std::is_same_v<T, __nv_bfloat16>, int> = 0>       \
  T operator op(const T& a, const T& b) {                                               \
    return of_one(a, b);                                                                \
  }                                                                                     \
  inline __nv_bfloat16& operator op##=(__nv_bfloat16& a, const __nv_bfloat16& b) {      \
    return a = of_one(a, b);                                                            \
  }                                                                                     \
  inline __nv_bfloat162 operator op(const __nv_bfloat162& a, const __nv_bfloat162& b) { \
    return of_two(a, b);                                                                \
  }                                                                                     \
  inline __nv_bfloat162& operator op##=(__nv_bfloat162& a, const __nv_bfloat162& b) {   \
    return a = of_two(a, b);                                                            \
  }
CPU_DEVICE_OPERATOR(+, __hadd, __hadd2)
CPU_DEVICE_OPERATOR(-, __hsub, __hsub2)
CPU_DEVICE_OPERATOR(*, __hmul, __hmul2)
CPU_DEVICE_OPERATOR(/, __hdiv, __h2div)
#undef CPU_DEVICE_OPERATOR
