/// @file
/// What the matrices are filled with: a function of the seed and the position alone, so that every device
/// computes the same values, in any order. Integer arithmetic up to the last step, because logarithms and
/// cosines differ between devices.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace ladder {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit of the result depends on every bit of x.
__host__ __device__ inline uint64_t hash(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Two 64-bit words would repeat between seeds if the seed were just added to the position.
__host__ __device__ inline uint64_t hash(uint64_t seed, uint64_t position) {
  return hash(hash(seed) ^ position);
}

/// Normal with mean 0 and deviation 1, as near as the sum of eight uniform numbers comes (Irwin-Hall): within
/// +-4.9.
struct NormalValues {
  uint64_t seed;

  __host__ __device__ __nv_bfloat16 operator()(uint64_t position) const {
    const uint64_t words[2] = {hash(seed, 2 * position), hash(seed, 2 * position + 1)};
    int sum = 0;
    for (uint64_t word : words)
      for (int shift = 0; shift < 64; shift += 16) sum += static_cast<int>(word >> shift & 0xffff);
    constexpr int kMean = 4 * 65535;
    constexpr float kDeviation = 53509.9f;  // sqrt(8 * (2^32 - 1) / 12)
    return __float2bfloat16(static_cast<float>(sum - kMean) * (1 / kDeviation));
  }
};

/// Whole numbers from -magnitude to magnitude, all equally likely.
struct IntegerValues {
  uint64_t seed;
  int magnitude;

  __host__ __device__ __nv_bfloat16 operator()(uint64_t position) const {
    const uint64_t choices = 2 * static_cast<uint64_t>(magnitude) + 1;
    // The upper half: a remainder of few values leaves no visible bias.
    return __float2bfloat16(
        static_cast<float>(static_cast<int>((hash(seed, position) >> 32) % choices) - magnitude));
  }
};

}  // namespace ladder
