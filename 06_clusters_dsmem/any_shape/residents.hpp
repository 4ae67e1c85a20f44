/// @file
/// What a plan must know of the GPU.
#pragma once
#include "06_clusters_dsmem/any_shape/plan.hpp"

namespace lesson06::any_shape {

/// The current GPU. Loads no kernel but a small one, and asks the driver once for each GPU.
const Gpu& this_gpu();

/// How many clusters of a built-in kernel the current GPU holds, as the driver says about that kernel, which
/// it loads. For the test that this_gpu() says the same.
int resident_clusters_of(const Plan& plan);

}  // namespace lesson06::any_shape
