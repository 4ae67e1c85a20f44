/// @file
/// How many clusters of each size the GPU holds, and how fast its memory is, without a look at the kernels.
#include "06_clusters_dsmem/any_shape/residents.hpp"

#include <cuda_runtime.h>

#include <map>
#include <mutex>

#include "common/cuda/error.hpp"
#include "common/cuda/residency.hpp"
#include "common/cuda/warps.hpp"

namespace lesson06::any_shape {
namespace {

/// Stands for all kernels when the driver is asked how many clusters find room. A block of any of them fills
/// a multiprocessor, so that the size of the cluster alone decides.
__global__ void fill_multiprocessor() {}

Gpu ask() {
  constexpr int kThreads = 3 * ladder::kWarpgroup;
  constexpr size_t kMostSharedBytes = 227 << 10;
  Gpu gpu;
  for (int blocks = 1; blocks <= kMaxBlocks; ++blocks)
    gpu.resident[blocks] = ladder::resident_clusters(fill_multiprocessor, kThreads, kMostSharedBytes, blocks);
  int device = 0, clock_khz = 0, bus_bits = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrMemoryClockRate, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, device));
  gpu.memory_bytes_per_us = 2e-3 * clock_khz * (bus_bits / 8);  // two transfers a cycle
  return gpu;
}

}  // namespace

const Gpu& this_gpu() {
  // Remembered: the driver takes a third of a millisecond to read the memory's clock.
  static std::mutex mutex;
  static std::map<int, Gpu> of_devices;
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = of_devices.try_emplace(device);
  if (is_new) found->second = ask();
  return found->second;
}

}  // namespace lesson06::any_shape
