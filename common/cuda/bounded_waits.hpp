/// @file
/// Waits at an mbarrier that give up (builds with LADDER_BOUNDED_WAITS): the host's side of
/// common/instrumented/wait_bound.cuh.
#pragma once
#include <string>

#include "common/cuda/wait_records.hpp"

namespace ladder {

/// A line for each group of neighbouring warps that waited for the same:
/// "block 17, warps 0-7 waited 2 s for pipe_lc.full[0], phase of parity 1: still pending". Empty if none gave
/// up.
std::string describe_stuck_waits(const waits::Report& report);

/// Before the first launch: tells kernels where to report, and errors of CUDA (CudaError) to add what was
/// reported. Only in the GPU build. @throws CudaError
void prepare_bounded_waits();

}  // namespace ladder
