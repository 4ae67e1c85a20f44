/// @file
/// A variable that each of the compiled architectures begins with another value.
#include <cuda_runtime.h>

#include "common/cuda/error.hpp"
#include "common/host/device/compiled_code.hpp"

namespace ladder {
namespace {

struct Facts {
  int architecture, specific;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LADDER_SPECIFIC 1
#else
#define LADDER_SPECIFIC 0
#endif
#ifdef __CUDA_ARCH__
__device__ Facts facts = {__CUDA_ARCH__ / 10, LADDER_SPECIFIC};
#else
__device__ Facts facts;
#endif

}  // namespace

Code loaded_code() {
  Facts loaded{};
  const cudaError_t result = cudaMemcpyFromSymbol(&loaded, facts, sizeof loaded);
  // The program holds neither machine code for this GPU, nor PTX that its driver can compile.
  for (const cudaError_t nothing_to_run :
       {cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction, cudaErrorInvalidSymbol,
        cudaErrorInvalidPtx, cudaErrorUnsupportedPtxVersion, cudaErrorJitCompilationDisabled})
    if (result == nothing_to_run) {
      cudaGetLastError();  // forget it
      return {};
    }
  CUDA_CHECK(result);
  return {loaded.architecture, loaded.specific != 0};
}

}  // namespace ladder
