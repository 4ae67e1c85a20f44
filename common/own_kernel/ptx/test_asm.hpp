/// @file
/// For tests: asm statements as the rewritten file of a reader has them.
#pragma once
#include "common/own_kernel/ptx/asm.hpp"

/// `text`, then operands in the order of the statement.
#define PTX(text, ...)                                                       \
  do {                                                                       \
    static ::ladder::inline_ptx::Site ladder_site(text, __FILE__, __LINE__); \
    ladder_site.run(__VA_ARGS__);                                            \
  } while (false)

#define SUMS_8(d, i)                                                                                      \
  inout("+f", "", d[i]), inout("+f", "", d[i + 1]), inout("+f", "", d[i + 2]), inout("+f", "", d[i + 3]), \
      inout("+f", "", d[i + 4]), inout("+f", "", d[i + 5]), inout("+f", "", d[i + 6]),                    \
      inout("+f", "", d[i + 7])
#define SUMS_32(d) SUMS_8(d, 0), SUMS_8(d, 8), SUMS_8(d, 16), SUMS_8(d, 24)
