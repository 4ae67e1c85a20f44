/// @file
/// Conversions between bit patterns of bf16 or fp16 and float, as the hardware does them, and roundings of
/// double to numbers of few bits.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace cpu_device {

inline float bfloat16_to_float(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// Rounds to nearest, ties to even; every NaN becomes 0x7fff.
inline uint16_t float_to_bfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float float16_to_float(uint16_t bits) {
  const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t wide = sign | (exponent + 112) << 23 | mantissa << 13;
  if (exponent == 31) wide |= 0x7f800000;
  float value;
  if (exponent == 0) {
    value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// Rounds to nearest, ties to even; every NaN becomes 0x7fff.
inline uint16_t float_to_float16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude >= 0x38800000) {
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23);
    return static_cast<uint16_t>(sign | rounded >> 13);
  }
  // Subnormal. The last bit of a float of 0.5 to 1 is that of the smallest fp16.
  const float shifted = std::fabs(value) + 0.5f;
  std::memcpy(&bits, &shifted, sizeof bits);
  return static_cast<uint16_t>(sign | (bits - 0x3f000000));
}

enum class Rounding { nearest, zero, down, up };

/// The bits of the number with so many bits of exponent and mantissa, subnormals and infinities as in IEEE
/// 754; every NaN has all bits set but the sign.
inline uint32_t round_to_bits(double value, int exponent_bits, int mantissa_bits, Rounding mode) {
  const uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
  const uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  if (std::isnan(value)) return infinity | ((1u << mantissa_bits) - 1);
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  const bool away = mode == Rounding::down ? sign != 0 : mode == Rounding::up && !sign;
  const int lowest = 2 - (1 << (exponent_bits - 1));
  const int exponent = std::max(std::ilogb(value), lowest);
  if (exponent > -lowest + 1) return sign | (mode == Rounding::nearest || away ? infinity : infinity - 1);
  const double scaled = std::ldexp(std::fabs(value), mantissa_bits - exponent), whole = std::floor(scaled);
  auto bits = static_cast<uint32_t>(exponent - lowest) << mantissa_bits;
  bits += static_cast<uint32_t>(mode == Rounding::nearest ? std::nearbyint(scaled)
                                                          : whole + (away && scaled > whole));
  return sign | bits;
}

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
