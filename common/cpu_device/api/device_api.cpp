/// @file
/// Devices: how many, which one, what they can do, and what the program holds.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/streams/memory_pool.hpp"

namespace cpu_device {
namespace {

bool exists(int device) { return device >= 0 && device < device_count(); }

}  // namespace

LiveResources live_resources() {
  StreamEngine& engine = streams();
  const std::lock_guard<std::recursive_mutex> lock(engine.mutex);
  LiveResources live;
  live.device_bytes = engine.memory.bytes(MemoryKind::device);
  live.pinned_bytes = engine.memory.bytes(MemoryKind::pinned) + engine.memory.bytes(MemoryKind::registered);
  live.streams = engine.stream_count();
  live.events = engine.events.size();
  live.graphs = engine.graphs;
  live.pools = static_cast<size_t>(
      std::count_if(engine.pools.begin(), engine.pools.end(), [&](CUmemPoolHandle_st* pool) {
        return engine.device(pool->device).default_pool != pool && !pool->is_destroyed;
      }));
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
    *device = current_device();
    return cudaSuccess;
  });
}

// Destructors make this call, to go back to the device of before.
cudaError_t cudaSetDevice(int device) {
  return destroying_call("cudaSetDevice", [&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    choose_device(device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return host_call("cudaDeviceSynchronize", [&] {
    if (!streams().captures.empty()) return cudaErrorStreamCaptureUnsupported;
    streams().wait_on_host_for_device(current_device());
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
      case cudaDevAttrMemoryClockRate:  // kHz
        *value = 3'201'000;
        return cudaSuccess;
      case cudaDevAttrGlobalMemoryBusWidth:  // bits
        *value = 6144;
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
    if (!exists(peer) || peer == current_device()) return cudaErrorInvalidDevice;
    if (flags) return cudaErrorInvalidValue;
    const bool is_new = streams().device(current_device()).peers.insert(peer).second;
    return is_new ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return host_call("cudaMemGetInfo", [&] {
    *free = free_device_bytes(current_device());
    *total = device_bytes();
    return cudaSuccess;
  });
}
