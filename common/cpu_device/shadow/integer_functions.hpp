/// @file
/// Part of the shadow of <cuda_runtime.h>: functions of bits and of whole numbers, and clocks.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/instructions.hpp"

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline int __clz(int bits) { return bits ? __builtin_clz(static_cast<unsigned>(bits)) : 32; }
inline int __clzll(long long bits) {
  return bits ? __builtin_clzll(static_cast<unsigned long long>(bits)) : 64;
}
inline unsigned __brev(unsigned bits) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (bits >> i & 1) << (31 - i);
  return reversed;
}
inline unsigned long long __brevll(unsigned long long bits) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(bits))) << 32 |
         __brev(static_cast<unsigned>(bits >> 32));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (shift & 31));
}
/// Each of the lower four nibbles of `selector` chooses one of the eight bytes; its fourth bit spreads that
/// byte's sign.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const uint64_t bytes = uint64_t{high} << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned chosen = selector >> 4 * i & 15;
    auto byte = static_cast<unsigned>(bytes >> 8 * (chosen & 7) & 0xff);
    if (chosen & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}
inline int __mulhi(int a, int b) { return static_cast<int>(int64_t{a} * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
/// Of the lower 24 bits.
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __mul24(int a, int b) {
  const auto low = [](int value) {
    return static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(value) << 8) >> 8);
  };
  return static_cast<int>(static_cast<uint32_t>(low(a) * low(b)));
}

/// Where `pointer` lies in the shared window, as instructions and matrix descriptors want it. An instruction
/// names what is in no block's shared memory.
inline size_t __cvta_generic_to_shared(const void* pointer) { return cpu_device::to_shared_window(pointer); }
inline void* __cvta_shared_to_generic(size_t address) { return cpu_device::from_shared_window(address); }
inline size_t __cvta_generic_to_global(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
inline void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline long long __mul64hi(long long a, long long b) {
  __extension__ using Wide = __int128;
  return static_cast<long long>(Wide{a} * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(Wide{a} * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned sum) {
  return sum + (a < b ? static_cast<unsigned>(b) - static_cast<unsigned>(a)
                      : static_cast<unsigned>(a) - static_cast<unsigned>(b));
}
inline unsigned __usad(unsigned a, unsigned b, unsigned sum) { return sum + (a < b ? b - a : a - b); }
inline int __hadd(int a, int b) { return static_cast<int>((int64_t{a} + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((int64_t{a} + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return static_cast<unsigned>((uint64_t{a} + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) { return static_cast<unsigned>((uint64_t{a} + b + 1) >> 1); }
/// These shift by at most 32.
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

namespace cpu_device {

/// The sum and the products of four pairs of bytes, or of two of 16 bits with two bytes from `first` on.
template <class A, class B, class Sum>
Sum dot(uint32_t a, uint32_t b, Sum sum, unsigned first, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const auto one = static_cast<A>(a >> 8 * sizeof(A) * i);
    const auto other = static_cast<B>(b >> 8 * (first + i));
    sum = static_cast<Sum>(static_cast<uint32_t>(sum) +
                           static_cast<uint32_t>(static_cast<int>(one) * static_cast<int>(other)));
  }
  return sum;
}

/// Of each part of `bits` bits.
template <class Part, class Function>
unsigned of_parts(unsigned a, unsigned b, const Function& function) {
  unsigned result = 0;
  for (unsigned i = 0; i < 4; i += sizeof(Part)) {
    const auto part = static_cast<std::make_unsigned_t<Part>>(function(
        static_cast<int>(static_cast<Part>(a >> 8 * i)), static_cast<int>(static_cast<Part>(b >> 8 * i))));
    result |= static_cast<unsigned>(part) << 8 * i;
  }
  return result;
}

}  // namespace cpu_device

inline int __dp4a(int a, int b, int sum) {
  return cpu_device::dot<int8_t, int8_t>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), sum, 0, 4);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  return cpu_device::dot<uint8_t, uint8_t>(a, b, sum, 0, 4);
}
inline int __dp2a_lo(int a, int b, int sum) {
  return cpu_device::dot<int16_t, int8_t>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), sum, 0, 2);
}
inline int __dp2a_hi(int a, int b, int sum) {
  return cpu_device::dot<int16_t, int8_t>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), sum, 2, 2);
}
#define CPU_DEVICE_OF_PARTS(name, Part, result)                                     \
  inline unsigned name(unsigned a, unsigned b) {                                    \
    return cpu_device::of_parts<Part>(a, b, [](int a, int b) { return (result); }); \
  }
CPU_DEVICE_OF_PARTS(__vadd2, int16_t, a + b)
CPU_DEVICE_OF_PARTS(__vadd4, int8_t, a + b)
CPU_DEVICE_OF_PARTS(__vsub2, int16_t, a - b)
CPU_DEVICE_OF_PARTS(__vsub4, int8_t, a - b)
CPU_DEVICE_OF_PARTS(__vmaxs2, int16_t, a < b ? b : a)
CPU_DEVICE_OF_PARTS(__vmaxs4, int8_t, a < b ? b : a)
CPU_DEVICE_OF_PARTS(__vmins2, int16_t, a < b ? a : b)
CPU_DEVICE_OF_PARTS(__vmins4, int8_t, a < b ? a : b)
CPU_DEVICE_OF_PARTS(__vmaxu2, uint16_t, a < b ? b : a)
CPU_DEVICE_OF_PARTS(__vmaxu4, uint8_t, a < b ? b : a)
CPU_DEVICE_OF_PARTS(__vminu2, uint16_t, a < b ? a : b)
CPU_DEVICE_OF_PARTS(__vminu4, uint8_t, a < b ? a : b)
CPU_DEVICE_OF_PARTS(__vabsdiffu4, uint8_t, a < b ? b - a : a - b)
CPU_DEVICE_OF_PARTS(__vcmpeq4, uint8_t, a == b ? 0xff : 0)
CPU_DEVICE_OF_PARTS(__vcmpgtu4, uint8_t, a > b ? 0xff : 0)
#undef CPU_DEVICE_OF_PARTS

/// Only the order of what reads it, not time: one more at every reading, on all threads.
inline long long clock64() {
  static std::atomic<long long> readings{0};
  return ++readings;
}
