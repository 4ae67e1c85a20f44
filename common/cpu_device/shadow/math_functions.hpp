/// @file
/// Part of the shadow of <cuda_runtime.h>: functions of floating-point numbers. Those that are approximations
/// on a GPU are as exact here as the host's.
#pragma once
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

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

inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}
inline float rcbrtf(float x) { return 1 / std::cbrt(x); }
inline double rcbrt(double x) { return 1 / std::cbrt(x); }
inline double sinpi(double x) { return std::sin(M_PI * std::fmod(x, 2)); }
inline double cospi(double x) { return std::cos(M_PI * std::fmod(x, 2)); }
inline float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
inline void sincospif(float x, float* sine, float* cosine) { *sine = sinpif(x), *cosine = cospif(x); }
inline double normcdf(double x) { return std::erfc(-x * M_SQRT1_2) / 2; }
inline float normcdff(float x) { return static_cast<float>(normcdf(static_cast<double>(x))); }
inline float norm3df(float a, float b, float c) { return std::hypot(a, b, c); }
inline float norm4df(float a, float b, float c, float d) { return std::hypot(std::hypot(a, b, c), d); }
inline float rnorm3df(float a, float b, float c) { return 1 / norm3df(a, b, c); }
inline float rhypotf(float a, float b) { return 1 / std::hypot(a, b); }
/// The numbers whose error function, or its complement, is `y`: by Newton's steps.
inline double erfinv(double y) {
  if (std::fabs(y) >= 1) return y == 1 ? HUGE_VAL : y == -1 ? -HUGE_VAL : std::nan("");
  const double logarithm = std::log1p(-y * y), half = 2 / (M_PI * 0.147) + logarithm / 2;
  double x = std::copysign(std::sqrt(std::sqrt(half * half - logarithm / 0.147) - half), y);
  for (int i = 0; i < 4; ++i) x -= (std::erf(x) - y) * std::exp(x * x) * std::sqrt(M_PI) / 2;
  return x;
}
inline float erfinvf(float y) { return static_cast<float>(erfinv(static_cast<double>(y))); }
inline float erfcinvf(float y) { return static_cast<float>(erfinv(1 - static_cast<double>(y))); }
inline float normcdfinvf(float y) {
  return static_cast<float>(-M_SQRT2 * erfinv(1 - 2 * static_cast<double>(y)));
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
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double x) { return 1 / x; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
/// Clamps to [0, 1]; NaN becomes 0.
inline float __saturatef(float x) { return x > 0 ? std::fmin(x, 1.0f) : 0.0f; }

namespace cpu_device {

/// As PTX's `cvt`: values out of range are clamped. NaN becomes 0, or 1 << (width - 1) if the source is a
/// double or the result has 64 bits.
template <class Whole, class From>
Whole to_whole(From rounded) {
  using Limits = std::numeric_limits<Whole>;
  if (std::isnan(rounded)) {
    constexpr bool kZero = std::is_same_v<From, float> && sizeof(Whole) < 8;
    return kZero ? Whole{0} : static_cast<Whole>(std::make_unsigned_t<Whole>{1} << (sizeof(Whole) * 8 - 1));
  }
  // The highest number of 64 bits is no floating-point number, but the number above it is one.
  constexpr From kLowest = static_cast<From>(Limits::min());
  const From beyond = std::ldexp(From{1}, Limits::digits);
  return rounded >= beyond ? Limits::max() : rounded < kLowest ? Limits::min() : static_cast<Whole>(rounded);
}

template <class T>
T not_known_before(T value) {
  const volatile T copy = value;
  return copy;
}
/// One operation that rounds in this direction. Compilers move arithmetic across a change of the direction,
/// but not what is volatile.
template <int kDirection, class Number, class Operation, class... Operands>
Number rounded(const Operation& operation, Operands... operands) {
  const int before = std::fegetround();
  std::fesetround(kDirection);
  const volatile Number result = operation(not_known_before(operands)...);
  std::fesetround(before);
  return result;
}

}  // namespace cpu_device

#define CPU_DEVICE_ROUNDED_OF(Number, prefix, fma_name, fma, suffix, direction)                              \
  inline Number prefix##add_##suffix(Number a, Number b) {                                                   \
    return cpu_device::rounded<direction, Number>([](auto x, auto y) { return x + y; }, a, b);               \
  }                                                                                                          \
  inline Number prefix##sub_##suffix(Number a, Number b) {                                                   \
    return cpu_device::rounded<direction, Number>([](auto x, auto y) { return x - y; }, a, b);               \
  }                                                                                                          \
  inline Number prefix##mul_##suffix(Number a, Number b) {                                                   \
    return cpu_device::rounded<direction, Number>([](auto x, auto y) { return x * y; }, a, b);               \
  }                                                                                                          \
  inline Number prefix##div_##suffix(Number a, Number b) {                                                   \
    return cpu_device::rounded<direction, Number>([](auto x, auto y) { return x / y; }, a, b);               \
  }                                                                                                          \
  inline Number prefix##rcp_##suffix(Number a) {                                                             \
    return cpu_device::rounded<direction, Number>([](auto x) { return 1 / x; }, a);                          \
  }                                                                                                          \
  inline Number prefix##sqrt_##suffix(Number a) {                                                            \
    return cpu_device::rounded<direction, Number>([](auto x) { return std::sqrt(x); }, a);                   \
  }                                                                                                          \
  inline Number fma_name##_##suffix(Number a, Number b, Number c) {                                          \
    return cpu_device::rounded<direction, Number>([](auto x, auto y, auto z) { return fma(x, y, z); }, a, b, \
                                                  c);                                                        \
  }
