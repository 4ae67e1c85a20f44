# The headers of CUDA's that only include others, and which: `header: others`. Each is written to the folder generated/shadow
# of the build, which comes behind this one on the include path.
set(aliases
    "cublasLt.h: cublas_v2.h"
    "cublas_v2.h: cuda_bf16.h cuda_fp16.h cuda_runtime.h common/cpu_device/declarations/cublas_api.hpp"
    "cuda.h: common/cpu_device/declarations/driver_api.hpp common/cpu_device/declarations/driver_calls.hpp"
    "cuda/std/cstdint: cuda/std/utility"
    "cuda/std/functional: cuda/std/utility"
    "cuda/std/type_traits: cuda/std/utility"
    "cuda_pipeline.h: cuda_pipeline_primitives.h"
    "cuda_profiler_api.h: cuda_runtime.h"
    "cuda_runtime_api.h: cuda_runtime.h"
    "curand.h: cuda_runtime.h common/cpu_device/declarations/curand_api.hpp"
    "device_launch_parameters.h: cuda_runtime.h"
    "driver_types.h: cuda_runtime.h"
    "nccl.h: cuda_runtime.h common/cpu_device/declarations/nccl_api.hpp"
    "nvToolsExt.h: nvtx3/nvToolsExt.h"
    "vector_functions.h: cuda_runtime.h"
    "vector_types.h: cuda_runtime.h")
foreach(alias IN LISTS aliases)
  string(REGEX MATCHALL "[^: ]+" others "${alias}")
  list(POP_FRONT others header)
  list(TRANSFORM others REPLACE "(.+)" "#include <\\1>\n")
  string(CONCAT includes ${others})
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/shadow/${header}" CONTENT "#pragma once\n${includes}")
endforeach()
