/// @file
/// Shadow of common/cuda/launch.cuh: where waits are bounded, kernels learn first where to report.
#pragma once
#include <cuda_runtime.h>

#include <utility>

#include "common/cuda/error.hpp"
#include "common/cuda/launch_config.hpp"

#define launch plain_launch
#include_next "common/cuda/launch.cuh"
#undef launch

#ifdef LADDER_BOUNDED_WAITS
#include "common/cuda/bounded_waits.hpp"
#endif

namespace ladder {

template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const LaunchConfig& config, Args&&... args) {
#ifdef LADDER_BOUNDED_WAITS
  prepare_bounded_waits();
#endif
  plain_launch(kernel, config, std::forward<Args>(args)...);
}

}  // namespace ladder