#define CPU_DEVICE_ROUNDED_FROM(Number, name, From, suffix, direction)                                  \
  inline Number __##name##_##suffix(From from) {                                                        \
    return cpu_device::rounded<direction, Number>([](auto x) { return static_cast<Number>(x); }, from); \
  }
#define CPU_DEVICE_ROUNDED(suffix, direction)                                      \
  CPU_DEVICE_ROUNDED_OF(float, __f, __fmaf, __builtin_fmaf, suffix, direction)     \
  CPU_DEVICE_ROUNDED_OF(double, __d, __fma, __builtin_fma, suffix, direction)      \
  CPU_DEVICE_ROUNDED_FROM(float, double2float, double, suffix, direction)          \
  CPU_DEVICE_ROUNDED_FROM(float, int2float, int, suffix, direction)                \
  CPU_DEVICE_ROUNDED_FROM(float, uint2float, unsigned, suffix, direction)          \
  CPU_DEVICE_ROUNDED_FROM(float, ll2float, long long, suffix, direction)           \
  CPU_DEVICE_ROUNDED_FROM(float, ull2float, unsigned long long, suffix, direction) \
  CPU_DEVICE_ROUNDED_FROM(double, ll2double, long long, suffix, direction)         \
  CPU_DEVICE_ROUNDED_FROM(double, ull2double, unsigned long long, suffix, direction)
CPU_DEVICE_ROUNDED(rd, FE_DOWNWARD)
CPU_DEVICE_ROUNDED(ru, FE_UPWARD)
CPU_DEVICE_ROUNDED(rz, FE_TOWARDZERO)
#undef CPU_DEVICE_ROUNDED
#undef CPU_DEVICE_ROUNDED_FROM
#undef CPU_DEVICE_ROUNDED_OF

#define CPU_DEVICE_TO_WHOLE(Whole, name)                                                                 \
  inline Whole __float2##name##_rn(float x) { return cpu_device::to_whole<Whole>(std::nearbyint(x)); }   \
  inline Whole __float2##name##_rz(float x) { return cpu_device::to_whole<Whole>(std::trunc(x)); }       \
  inline Whole __float2##name##_rd(float x) { return cpu_device::to_whole<Whole>(std::floor(x)); }       \
  inline Whole __float2##name##_ru(float x) { return cpu_device::to_whole<Whole>(std::ceil(x)); }        \
  inline Whole __double2##name##_rn(double x) { return cpu_device::to_whole<Whole>(std::nearbyint(x)); } \
  inline Whole __double2##name##_rz(double x) { return cpu_device::to_whole<Whole>(std::trunc(x)); }     \
  inline Whole __double2##name##_rd(double x) { return cpu_device::to_whole<Whole>(std::floor(x)); }     \
  inline Whole __double2##name##_ru(double x) { return cpu_device::to_whole<Whole>(std::ceil(x)); }      \
  inline float __##name##2float_rn(Whole x) { return static_cast<float>(x); }                            \
  inline double __##name##2double_rn(Whole x) { return static_cast<double>(x); }
CPU_DEVICE_TO_WHOLE(int, int)
CPU_DEVICE_TO_WHOLE(unsigned, uint)
CPU_DEVICE_TO_WHOLE(long long, ll)
CPU_DEVICE_TO_WHOLE(unsigned long long, ull)
#undef CPU_DEVICE_TO_WHOLE
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
inline int __double2hiint(double value) { return static_cast<int>(__double_as_longlong(value) >> 32); }
inline int __double2loint(double value) { return static_cast<int>(__double_as_longlong(value)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(
      static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low)));
}
