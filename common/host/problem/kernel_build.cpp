/// @file
/// The kernels that this was built from. A file of its own, so that another kernel recompiles only this.
#include <utility>

#include "common/host/problem/tuned_plans.hpp"
#include "ladder_kernel_builds.hpp"

namespace ladder {

std::string kernel_build(const std::string& lesson) {
  for (const auto& [name, build] : kKernelBuilds)
    if (name == lesson) return build;
  return "unknown";
}

}  // namespace ladder
