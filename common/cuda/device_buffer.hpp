/// @file
/// Memory of the device that frees itself.
#pragma once
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/cuda/error.hpp"

namespace ladder {

/// The device has less memory than a problem needs.
struct OutOfDeviceMemory : std::runtime_error {
  explicit OutOfDeviceMemory(size_t bytes)
      : std::runtime_error("out of device memory: could not get " + std::to_string(bytes) +
                           " bytes; choose a smaller size") {}
};

/// Copies `bytes` from any memory to device memory (or pinned memory), and waits until they have arrived:
/// streams of any kind may read them then.
///
/// cudaMemcpy does not do that. From pageable memory it returns as soon as the data lies in a staging buffer
/// of the driver, whose copy to the device may still be under way, and cudaMemset does not wait at all. Work
/// of the legacy default stream and of blocking streams comes after both. A stream made with
/// cudaStreamNonBlocking does not, and reads what was there before. So the host waits for the stream that the
/// copy is in: the legacy one, where cudaMemcpy puts it, too, so that the order with everything else stays
/// what it was. (An event and a cudaStreamWaitEvent would save the host's wait, but whoever uploads does not
/// know all that will read.)
inline void copy_to_device(void* to, const void* from, size_t bytes) {
  CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamLegacy));
  CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
}

/// Sets each byte, and waits until that is done, for the same reason.
inline void fill_on_device(void* to, int value, size_t bytes) {
  CUDA_CHECK(cudaMemsetAsync(to, value, bytes, cudaStreamLegacy));
  CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
}

/// An array of `size()` elements in device memory, not initialised.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;

  /// @throws OutOfDeviceMemory
  explicit DeviceBuffer(size_t size) : size_(size) {
    const cudaError_t result = cudaMalloc(reinterpret_cast<void**>(&data_), size * sizeof(T));
    if (result == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // Forget it: the next call succeeds.
      throw OutOfDeviceMemory(size * sizeof(T));
    }
    CUDA_CHECK(result);
  }
  explicit DeviceBuffer(const std::vector<T>& values) : DeviceBuffer(values.size()) { upload(values); }

  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }

  /// Copies all values, of which there are at most size(), to the beginning; waits until they have
  /// arrived, so that any stream may read them.
  void upload(const std::vector<T>& values) {
    copy_to_device(data_, values.data(), values.size() * sizeof(T));
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

/// A copy on the host of `count` elements of device memory.
template <class T>
std::vector<T> download(const T* device, size_t count) {
  std::vector<T> values(count);
  CUDA_CHECK(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

}  // namespace ladder
