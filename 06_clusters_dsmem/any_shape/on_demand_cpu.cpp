/// @file
/// The CPU device runs the kernels that it was built with.
#include <stdexcept>

#include "06_clusters_dsmem/any_shape/on_demand.hpp"

namespace lesson06::any_shape {

bool compiles_on_demand() { return false; }

const void* kernel_on_demand(const Plan& plan, const std::string&) {
  throw std::logic_error("no kernel is compiled on demand on the CPU device: " + plan.name());
}

void launch_on_demand(const void*, const ladder::LaunchConfig&, const void* const*) {
  throw std::logic_error("no kernel is compiled on demand on the CPU device");
}

}  // namespace lesson06::any_shape
