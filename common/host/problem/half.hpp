/// @file
/// IEEE half precision on the host, for files.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace ladder {

/// The value of the bits of an IEEE half; exact.
inline float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float magnitude = 0;
  if (exponent == 31)
    magnitude = fraction ? NAN : INFINITY;
  else
    magnitude =
        std::ldexp(static_cast<float>(exponent ? fraction + 1024 : fraction), (exponent ? exponent : 1) - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// Rounds to nearest, ties to even; too large becomes infinite.
inline uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (value != value) return sign | 0x7e00;
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520) return sign | 0x7c00;
  // The spacing of half precision at this magnitude; 2^-24 for its smallest numbers. Dividing by a power of
  // two is exact, and nearbyint rounds ties to even.
  const int exponent = magnitude < 0x1p-14f ? -14 : std::ilogb(magnitude);
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // steps is fraction + 1024 for normal numbers; a carry into the exponent comes out right by itself.
  return static_cast<uint16_t>(sign | (steps + (exponent + 14) * 1024));
}

}  // namespace ladder
