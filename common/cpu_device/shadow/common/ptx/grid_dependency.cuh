/// @file
/// Shadow of common/ptx/grid_dependency.cuh. Kernels run one after the other here: nothing to wait for.
#pragma once

namespace ptx {

inline void wait_for_grid_before() {}
inline void let_next_grid_begin() {}

}  // namespace ptx
