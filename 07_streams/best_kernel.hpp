/// @file
/// The kernel that the host's pipeline is built around.
#pragma once
#include <string>

#include "07_streams/pipeline.hpp"
#include "common/host/problem/shape.hpp"

namespace lesson07 {

/// The last lesson that pays here, by what was compiled and by what the GPU has: 06 on Hopper, 05 on later
/// GPUs, 03 on earlier ones.
/// @param wishes for its knobs; those that it does not have are left out
/// @throws ladder::BadInput if there is no device
Kernel best_kernel(const ladder::Settings& wishes = {});

/// @throws std::invalid_argument if the best kernel cannot run the shape
void check_kernel(const ladder::Shape& shape);

/// Does a lesson of that number, "05", run here, and is it faster than those before it? With mma.sync instead
/// of wgmma, roles are faster only together with a ring and TMA
/// (04_warp_specialized/deeper/roles_without_wgmma.md).
bool pays_here(const std::string& number);

/// The lesson of that number, as it is.
/// @throws std::logic_error if there is none
Kernel kernel_of(const std::string& number);

}  // namespace lesson07
