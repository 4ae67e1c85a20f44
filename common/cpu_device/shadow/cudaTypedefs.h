/// @file
/// Shadow of <cudaTypedefs.h>: types of the driver's functions that cudaGetDriverEntryPoint finds.
#pragma once
#include <cuda.h>

using PFN_cuTensorMapEncodeTiled_v12000 = decltype(&cuTensorMapEncodeTiled);
using PFN_cuTensorMapEncodeTiled = PFN_cuTensorMapEncodeTiled_v12000;
using PFN_cuInit = decltype(&cuInit);
using PFN_cuDeviceGet = decltype(&cuDeviceGet);
using PFN_cuGetErrorString = decltype(&cuGetErrorString);
