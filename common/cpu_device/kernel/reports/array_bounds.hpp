/// @file
/// Accesses that leave the array which their line names, and stay in the block's shared memory, or near it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {

class SharedLayout;

/// What one line accesses at one place of the program.
struct SiteAccesses {
  OwnLine line;
  std::string what;  ///< "store", "load", or the operation: "TMA load"
  bool writes = false;
  size_t first = 0, last = 0;           ///< bytes of the block's shared memory
  std::vector<uint32_t> barriers = {};  ///< of an operation: where mbarriers lie, which it does not fill
};

/// "smem.a[y + 1][x] (gemm.cuh:41) leaves smem.a: ...". Empty where the line may access all these bytes, or
/// does not say which array it means: a pointer may point anywhere.
/// @param bytes of the block's shared memory
std::string explain_left_array(SharedLayout&, size_t bytes, const SiteAccesses&);

/// "; smem.b[32][0] would be there, and smem.b ends with smem.b[31][31]": of an access beyond all of shared
/// memory, by the arrays that its line names; empty if these do not tell.
/// @param offset of its first byte; negative before the block's shared memory
std::string explain_beyond_block(SharedLayout&, size_t bytes, const OwnLine&, bool writes,
                                 std::ptrdiff_t offset);

}  // namespace cpu_device
