/// @file
/// The types of kernels that are compiled with the programs.
#pragma once
#include <iterator>
#include <utility>

#include "06_clusters_dsmem/any_shape/kernels.hpp"
#include "06_clusters_dsmem/any_shape/shape.cuh"

namespace lesson06::any_shape {

template <Plan kPlan>
using ShapeOf = Shape<kPlan.tile_m, kPlan.tile_n, kPlan.cluster_m, kPlan.cluster_n, kPlan.cluster_k,
                      kPlan.stream_k, kPlan.swapped>;

/// Calls visit(Shape<...>()) for each kernel that is built in.
template <class Visit>
void visit_built_in(const Visit& visit) {
  [&]<size_t... kIndex>(std::index_sequence<kIndex...>) { (visit(ShapeOf<kBuiltIn[kIndex]>()), ...); }
  (std::make_index_sequence<std::size(kBuiltIn)>());
}

/// Calls visit(Shape<...>()) for each kernel that tests run.
template <class Visit>
void visit_tested(const Visit& visit) {
  [&]<size_t... kIndex>(std::index_sequence<kIndex...>) { (visit(ShapeOf<kCpuKernels[kIndex]>()), ...); }
  (std::make_index_sequence<std::size(kCpuKernels)>());
}

}  // namespace lesson06::any_shape
