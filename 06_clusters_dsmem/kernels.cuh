/// @file
/// The kernels of lesson 06 that are compiled.
#pragma once
#include "06_clusters_dsmem/shape.cuh"

namespace lesson06 {

/// Calls visit(Shape<...>()) for each. The list is what is worth compiling: without any of them some shapes
/// are slower (deeper/the_plan.md). On the CPU device, which takes long to compile and to run them, one of
/// each kind will do.
template <class Visit>
void visit_shapes(const Visit& visit) {
  visit(Shape<128, 256, 1, 1, 1>());
  visit(Shape<128, 256, 2, 1, 1>());
  visit(Shape<128, 192, 2, 1, 1>());
  visit(Shape<192, 128, 1, 4, 1>());
  visit(Shape<128, 128, 1, 1, 1>());
  visit(Shape<128, 128, 4, 1, 1>());
  visit(Shape<128, 128, 2, 2, 1>());
  visit(Shape<128, 128, 2, 2, 2>());
  visit(Shape<64, 256, 1, 1, 1>());
  visit(Shape<64, 128, 1, 1, 1>());
  visit(Shape<64, 128, 1, 4, 1>());
  visit(Shape<64, 128, 2, 2, 1>());
  visit(Shape<64, 128, 1, 1, 2>());
  visit(Shape<64, 128, 1, 2, 2>());
  visit(Shape<128, 64, 1, 1, 1>());
#ifndef LADDER_CPU_DEVICE
  visit(Shape<128, 256, 1, 2, 1>());
  visit(Shape<192, 128, 2, 1, 1>());
  visit(Shape<128, 128, 1, 2, 1>());
  visit(Shape<128, 128, 1, 4, 1>());
  visit(Shape<128, 128, 1, 1, 2>());
  visit(Shape<128, 128, 2, 1, 2>());
  visit(Shape<128, 128, 1, 2, 2>());
#endif
}

}  // namespace lesson06
