/// @file
/// What the plan chooses from.
#pragma once
#include <vector>

#include "06_clusters_dsmem/any_shape/plan.hpp"

namespace lesson06::any_shape {

/// All kernels, and how many of their clusters the current GPU holds. Loads none of them.
std::vector<Candidate> all_candidates();

/// Bytes that the current GPU's memory moves in a microsecond at most.
double memory_bytes_per_us();

/// How many clusters of one kernel the current GPU holds, as the driver says about that kernel, which it
/// loads. For the test that all_candidates() says the same.
int resident_clusters_of(const Plan& plan);

}  // namespace lesson06::any_shape
