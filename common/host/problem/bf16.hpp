/// @file
/// bf16 on the host: the bits of a value, and conversions that a compiler can see through.
#pragma once
#include <cuda_bf16.h>

#include <bit>
#include <cstdint>

namespace ladder {

/// The 16 bits as they are.
inline uint16_t bf16_bits(__nv_bfloat16 value) { return std::bit_cast<uint16_t>(value); }
/// The value that has these bits.
inline __nv_bfloat16 bf16_from_bits(uint16_t bits) { return std::bit_cast<__nv_bfloat16>(bits); }

/// bf16 is the upper half of a float.
inline float to_float(__nv_bfloat16 value) { return std::bit_cast<float>(uint32_t{bf16_bits(value)} << 16); }

/// Rounds to nearest, ties to even; a NaN stays a NaN of its sign.
inline __nv_bfloat16 to_bf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return bf16_from_bits(static_cast<uint16_t>(bits >> 16 | 0x40));
  bits += 0x7fff + (bits >> 16 & 1);
  return bf16_from_bits(static_cast<uint16_t>(bits >> 16));
}

/// Neither infinite nor NaN: the exponent is not all ones.
inline bool is_finite(__nv_bfloat16 value) { return (bf16_bits(value) & 0x7f80) != 0x7f80; }

}  // namespace ladder
