/// @file
/// Devices: how many, which one, what they can do, and what the program holds.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/streams/memory_pool.hpp"

namespace cpu_device {
namespace {

thread_local int chosen_device = 0;

size_t device_bytes() {
  static const size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) / 2 * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes / static_cast<size_t>(device_count());
}

bool exists(int device) { return device >= 0 && device < device_count(); }

}  // namespace

int device_count() {
  const char* text = std::getenv("LADDER_CPU_DEVICES");
  return text ? std::clamp(std::atoi(text), 1, kMostDevices) : 1;
}

int current_device() { return chosen_device; }

size_t free_device_bytes(int device) {
  const size_t used = streams().device(device).used_bytes;
  return device_bytes() - std::min(device_bytes(), used);
}

bool may_access(int device, const Allocation& allocation) {
  if (allocation.device == device) return true;
  return allocation.pool ? allocation.pool->accessible_from.count(device) != 0
                         : streams().device(device).peers.count(allocation.device) != 0;
}

LiveResources live_resources() {
  StreamEngine& engine = streams();
  const std::lock_guard<std::recursive_mutex> lock(engine.mutex);
  LiveResources live;
  live.device_bytes = engine.memory.bytes(MemoryKind::device);
  live.pinned_bytes = engine.memory.bytes(MemoryKind::pinned) + engine.memory.bytes(MemoryKind::registered);
  live.streams = engine.stream_count();
  live.events = engine.events.size();
  live.graphs = engine.graphs;
  live.pools = static_cast<size_t>(std::count_if(
      engine.pools.begin(), engine.pools.end(),
      [&](CUmemPoolHandle_st* pool) { return engine.device(pool->device).default_pool != pool; }));
  return live;
}

}  // namespace cpu_device

using namespace cpu_device;

cudaError_t cudaGetDeviceCount(int* count) {
  return host_call("cudaGetDeviceCount", [&] {
    *count = device_count();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return host_call("cudaGetDevice", [&] {
    *device = chosen_device;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return host_call("cudaSetDevice", [&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    chosen_device = device;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return host_call("cudaDeviceSynchronize", [&] {
    if (!streams().captures.empty()) return cudaErrorStreamCaptureUnsupported;
    streams().wait_on_host_for_device(chosen_device);
    release_unused_memory_of_pools();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return host_call("cudaDeviceGetAttribute", [&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount:
        *value = 132;
        return cudaSuccess;
      case cudaDevAttrConcurrentKernels:
      case cudaDevAttrMemoryPoolsSupported:
        *value = 1;
        return cudaSuccess;
      case cudaDevAttrAsyncEngineCount:
        *value = 3;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return host_call("cudaDeviceCanAccessPeer", [&] {
    if (!exists(device) || !exists(peer)) return cudaErrorInvalidDevice;
    *can = device != peer;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return host_call("cudaDeviceEnablePeerAccess", [&] {
    if (!exists(peer) || peer == chosen_device) return cudaErrorInvalidDevice;
    if (flags) return cudaErrorInvalidValue;
    const bool is_new = streams().device(chosen_device).peers.insert(peer).second;
    return is_new ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return host_call("cudaMemGetInfo", [&] {
    *free = free_device_bytes(chosen_device);
    *total = device_bytes();
    return cudaSuccess;
  });
}
