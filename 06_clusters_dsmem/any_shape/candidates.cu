/// @file
/// How many clusters of each kernel the GPU holds, without a look at the kernels.
#include "06_clusters_dsmem/any_shape/candidates.hpp"

#include <cuda_runtime.h>

#include <map>
#include <mutex>

#include "06_clusters_dsmem/any_shape/kernels.hpp"
#include "common/cuda/error.hpp"
#include "common/cuda/residency.hpp"
#include "common/cuda/warps.hpp"

namespace lesson06::any_shape {
namespace {

/// Stands for all kernels when the driver is asked how many clusters find room. The driver loads what it is
/// asked about, and to load all kernels takes long. A block of any of them fills a multiprocessor, so that
/// the size of the cluster alone decides.
__global__ void fill_multiprocessor() {}

int resident_clusters(int blocks) {
  constexpr int kThreads = 3 * ladder::kWarpgroup;
  constexpr size_t kMostSharedBytes = 227 << 10;
  return ladder::resident_clusters(fill_multiprocessor, kThreads, kMostSharedBytes, blocks);
}

}  // namespace

std::vector<Candidate> all_candidates() {
  std::vector<Candidate> all;
  for (const Plan& plan : kKernels) all.push_back({plan, resident_clusters(plan.blocks())});
  return all;
}

double memory_bytes_per_us() {
  // Remembered for each GPU: the driver takes a third of a millisecond to read the clock, which every launch
  // of another shape than the one before would wait for.
  static std::mutex mutex;
  static std::map<int, double> of_devices;
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard lock(mutex);
  if (const auto found = of_devices.find(device); found != of_devices.end()) return found->second;
  int clock_khz = 0, bus_bits = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrMemoryClockRate, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, device));
  return of_devices[device] = 2e-3 * clock_khz * (bus_bits / 8);  // two transfers a cycle
}

}  // namespace lesson06::any_shape
