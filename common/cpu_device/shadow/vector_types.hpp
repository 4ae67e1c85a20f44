/// @file
/// Part of the shadow of <cuda_runtime.h>: vector types with CUDA's sizes and alignments.
#pragma once

#define CPU_DEVICE_ONE(name, Type) \
  struct name##1 {                 \
    Type x;                        \
  };                               \
  inline name##1 make_##name##1(Type x) { return {x}; }
#define CPU_DEVICE_TWO(name, Type)           \
  struct alignas(2 * sizeof(Type)) name##2 { \
    Type x, y;                               \
  };                                         \
  inline name##2 make_##name##2(Type x, Type y) { return {x, y}; }
#define CPU_DEVICE_THREE(name, Type) \
  struct name##3 {                   \
    Type x, y, z;                    \
  };                                 \
  inline name##3 make_##name##3(Type x, Type y, Type z) { return {x, y, z}; }
#define CPU_DEVICE_FOUR(name, Type)                                  \
  struct alignas(sizeof(Type) < 4 ? 4 * sizeof(Type) : 16) name##4 { \
    Type x, y, z, w;                                                 \
  };                                                                 \
  inline name##4 make_##name##4(Type x, Type y, Type z, Type w) { return {x, y, z, w}; }

CPU_DEVICE_ONE(char, signed char)
CPU_DEVICE_TWO(char, signed char)
CPU_DEVICE_THREE(char, signed char)
CPU_DEVICE_FOUR(char, signed char)
CPU_DEVICE_ONE(uchar, unsigned char)
CPU_DEVICE_TWO(uchar, unsigned char)
CPU_DEVICE_THREE(uchar, unsigned char)
CPU_DEVICE_FOUR(uchar, unsigned char)
CPU_DEVICE_ONE(short, short)
CPU_DEVICE_TWO(short, short)
CPU_DEVICE_THREE(short, short)
CPU_DEVICE_FOUR(short, short)
CPU_DEVICE_ONE(ushort, unsigned short)
CPU_DEVICE_TWO(ushort, unsigned short)
CPU_DEVICE_THREE(ushort, unsigned short)
CPU_DEVICE_FOUR(ushort, unsigned short)
CPU_DEVICE_ONE(int, int)
CPU_DEVICE_TWO(int, int)
CPU_DEVICE_THREE(int, int)
CPU_DEVICE_ONE(float, float)
CPU_DEVICE_TWO(float, float)
CPU_DEVICE_THREE(float, float)
CPU_DEVICE_ONE(uint, unsigned)
CPU_DEVICE_TWO(uint, unsigned)
CPU_DEVICE_ONE(long, long)
CPU_DEVICE_TWO(long, long)
CPU_DEVICE_THREE(long, long)
CPU_DEVICE_FOUR(long, long)
CPU_DEVICE_ONE(ulong, unsigned long)
CPU_DEVICE_TWO(ulong, unsigned long)
CPU_DEVICE_THREE(ulong, unsigned long)
CPU_DEVICE_FOUR(ulong, unsigned long)
CPU_DEVICE_ONE(longlong, long long)
CPU_DEVICE_THREE(longlong, long long)
CPU_DEVICE_FOUR(longlong, long long)
CPU_DEVICE_ONE(ulonglong, unsigned long long)
CPU_DEVICE_THREE(ulonglong, unsigned long long)
CPU_DEVICE_FOUR(ulonglong, unsigned long long)
CPU_DEVICE_ONE(double, double)
CPU_DEVICE_THREE(double, double)
CPU_DEVICE_FOUR(double, double)
#undef CPU_DEVICE_ONE
#undef CPU_DEVICE_TWO
#undef CPU_DEVICE_THREE
#undef CPU_DEVICE_FOUR

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
  /// What is not given is 0, as in an aggregate.
  constexpr Four(T x, T y = 0, T z = 0, T w = 0) : x(x), y(y), z(z), w(w) {}
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
  constexpr LongPair(T x, T y = 0) : x(x), y(y) {}
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
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
struct uint4 : cpu_device::Four<unsigned> {
  using Four::Four;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
struct float4 : cpu_device::Four<float> {
  using Four::Four;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct double2 : cpu_device::LongPair<double> {
  using LongPair::LongPair;
};
inline double2 make_double2(double x, double y) { return {x, y}; }
struct longlong2 : cpu_device::LongPair<long long> {
  using LongPair::LongPair;
};
inline longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
struct ulonglong2 : cpu_device::LongPair<unsigned long long> {
  using LongPair::LongPair;
};
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }
