/// @file
/// Loops whose counter is a constant, for what takes a template argument.
#pragma once
#include <cuda_runtime.h>

#include <type_traits>
#include <utility>

namespace ladder {

/// Calls body(std::integral_constant<int, i>()) for i = 0 .. kCount - 1.
template <int kCount, class Body>
__device__ __forceinline__ void unrolled(const Body& body) {
  [&]<int... kIndices>(std::integer_sequence<int, kIndices...>) {
    (body(std::integral_constant<int, kIndices>()), ...);
  }
  (std::make_integer_sequence<int, kCount>());
}

}  // namespace ladder
