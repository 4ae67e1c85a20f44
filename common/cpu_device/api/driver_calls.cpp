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

struct DriverError {
  CUresult error;
  const char* name;
};
#define CPU_DEVICE_KNOWN(error) \
  { error, #error }
constexpr DriverError kDriverErrors[] = {CPU_DEVICE_KNOWN(CUDA_SUCCESS),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_INVALID_VALUE),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_OUT_OF_MEMORY),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_NOT_INITIALIZED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_NO_DEVICE),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_INVALID_DEVICE),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_NO_BINARY_FOR_GPU),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_UNSUPPORTED_LIMIT),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_INVALID_HANDLE),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_ILLEGAL_STATE),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_NOT_FOUND),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_NOT_READY),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_ILLEGAL_ADDRESS),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_LAUNCH_TIMEOUT),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_ASSERT),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_ILLEGAL_INSTRUCTION),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_MISALIGNED_ADDRESS),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_LAUNCH_FAILED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_NOT_PERMITTED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_NOT_SUPPORTED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_STREAM_CAPTURE_MERGE),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_STREAM_CAPTURE_UNJOINED),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_STREAM_CAPTURE_ISOLATION),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_CAPTURED_EVENT),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_INVALID_CLUSTER_SIZE),
                                         CPU_DEVICE_KNOWN(CUDA_ERROR_UNKNOWN)};
#undef CPU_DEVICE_KNOWN

/// The driver's name of an error; null if it has none of this number.
const char* name_of(CUresult error) {
  for (const DriverError& known : kDriverErrors) {
    if (known.error == error) return known.name;
  }
  return nullptr;
}

/// Since CUDA 10.1 the runtime and the driver number their errors alike. Errors that only the runtime has are
/// about arguments; the driver has one error for all of those.
CUresult as_driver(cudaError_t error) {
  const auto same = static_cast<CUresult>(error);
  return name_of(same) ? same : CUDA_ERROR_INVALID_VALUE;
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
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = name_of(error);
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** words) {
  if (!words) return CUDA_ERROR_INVALID_VALUE;
  *words = name_of(error) ? cudaGetErrorString(static_cast<cudaError_t>(error)) : nullptr;
  return *words ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
  if (!name || bytes < 1) return CUDA_ERROR_INVALID_VALUE;
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess) std::snprintf(name, static_cast<size_t>(bytes), "%s", properties.name);
  return as_driver(error);
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess) *bytes = properties.totalGlobalMem;
  return as_driver(error);
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
      if (!value) return CUDA_ERROR_INVALID_VALUE;
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return as_driver(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
  }
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
  if (!pointer) return CUDA_ERROR_INVALID_VALUE;
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
  // cuTensorMapEncodeTiled exists since CUDA 12.0.
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
