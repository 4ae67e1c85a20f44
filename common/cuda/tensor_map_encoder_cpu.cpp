/// @file
/// The CPU device's encoder of tensor maps.
#include "common/cuda/tensor_map_encoder.hpp"

namespace ladder {

TensorMapEncoder tensor_map_encoder() { return &cuTensorMapEncodeTiled; }

}  // namespace ladder
