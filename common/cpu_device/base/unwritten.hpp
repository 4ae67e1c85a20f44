/// @file
/// What memory holds that nothing has written yet.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace cpu_device {

constexpr int kUnwrittenNaN = 0xff;     ///< in each byte: NaN of every kind
constexpr int kUnwrittenFinite = 0x7b;  ///< in each byte: a large number of every kind, 1.3e36 as a float

/// Of the process: in each byte of fresh memory. Comparisons that NaN passes, `fabs(a - b) > eps`, find the
/// other.
inline int unwritten_byte = kUnwrittenNaN;

/// In each four bytes of fresh local variables: a signalling NaN. Copies keep it; arithmetic makes it a quiet
/// one, so what is computed from it is told from what was never written.
constexpr uint32_t kUnwrittenLocal = 0xffbffffe;
constexpr uint32_t kComputedFromUnwrittenLocal = 0xfffffffe;
/// What memory holds that nothing has written, if it is NaN; arithmetic keeps it.
constexpr uint32_t kOfUnwrittenMemory = ~uint32_t{0};

/// Do these bytes of a local variable hold what they held when the thread began?
inline bool is_unwritten_local(const void* variable, size_t bytes) {
  for (const size_t first : {0, 2}) {  // an element of two bytes is either half
    bool is = true;
    for (size_t i = 0; is && i < bytes; ++i) {
      const auto due =
          static_cast<unsigned char>(kUnwrittenLocal >> 8 * ((first + i) % sizeof kUnwrittenLocal));
      is = static_cast<const unsigned char*>(variable)[i] == due;
    }
    if (is) return true;
  }
  return false;
}

}  // namespace cpu_device
