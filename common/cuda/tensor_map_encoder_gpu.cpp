/// @file
/// Asks the driver for its encoder of tensor maps.
#include <cuda_runtime.h>

#include <stdexcept>

#include "common/cuda/error.hpp"
#include "common/cuda/tensor_map_encoder.hpp"

namespace ladder {

TensorMapEncoder tensor_map_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  constexpr unsigned kSince = 12000;  // CUDA 12.0
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSince, cudaEnableDefault,
                                              &found));
#else
  CUDA_CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess || !function)
    throw std::runtime_error(
        "the driver does not know cuTensorMapEncodeTiled: it must be of CUDA 12 or later");
  return reinterpret_cast<TensorMapEncoder>(function);
}

}  // namespace ladder
