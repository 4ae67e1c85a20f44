/// @file
/// What memory holds that nothing has written yet.
#pragma once

namespace cpu_device {

constexpr int kUnwrittenNaN = 0xff;     ///< in each byte: NaN of every kind
constexpr int kUnwrittenFinite = 0x7b;  ///< in each byte: a large number of every kind, 1.3e36 as a float

/// Of the process: in each byte of fresh memory. Comparisons that NaN passes, `fabs(a - b) > eps`, find the
/// other.
inline int unwritten_byte = kUnwrittenNaN;

}  // namespace cpu_device
