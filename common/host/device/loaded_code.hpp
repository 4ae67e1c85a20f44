/// @file
/// Asks the code that the driver has loaded what it was compiled for. Only in the GPU build.
#pragma once
#include "common/host/device/compiled_code.hpp"

namespace ladder {

/// Of the current GPU; architecture 0 if the program holds nothing that this GPU runs.
/// @throws CudaError for any other failure
Code loaded_code();

}  // namespace ladder
