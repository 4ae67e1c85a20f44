/// @file
/// The kernels for any shape that are compiled.
#pragma once
#include <iterator>
#include <utility>

#include "06_clusters_dsmem/any_shape/kernels.hpp"
#include "06_clusters_dsmem/any_shape/shape.cuh"

namespace lesson06::any_shape {

template <Plan kPlan>
using ShapeOf =
    Shape<kPlan.tile_m, kPlan.tile_n, kPlan.cluster_m, kPlan.cluster_n, kPlan.cluster_k, kPlan.stream_k>;

/// Calls visit(Shape<...>()) for each.
template <class Visit>
void visit_shapes(const Visit& visit) {
  [&]<size_t... kIndex>(std::index_sequence<kIndex...>) { (visit(ShapeOf<kKernels[kIndex]>()), ...); }
  (std::make_index_sequence<std::size(kKernels)>());
}

}  // namespace lesson06::any_shape
