/// @file
/// Shadow of <curand_kernel.h>: random numbers of kernels. Those of a sequence are the same in every run, and
/// not those of a GPU.
#pragma once
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

/// A counter whose values are mixed, as SplitMix64 does.
struct curandStateXORWOW {
  uint64_t counter = 0, stream = 0;
  float spare = 0;
  bool has_spare = false;
};
using curandState = curandStateXORWOW;
using curandState_t = curandStateXORWOW;
using curandStateXORWOW_t = curandStateXORWOW;
using curandStatePhilox4_32_10 = curandStateXORWOW;
using curandStatePhilox4_32_10_t = curandStateXORWOW;
using curandStateMRG32k3a = curandStateXORWOW;
using curandStateMRG32k3a_t = curandStateXORWOW;

namespace cpu_device {
inline uint64_t mixed(uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return bits ^ bits >> 31;
}
}  // namespace cpu_device

inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                        curandState* state) {
  state->stream = cpu_device::mixed(cpu_device::mixed(seed + 0x9e3779b97f4a7c15) + sequence);
  state->counter = offset;
  state->spare = 0;
  state->has_spare = false;
}
inline unsigned curand(curandState* state) {
  const uint64_t step = ++state->counter * 0x9e3779b97f4a7c15;
  return static_cast<unsigned>(cpu_device::mixed(state->stream + step) >> 32);
}
inline void skipahead(unsigned long long count, curandState* state) { state->counter += count; }
/// In 0 to 1, without the 0.
inline float curand_uniform(curandState* state) {
  return (static_cast<float>(curand(state) >> 8) + 1) * 0x1p-24f;
}
inline double curand_uniform_double(curandState* state) {
  const uint64_t high = curand(state);
  return (static_cast<double>((high << 32 | curand(state)) >> 11) + 1) * 0x1p-53;
}
inline float2 curand_normal2(curandState* state) {
  const float radius = std::sqrt(-2 * std::log(curand_uniform(state)));
  const float angle = 6.2831853f * curand_uniform(state);
  return {radius * std::sin(angle), radius * std::cos(angle)};
}
inline float curand_normal(curandState* state) {
  if (state->has_spare) {
    state->has_spare = false;
    return state->spare;
  }
  const float2 pair = curand_normal2(state);
  state->spare = pair.y;
  state->has_spare = true;
  return pair.x;
}
inline double curand_normal_double(curandState* state) {
  const double radius = std::sqrt(-2 * std::log(curand_uniform_double(state)));
  return radius * std::sin(6.283185307179586 * curand_uniform_double(state));
}
inline float curand_log_normal(curandState* state, float mean, float deviation) {
  return std::exp(mean + deviation * curand_normal(state));
}
inline uint4 curand4(curandState* state) {
  const unsigned x = curand(state), y = curand(state), z = curand(state), w = curand(state);
  return {x, y, z, w};
}
inline float4 curand_uniform4(curandState* state) {
  const float x = curand_uniform(state), y = curand_uniform(state), z = curand_uniform(state),
              w = curand_uniform(state);
  return {x, y, z, w};
}
inline float4 curand_normal4(curandState* state) {
  const float2 one = curand_normal2(state), other = curand_normal2(state);
  return {one.x, one.y, other.x, other.y};
}
