/// @file
/// The kernel's headers as text.
#pragma once
#include <utility>
#include <vector>

namespace lesson06::any_shape {

/// Name and text of gemm.cuh and of all headers of the repository that it includes.
extern const std::vector<std::pair<const char*, const char*>> kKernelHeaders;

}  // namespace lesson06::any_shape
