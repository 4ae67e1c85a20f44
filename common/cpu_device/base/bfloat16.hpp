/// @file
/// Conversions between bf16 bit patterns and float, as the hardware does them.
#pragma once
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

}  // namespace cpu_device
