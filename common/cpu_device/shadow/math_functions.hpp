/// @file
/// Part of the shadow of <cuda_runtime.h>: functions of floating-point numbers. Those that are approximations
/// on a GPU are as exact here as the host's.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>

// The C library declares some of these names, and defines none that a program could call.
extern "C" {
inline float __expf(float x) noexcept { return std::exp(x); }
inline float __exp10f(float x) noexcept { return static_cast<float>(std::pow(10.0, static_cast<double>(x))); }
inline float __logf(float x) noexcept { return std::log(x); }
inline float __log2f(float x) noexcept { return std::log2(x); }
inline float __log10f(float x) noexcept { return std::log10(x); }
inline float __powf(float x, float y) noexcept { return std::pow(x, y); }
inline float __sinf(float x) noexcept { return std::sin(x); }
inline float __cosf(float x) noexcept { return std::cos(x); }
inline float __tanf(float x) noexcept { return std::tan(x); }
inline float __tanhf(float x) noexcept { return std::tanh(x); }
inline float rsqrtf(float x) noexcept { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) noexcept { return 1 / std::sqrt(x); }
}

inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
/// Into 0 to 1; NaN becomes 0.
inline float __saturatef(float x) { return x > 0 ? std::fmin(x, 1.0f) : 0.0f; }

namespace cpu_device {

/// Of numbers outside of the range it is the nearest end, of NaN 0.
template <class Whole>
Whole to_whole(double rounded) {
  using Limits = std::numeric_limits<Whole>;
  // The highest number of 64 bits is no double.
  constexpr double kLowest = static_cast<double>(Limits::min());
  const double beyond = std::ldexp(1.0, Limits::digits);
  return rounded >= kLowest && rounded < beyond ? static_cast<Whole>(rounded)
         : rounded >= beyond                    ? Limits::max()
         : rounded < kLowest                    ? Limits::min()
                                                : Whole{0};
}

}  // namespace cpu_device

inline int __float2int_rn(float x) { return cpu_device::to_whole<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return cpu_device::to_whole<int>(std::trunc(x)); }
inline int __float2int_rd(float x) { return cpu_device::to_whole<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return cpu_device::to_whole<int>(std::ceil(x)); }
inline unsigned __float2uint_rn(float x) { return cpu_device::to_whole<unsigned>(std::nearbyint(x)); }
inline unsigned __float2uint_rz(float x) { return cpu_device::to_whole<unsigned>(std::trunc(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

inline int __float_as_int(float value) {
  int bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float __int_as_float(int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline unsigned __float_as_uint(float value) { return static_cast<unsigned>(__float_as_int(value)); }
inline float __uint_as_float(unsigned bits) { return __int_as_float(static_cast<int>(bits)); }
inline long long __double_as_longlong(double value) {
  long long bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline double __longlong_as_double(long long bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
