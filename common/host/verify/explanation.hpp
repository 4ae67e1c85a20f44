/// @file
/// Which mistake would make the wrong elements what they are.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "common/host/verify/pattern.hpp"
#include "common/host/verify/reference.hpp"

namespace ladder {

/// What is known of the kernels that made C.
struct MadeBy {
  bool may_be_staged = true;    ///< they may have kept sums in shared memory
  bool loads_all_of_b = false;  ///< surely: all columns of B were read
  std::string staged_at = "";  ///< the only line at which sums were stored to shared memory; empty if unknown
  std::string zero_copies = "";    ///< a sentence on a cp.async that has read nothing; empty if there is none
  std::string multiplied_by = "";  ///< "wgmma at gemm.cuh:35"; empty if it is not known that wgmma did
  /// Surely: several warpgroups of a block took A and B from the same places in shared memory, and from no
  /// others.
  bool warpgroups_share_operands = false;
  /// The leading and the stride offset, in bytes, of wgmma's descriptors of A, with k contiguous, and of B,
  /// with n contiguous; ~0u where it is not known, or ignored.
  std::array<unsigned, 2> offsets_of_a = {~0u, ~0u}, offsets_of_b = {~0u, ~0u};
  std::string walks = "";  ///< what tile_walks.hpp says of this C
};

/// A sentence that says what would make the wrong elements: products that are missing or counted twice, K
/// tiles that were taken in place of others, elements that belong to another tile of C. What the mistake may
/// be, it says only if that explains all tiles that were looked at; else what it saw in some. Empty if
/// nothing of that explains the first tile, or if there are too few examples.
/// @param reference of the product; of rows that are not in it other tiles of C are not looked for
/// @param is_exact whether products and sums are small integers; else as close as rounding allows will do
/// @param a, b the operands of the product, all of them
std::string explain(const WrongElements& wrong, const Reference& reference, bool is_exact,
                    const std::vector<__nv_bfloat16>& a, const std::vector<__nv_bfloat16>& b,
                    const MadeBy& made_by = {});

/// Of small integers: that C was stored with another pitch, if that explains all of C; else empty.
std::string explain_pitch_of_c(const WrongElements& wrong, const Reference& reference);

}  // namespace ladder
