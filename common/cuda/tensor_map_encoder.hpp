/// @file
/// The driver's function that encodes tensor maps.
#pragma once
#include <cuda.h>

namespace ladder {

using TensorMapEncoder = decltype(&cuTensorMapEncodeTiled);

/// On the GPU it is looked up at run time: a program that is linked to the driver does not start where there
/// is none.
/// @throws std::runtime_error if the driver is too old to have it
TensorMapEncoder tensor_map_encoder();

}  // namespace ladder
