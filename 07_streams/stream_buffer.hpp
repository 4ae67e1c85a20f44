/// @file
/// Device memory that is allocated and freed in the order of a stream, from a pool.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "07_streams/drain.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/error.hpp"

namespace lesson07 {

/// A pool of device memory. It keeps what was freed for the next allocation, up to the release threshold.
class MemoryPool {
 public:
  /// `most_bytes`: more than that is refused with cudaErrorMemoryAllocation; 0: as much as the device has.
  explicit MemoryPool(uint64_t release_threshold = UINT64_MAX, size_t most_bytes = 0) {
    cudaMemPoolProps props{};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    CUDA_CHECK(cudaGetDevice(&props.location.id));
    props.maxSize = most_bytes;
    cudaMemPool_t pool = nullptr;
    CUDA_CHECK(cudaMemPoolCreate(&pool, &props));
    pool_.reset(pool);
    CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &release_threshold));
  }

  cudaMemPool_t get() const { return pool_.get(); }

 private:
  std::unique_ptr<CUmemPoolHandle_st, ladder::CudaDeleter<cudaMemPoolDestroy>> pool_;
};

/// An array that exists from here on in the order of the stream, until free() in the same order.
template <class T>
class StreamBuffer {
 public:
  StreamBuffer(const MemoryPool& pool, size_t size, cudaStream_t stream) : stream_(stream) {
    CUDA_CHECK(
        cudaMallocFromPoolAsync(reinterpret_cast<void**>(&data_), size * sizeof(T), pool.get(), stream));
  }
  /// Only after an error is there something left to free.
  ~StreamBuffer() {
    if (data_) quietly([&] { cudaFreeAsync(data_, stream_); });
  }
  StreamBuffer(const StreamBuffer&) = delete;
  StreamBuffer& operator=(const StreamBuffer&) = delete;

  /// Frees it after all that the stream has been given so far.
  void free() {
    CUDA_CHECK(cudaFreeAsync(data_, stream_));
    data_ = nullptr;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  cudaStream_t stream_;
};

}  // namespace lesson07
