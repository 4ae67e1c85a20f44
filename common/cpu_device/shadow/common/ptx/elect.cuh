/// @file
/// Shadows common/ptx/elect.cuh.
#pragma once
#include "common/ptx/thread_ids.cuh"

namespace ptx {

inline bool elect_one() { return ladder::lane_index() == 0; }

}  // namespace ptx
