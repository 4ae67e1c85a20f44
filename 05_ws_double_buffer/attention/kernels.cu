/// @file
/// Instantiates the kernels of attention.
#include "05_ws_double_buffer/attention/kernels.hpp"

#include <fmt/core.h>

#include "05_ws_double_buffer/attention/attention.cuh"
#include "05_ws_double_buffer/attention/steps/1_one_warpgroup.cuh"
#include "05_ws_double_buffer/attention/steps/2_roles.cuh"
#include "05_ws_double_buffer/attention/steps/3_turns.cuh"
#include "05_ws_double_buffer/attention/steps/4_overlap.cuh"
#include "common/cuda/kernel_resources.hpp"

namespace lesson05::attention {
namespace {

template <auto kKernel, int kThreads, int kQueries, size_t kSharedBytes>
ladder::Resources resources() {
  return ladder::kernel_resources(kKernel, kThreads, kSharedBytes, fmt::format("{}x{}", kQueries, kDim));
}

}  // namespace

const std::vector<Step>& steps() {
#define LADDER_STEP(name) \
  name::launch, resources<name::compute, name::kThreads, name::kQueries, sizeof(name::Storage)>
  static const std::vector<Step> steps = {
      {"1", "one warpgroup, and an online softmax", LADDER_STEP(one_warpgroup)},
      {"2", "roles: a loader and two warpgroups that compute", LADDER_STEP(roles)},
      {"3", "turns at the tensor cores", LADDER_STEP(turns)},
      {"4", "a softmax beside the product with V", LADDER_STEP(overlap)},
      {"5", "causal tiles stop at the diagonal, the longest first", LADDER_STEP(causal)}};
#undef LADDER_STEP
  return steps;
}

}  // namespace lesson05::attention
