/// @file
/// Shadow of <nccl.h>.
#pragma once
#include <cuda_runtime.h>

#include "common/cpu_device/declarations/nccl_api.hpp"
