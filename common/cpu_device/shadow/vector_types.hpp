/// @file
/// Part of the shadow of <cuda_runtime.h>: vector types with CUDA's sizes and alignments.
#pragma once

struct alignas(4) ushort2 {
  unsigned short x, y;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(8) float2 {
  float x, y;
};

namespace cpu_device {

/// Four numbers that are copied by one access of 16 bytes, as on a GPU. Compilers copy a plain struct in
/// parts where that suits them, and the observers would count four accesses.
template <class T>
struct alignas(16) Four {
  T x, y, z, w;

  Four() = default;
  constexpr Four(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}
  Four(const Four& other) { *this = other; }
  Four& operator=(const Four& other) {
    using Whole [[gnu::vector_size(16), gnu::may_alias]] = long long;
    *reinterpret_cast<Whole*>(this) = *reinterpret_cast<const Whole*>(&other);
    return *this;
  }
};

}  // namespace cpu_device

struct int4 : cpu_device::Four<int> {
  using Four::Four;
};
struct uint4 : cpu_device::Four<unsigned> {
  using Four::Four;
};
struct float4 : cpu_device::Four<float> {
  using Four::Four;
};

inline ushort2 make_ushort2(unsigned short x, unsigned short y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
