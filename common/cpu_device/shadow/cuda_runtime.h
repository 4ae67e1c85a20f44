/// @file
/// Shadow of <cuda_runtime.h> for the CPU device: what lessons and the shared module use of it, in plain C++.
/// `__shared__` is missing on purpose: the blocks of a cluster run on one OS thread, so a static variable
/// would belong to all of them. Lessons keep one struct in dynamic shared memory.
#pragma once
// What nvcc includes by itself.
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "common/cpu_device/declarations/host_api.hpp"
#include "common/cpu_device/shadow/atomic_functions.hpp"
#include "common/cpu_device/shadow/builtin_variables.hpp"
#include "common/cpu_device/shadow/cached_accesses.hpp"
#include "common/cpu_device/shadow/device_functions.hpp"
#include "common/cpu_device/shadow/gpu_only.hpp"
#include "common/cpu_device/shadow/integer_functions.hpp"
#include "common/cpu_device/shadow/launch_functions.hpp"
#include "common/cpu_device/shadow/math_functions.hpp"
#include "common/cpu_device/shadow/min_max.hpp"
#include "common/cpu_device/shadow/observed_copies.hpp"
#include "common/cpu_device/shadow/vector_types.hpp"

// Headers of others ask for these before they declare what is for CUDA.
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __DRIVER_TYPES_H__
