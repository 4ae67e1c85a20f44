/// @file
/// Shadow of <curand.h>.
#pragma once
#include <cuda_runtime.h>

#include "common/cpu_device/declarations/curand_api.hpp"
