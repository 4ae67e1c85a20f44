/// @file
/// The host's side of the CUDA runtime on the CPU device: memory, streams and events.
#include "common/cpu_device/shadow/host_api.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

struct CUstream_st {};
struct CUevent_st {
  std::chrono::steady_clock::time_point recorded;
  bool is_recorded = false, has_time = true;
};

namespace {

constexpr size_t kAlignment = 256;  ///< what cudaMalloc guarantees

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// What cudaMalloc and cudaMallocHost gave out.
class Allocations {
 public:
  cudaError_t allocate(void** pointer, size_t bytes, int fill) {
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = nullptr;
    if (!bytes) return cudaSuccess;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > total() - used_) return cudaErrorMemoryAllocation;
    if (posix_memalign(pointer, kAlignment, bytes)) return cudaErrorMemoryAllocation;
    std::memset(*pointer, fill, bytes);
    sizes_[*pointer] = bytes;
    used_ += bytes;
    return cudaSuccess;
  }

  cudaError_t release(void* pointer) {
    if (!pointer) return cudaSuccess;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sizes_.find(pointer);
    if (found == sizes_.end()) return cudaErrorInvalidValue;
    used_ -= found->second;
    sizes_.erase(found);
    std::free(pointer);
    return cudaSuccess;
  }

  size_t free_bytes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return total() - used_;
  }

  static size_t total() {
    static const size_t bytes =
        static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) / 2 * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
  }

 private:
  std::mutex mutex_;
  std::map<void*, size_t> sizes_;
  size_t used_ = 0;
};

// Never destroyed: static objects of a program may free their buffers after this file's would be gone.
Allocations& device_memory() {
  static auto& allocations = *new Allocations;
  return allocations;
}
Allocations& host_memory() {
  static auto& allocations = *new Allocations;
  return allocations;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    default:
      break;
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorNotSupported:
      return "operation not supported";
    default:
      break;
  }
  return "unrecognized error code";
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }

// --- device -----------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

// --- memory -----------------------------------------------------------------------------------------------

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = device_memory().free_bytes();
  *total = Allocations::total();
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return result(device_memory().allocate(pointer, bytes, 0xff));
}
cudaError_t cudaFree(void* pointer) { return result(device_memory().release(pointer)); }
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return result(host_memory().allocate(pointer, bytes, 0));
}
cudaError_t cudaFreeHost(void* pointer) { return result(host_memory().release(pointer)); }

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind, cpu_device::DefaultStream) {
  if (!bytes) return cudaSuccess;
  if (!to || !from) return result(cudaErrorInvalidValue);
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t,
                            cpu_device::DefaultStream) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind, cpu_device::DefaultStream) {
  if (width > to_pitch || width > from_pitch) return result(cudaErrorInvalidValue);
  for (size_t row = 0; row < height; ++row) {
    const cudaError_t error = cudaMemcpy(static_cast<char*>(to) + row * to_pitch,
                                         static_cast<const char*>(from) + row * from_pitch, width, kind);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t bytes, cpu_device::DefaultStream) {
  if (!bytes) return cudaSuccess;
  if (!to) return result(cudaErrorInvalidValue);
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t, cpu_device::DefaultStream) {
  return cudaMemset(to, value, bytes);
}

// --- streams and events -----------------------------------------------------------------------------------

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream) return result(cudaErrorInvalidResourceHandle);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t, cpu_device::DefaultStream) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned, cpu_device::DefaultStream) {
  return result(event ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  (*event)->has_time = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!event) return result(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t, cpu_device::DefaultStream) {
  if (!event) return result(cudaErrorInvalidResourceHandle);
  event->recorded = std::chrono::steady_clock::now();
  event->is_recorded = true;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return result(event ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!start || !end || !start->is_recorded || !end->is_recorded || !start->has_time || !end->has_time) {
    return result(cudaErrorInvalidResourceHandle);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->recorded - start->recorded).count();
  return cudaSuccess;
}
