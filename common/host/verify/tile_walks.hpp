/// @file
/// Tiles that a block loads and stores in different orders.
#pragma once
#include <string>
#include <vector>

#include "common/cuda/unwritten_reads.hpp"
#include "common/host/verify/pattern.hpp"
#include "common/host/verify/reference.hpp"

namespace ladder {

/// Where the matrices of a product begin.
struct Matrices {
  const void *a, *b, *c;
};

/// Of small integers: which tile a block has loaded, and which it has stored in its place. Empty unless that
/// explains all of C, and each block has loaded as many tiles as it has stored.
std::string explain_by_walks(const WrongElements&, const Reference&,
                             const std::vector<WorkOfKernels::MovedBox>&, const Matrices&);

/// Which tiles the blocks of a cluster load first, if these make up no box, as they do where they share
/// tiles. Else empty.
std::string explain_by_tiles_of_cluster(const std::vector<WorkOfKernels::MovedBox>&,
                                        unsigned blocks_of_cluster, const Matrices&);

}  // namespace ladder
