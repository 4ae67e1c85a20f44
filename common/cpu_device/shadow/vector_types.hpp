/// @file
/// Part of the shadow of <cuda_runtime.h>: vector types with CUDA's sizes and alignments.
#pragma once

struct alignas(4) ushort2 {
  unsigned short x, y;
};
struct char2 {
  signed char x, y;
};
struct uchar2 {
  unsigned char x, y;
};
struct alignas(4) char4 {
  signed char x, y, z, w;
};
struct alignas(4) uchar4 {
  unsigned char x, y, z, w;
};
struct alignas(4) short2 {
  short x, y;
};
struct alignas(8) short4 {
  short x, y, z, w;
};
struct alignas(8) ushort4 {
  unsigned short x, y, z, w;
};
struct int3 {
  int x, y, z;
};
struct float3 {
  float x, y, z;
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

inline void copy_sixteen_bytes(void* to, const void* from) {
  using Whole [[gnu::vector_size(16), gnu::may_alias]] = long long;
  *static_cast<Whole*>(to) = *static_cast<const Whole*>(from);
}

/// Four numbers that are copied by one access of 16 bytes, as on a GPU. Compilers copy a plain struct in
/// parts where that suits them, and the observers would count four accesses.
template <class T>
struct alignas(16) Four {
  static_assert(sizeof(T) == 4);
  T x, y, z, w;

  Four() = default;
  constexpr Four(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}
  Four(const Four& other) { *this = other; }
  Four& operator=(const Four& other) {
    copy_sixteen_bytes(this, &other);
    return *this;
  }
};

/// The same of two of 8 bytes.
template <class T>
struct alignas(16) LongPair {
  static_assert(sizeof(T) == 8);
  T x, y;

  LongPair() = default;
  constexpr LongPair(T x, T y) : x(x), y(y) {}
  LongPair(const LongPair& other) { *this = other; }
  LongPair& operator=(const LongPair& other) {
    copy_sixteen_bytes(this, &other);
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
struct double2 : cpu_device::LongPair<double> {
  using LongPair::LongPair;
};
struct longlong2 : cpu_device::LongPair<long long> {
  using LongPair::LongPair;
};
struct ulonglong2 : cpu_device::LongPair<unsigned long long> {
  using LongPair::LongPair;
};

inline ushort2 make_ushort2(unsigned short x, unsigned short y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline char2 make_char2(signed char x, signed char y) { return {x, y}; }
inline uchar2 make_uchar2(unsigned char x, unsigned char y) { return {x, y}; }
inline char4 make_char4(signed char x, signed char y, signed char z, signed char w) { return {x, y, z, w}; }
inline uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) {
  return {x, y, z, w};
}
inline short2 make_short2(short x, short y) { return {x, y}; }
inline short4 make_short4(short x, short y, short z, short w) { return {x, y, z, w}; }
inline ushort4 make_ushort4(unsigned short x, unsigned short y, unsigned short z, unsigned short w) {
  return {x, y, z, w};
}
inline int3 make_int3(int x, int y, int z) { return {x, y, z}; }
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }
