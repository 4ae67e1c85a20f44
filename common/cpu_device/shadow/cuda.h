/// @file
/// Shadow of <cuda.h>.
#pragma once
#include "common/cpu_device/declarations/driver_api.hpp"
#include "common/cpu_device/declarations/driver_calls.hpp"
