/// @file
/// Part of the shadow of <cuda_runtime.h>: functions of bits and of whole numbers, and clocks.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>

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

/// Only the order of what reads it, not time: one more at every reading, on all threads.
inline long long clock64() {
  static std::atomic<long long> readings{0};
  return ++readings;
}
