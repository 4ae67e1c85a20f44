/// @file
/// The driver's calls, by those of the runtime, and how the runtime finds them by name.
#include "common/cpu_device/declarations/driver_calls.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "common/cpu_device/declarations/host_api.hpp"

namespace {

CUresult as_driver(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return CUDA_SUCCESS;
    case cudaErrorMemoryAllocation:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case cudaErrorInvalidDevice:
      return CUDA_ERROR_INVALID_DEVICE;
    case cudaErrorInvalidValue:
      return CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_UNKNOWN;
  }
}

void* memory_at(CUdeviceptr pointer) { return reinterpret_cast<void*>(static_cast<uintptr_t>(pointer)); }
/// Device 0 is 1, so that a context is not null.
CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(static_cast<uintptr_t>(device) + 1); }
int device_of(CUcontext context) { return static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1; }

CUresult give_context(CUcontext* context) {
  int device = 0;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  const cudaError_t error = cudaGetDevice(&device);
  *context = context_of(device);
  return as_driver(error);
}

}  // namespace

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return as_driver(cudaDriverGetVersion(version)); }

CUresult cuGetErrorName(CUresult error, const char** name) {
  struct Known {
    CUresult error;
    const char* name;
  };
  constexpr Known kKnown[] = {{CUDA_SUCCESS, "CUDA_SUCCESS"},
                              {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                              {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                              {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
                              {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
                              {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"}};
  for (const Known& known : kKnown) {
    if (known.error != error) continue;
    *name = known.name;
    return CUDA_SUCCESS;
  }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}
/// The runtime has the same words for the same numbers.
CUresult cuGetErrorString(CUresult error, const char** words) {
  *words = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int number) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (number < 0 || number >= count) return CUDA_ERROR_INVALID_DEVICE;
  *device = number;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) { return as_driver(cudaGetDeviceCount(count)); }
CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess) std::snprintf(name, static_cast<size_t>(bytes), "%s", properties.name);
  return as_driver(error);
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess) *bytes = properties.totalGlobalMem;
  return as_driver(error);
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (value && attribute >= CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED &&
      attribute != CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) {
    *value = 0;
    return CUDA_SUCCESS;
  }
  return as_driver(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
}

CUresult cuCtxCreate(CUcontext* context, unsigned, CUdevice device) {
  const cudaError_t error = cudaSetDevice(device);
  return error == cudaSuccess ? give_context(context) : as_driver(error);
}
CUresult cuCtxDestroy(CUcontext context) { return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult cuCtxGetCurrent(CUcontext* context) { return give_context(context); }
CUresult cuCtxSetCurrent(CUcontext context) {
  return context ? as_driver(cudaSetDevice(device_of(context))) : CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxSetCurrent(context); }
CUresult cuCtxPopCurrent(CUcontext* context) { return context ? give_context(context) : CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* device) { return as_driver(cudaGetDevice(device)); }
CUresult cuCtxSynchronize() { return as_driver(cudaDeviceSynchronize()); }
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = context_of(device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }

CUresult cuMemAlloc(CUdeviceptr* pointer, size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = bytes ? cudaMalloc(&memory, bytes) : cudaErrorInvalidValue;
  *pointer = reinterpret_cast<uintptr_t>(memory);
  return as_driver(error);
}
CUresult cuMemFree(CUdeviceptr pointer) { return as_driver(cudaFree(memory_at(pointer))); }
CUresult cuMemGetInfo(size_t* free, size_t* total) { return as_driver(cudaMemGetInfo(free, total)); }
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return as_driver(cudaMemcpy(memory_at(to), from, bytes, cudaMemcpyHostToDevice));
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return as_driver(cudaMemcpy(to, memory_at(from), bytes, cudaMemcpyDeviceToHost));
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return as_driver(cudaMemcpy(memory_at(to), memory_at(from), bytes, cudaMemcpyDeviceToDevice));
}
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes) {
  return as_driver(cudaMemset(memory_at(to), value, bytes));
}
CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
  const std::vector<unsigned> values(count, value);
  return cuMemcpyHtoD(to, values.data(), count * sizeof value);
}
CUresult cuStreamSynchronize(CUstream stream) { return as_driver(cudaStreamSynchronize(stream)); }

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult* result) {
  struct Known {
    std::string_view name;
    void* function;
  };
#define CPU_DEVICE_KNOWN(name) \
  { #name, reinterpret_cast < void*>(&name) }
  const Known known[] = {CPU_DEVICE_KNOWN(cuTensorMapEncodeTiled), CPU_DEVICE_KNOWN(cuInit),
                         CPU_DEVICE_KNOWN(cuDriverGetVersion),     CPU_DEVICE_KNOWN(cuDeviceGet),
                         CPU_DEVICE_KNOWN(cuDeviceGetAttribute),   CPU_DEVICE_KNOWN(cuCtxGetDevice),
                         CPU_DEVICE_KNOWN(cuGetErrorString),       CPU_DEVICE_KNOWN(cuGetErrorName)};
#undef CPU_DEVICE_KNOWN
  if (!symbol || !function) return cudaErrorInvalidValue;
  *function = nullptr;
  for (const Known& one : known) {
    if (one.name == symbol) *function = one.function;
  }
  // Maps are of CUDA 12.
  const bool is_too_old = version < 12000 && std::string_view(symbol) == "cuTensorMapEncodeTiled";
  if (is_too_old) *function = nullptr;
  if (result)
    *result = *function    ? cudaDriverEntryPointSuccess
              : is_too_old ? cudaDriverEntryPointVersionNotSufficent
                           : cudaDriverEntryPointSymbolNotFound;
  return *function ? cudaSuccess : cudaErrorSymbolNotFound;
}
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, result);
}
