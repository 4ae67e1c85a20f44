/// @file
/// How many blocks of a kernel the GPU holds at one time: the grid of a persistent kernel. A shadow of this
/// header answers for the CPU device.
#pragma once
#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "common/cuda/error.hpp"

namespace ladder {
namespace detail {

/// Lets blocks of the kernel have so much dynamic shared memory on the current GPU. The driver is told once,
/// and again where more is asked for than before.
inline void allow_shared_bytes(const void* kernel, size_t shared_bytes) {
  constexpr size_t kAlwaysAllowed = 48 << 10;
  if (shared_bytes <= kAlwaysAllowed) return;
  static std::mutex mutex;
  static std::map<std::pair<int, const void*>, size_t> allowed;
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard lock(mutex);
  size_t& bytes = allowed[{device, kernel}];
  if (shared_bytes <= bytes) return;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes)));
  bytes = shared_bytes;
}

/// Asks the driver, which takes as long as a launch. See resident_clusters().
inline int ask_resident_clusters(const void* kernel, int threads, size_t shared_bytes, int blocks) {
  allow_shared_bytes(kernel, shared_bytes);
  int count = 0;
  if (blocks == 1) {
    int device = 0, multiprocessors = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, threads, shared_bytes));
    return multiprocessors * count;
  }
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&count, kernel, &config));
  return count;
}

}  // namespace detail

/// Clusters of `blocks` blocks that are resident at once on the whole GPU. There are fewer than the resident
/// blocks divided by `blocks` where a GPC's multiprocessors cannot be divided into clusters without a
/// remainder: a grid sized by that quotient would run its last clusters alone, after all others. The driver
/// is asked once for each GPU, kernel and set of resources.
/// @throws CudaError if the kernel cannot run with these resources
template <class... Params>
int resident_clusters(void (*kernel)(Params...), int threads, size_t shared_bytes, int blocks) {
  using Key = std::tuple<int, void (*)(Params...), int, size_t, int>;
  static std::mutex mutex;
  static std::map<Key, int> known;
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  const Key key(device, kernel, threads, shared_bytes, blocks);
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const int count =
      detail::ask_resident_clusters(reinterpret_cast<const void*>(kernel), threads, shared_bytes, blocks);
  known.emplace(key, count);
  return count;
}

/// Blocks that are resident at once on the whole GPU.
/// @throws CudaError if the kernel cannot run with these resources
template <class... Params>
int resident_blocks(void (*kernel)(Params...), int threads, size_t shared_bytes) {
  return resident_clusters(kernel, threads, shared_bytes, 1);
}

}  // namespace ladder
