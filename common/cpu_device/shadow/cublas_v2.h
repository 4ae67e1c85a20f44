/// @file
/// Shadow of <cublas_v2.h>.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "common/cpu_device/declarations/cublas_api.hpp"
