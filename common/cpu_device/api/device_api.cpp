/// @file
/// Devices: how many, which one, what they can do, and what the program holds.
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/streams/memory_pool.hpp"

namespace cpu_device {
namespace {

bool exists(int device) { return device >= 0 && device < device_count(); }

/// An H200's.
constexpr std::pair<cudaDeviceAttr, int> kAttributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, INT_MAX},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 48 * 1024},
    {cudaDevAttrTotalConstantMemory, 64 * 1024},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxPitch, INT_MAX},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrClockRate, 1'980'000},  // kHz
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrMultiProcessorCount, 132},
    {cudaDevAttrKernelExecTimeout, 0},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrComputeMode, cudaComputeModeDefault},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrEccEnabled, 1},
    {cudaDevAttrPciBusId, 0},
    {cudaDevAttrPciDeviceId, 0},
    {cudaDevAttrPciDomainId, 0},
    {cudaDevAttrTccDriver, 0},
    {cudaDevAttrMemoryClockRate, 3'201'000},  // kHz
    {cudaDevAttrGlobalMemoryBusWidth, 6144},  // bits
    {cudaDevAttrL2CacheSize, 60 << 20},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 * 1024},
    {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrIsMultiGpuBoard, 0},
    {cudaDevAttrHostNativeAtomicSupported, 0},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
    {cudaDevAttrPageableMemoryAccess, 0},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrComputePreemptionSupported, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 * 1024},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
    {cudaDevAttrReservedSharedMemoryPerBlock, 1024},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrMemoryPoolSupportedHandleTypes, 0},
    {cudaDevAttrClusterLaunch, 1},
};

constexpr int attribute(cudaDeviceAttr wanted) {
  for (const auto& [known, value] : kAttributes) {
    if (known == wanted) return value;
  }
  return 0;
}
constexpr size_t bytes(cudaDeviceAttr wanted) { return static_cast<size_t>(attribute(wanted)); }

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp is = {};
  std::snprintf(is.name, sizeof is.name, "CPU device (as an NVIDIA H200)");
  is.uuid.bytes[15] = static_cast<char>(device);
  is.totalGlobalMem = device_bytes();
  is.sharedMemPerBlock = bytes(cudaDevAttrMaxSharedMemoryPerBlock);
  is.regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock);
  is.warpSize = attribute(cudaDevAttrWarpSize);
  is.memPitch = bytes(cudaDevAttrMaxPitch);
  is.maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
  for (int i = 0; i < 3; ++i) {
    is.maxThreadsDim[i] = attribute(static_cast<cudaDeviceAttr>(cudaDevAttrMaxBlockDimX + i));
    is.maxGridSize[i] = attribute(static_cast<cudaDeviceAttr>(cudaDevAttrMaxGridDimX + i));
  }
  is.totalConstMem = bytes(cudaDevAttrTotalConstantMemory);
  is.major = attribute(cudaDevAttrComputeCapabilityMajor);
  is.minor = attribute(cudaDevAttrComputeCapabilityMinor);
  is.textureAlignment = bytes(cudaDevAttrTextureAlignment);
  is.multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
  is.canMapHostMemory = attribute(cudaDevAttrCanMapHostMemory);
  is.concurrentKernels = attribute(cudaDevAttrConcurrentKernels);
  is.ECCEnabled = attribute(cudaDevAttrEccEnabled);
  is.asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
  is.unifiedAddressing = attribute(cudaDevAttrUnifiedAddressing);
  is.memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
  is.l2CacheSize = attribute(cudaDevAttrL2CacheSize);
  is.maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  is.streamPrioritiesSupported = attribute(cudaDevAttrStreamPrioritiesSupported);
  is.globalL1CacheSupported = attribute(cudaDevAttrGlobalL1CacheSupported);
  is.localL1CacheSupported = attribute(cudaDevAttrLocalL1CacheSupported);
  is.sharedMemPerMultiprocessor = bytes(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  is.regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  is.managedMemory = attribute(cudaDevAttrManagedMemory);
  is.concurrentManagedAccess = attribute(cudaDevAttrConcurrentManagedAccess);
  is.computePreemptionSupported = attribute(cudaDevAttrComputePreemptionSupported);
  is.canUseHostPointerForRegisteredMem = attribute(cudaDevAttrCanUseHostPointerForRegisteredMem);
  is.cooperativeLaunch = attribute(cudaDevAttrCooperativeLaunch);
  is.sharedMemPerBlockOptin = bytes(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  is.maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  is.reservedSharedMemPerBlock = bytes(cudaDevAttrReservedSharedMemoryPerBlock);
  is.hostRegisterSupported = attribute(cudaDevAttrHostRegisterSupported);
  is.memoryPoolsSupported = attribute(cudaDevAttrMemoryPoolsSupported);
  is.clusterLaunch = attribute(cudaDevAttrClusterLaunch);
  is.unifiedFunctionPointers = 1;
  is.clockRate = attribute(cudaDevAttrClockRate);
  is.deviceOverlap = attribute(cudaDevAttrGpuOverlap);
  is.memoryClockRate = attribute(cudaDevAttrMemoryClockRate);
  is.singleToDoublePrecisionPerfRatio = attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio);
  return is;
}

}  // namespace

int blocks_per_multiprocessor(int threads, size_t shared_bytes) {
  if (threads < 1 || threads > attribute(cudaDevAttrMaxThreadsPerBlock) ||
      shared_bytes > bytes(cudaDevAttrMaxSharedMemoryPerBlockOptin))
    return 0;
  const int whole_warps = (threads + 31) / 32 * 32;
  const auto by_memory = static_cast<int>(bytes(cudaDevAttrMaxSharedMemoryPerMultiprocessor) /
                                          (shared_bytes + bytes(cudaDevAttrReservedSharedMemoryPerBlock)));
  return std::min({attribute(cudaDevAttrMaxBlocksPerMultiprocessor), by_memory,
                   attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / whole_warps});
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

cudaError_t cudaDeviceReset() {
  return host_call("cudaDeviceReset", [&] {
    streams().run_everything();
    for (int device = 0; device < device_count(); ++device) streams().wait_on_host_for_device(device);
    release_unused_memory_of_pools();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return host_call("cudaDeviceGetAttribute", [&] {
    if (!value) return cudaErrorInvalidValue;
    if (!exists(device)) return cudaErrorInvalidDevice;
    for (const auto& [known, its_value] : kAttributes) {
      if (known != attribute) continue;
      *value = its_value;
      return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return host_call("cudaGetDeviceProperties", [&] {
    if (!properties) return cudaErrorInvalidValue;
    if (!exists(device)) return cudaErrorInvalidDevice;
    *properties = properties_of(device);
    return cudaSuccess;
  });
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return host_call("cudaChooseDevice", [&] {
    if (!device || !wanted) return cudaErrorInvalidValue;
    *device = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
cudaError_t cudaRuntimeGetVersion(int* version) {
  return host_call("cudaRuntimeGetVersion", [&] {
    if (!version) return cudaErrorInvalidValue;
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

// What has no meaning here, but must be accepted.
namespace {

cudaError_t accept(const char* call) {
  return host_call(call, [] { return cudaSuccess; });
}
template <class T>
cudaError_t answer(const char* call, T* place, T value) {
  return host_call(call, [&] {
    if (!place) return cudaErrorInvalidValue;
    *place = value;
    return cudaSuccess;
  });
}
size_t limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};

}  // namespace

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return host_call("cudaDeviceSetLimit", [&] {
    if (limit < 0 || limit >= std::size(limits)) return cudaErrorUnsupportedLimit;
    limits[limit] = value;
    return cudaSuccess;
  });
}
cudaError_t cudaCtxResetPersistingL2Cache() { return accept("cudaCtxResetPersistingL2Cache"); }

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return host_call("cudaDeviceGetLimit", [&] {
    if (!value) return cudaErrorInvalidValue;
    if (limit < 0 || limit >= std::size(limits)) return cudaErrorUnsupportedLimit;
    *value = limits[limit];
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return accept("cudaDeviceSetCacheConfig"); }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return answer("cudaDeviceGetCacheConfig", config, cudaFuncCachePreferNone);
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  return accept("cudaDeviceSetSharedMemConfig");
}
cudaError_t cudaSetDeviceFlags(unsigned) { return accept("cudaSetDeviceFlags"); }
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return answer("cudaGetDeviceFlags", flags, unsigned{cudaDeviceMapHost});
}
cudaError_t cudaProfilerStart() { return accept("cudaProfilerStart"); }
cudaError_t cudaProfilerStop() { return accept("cudaProfilerStop"); }

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return host_call("cudaDeviceCanAccessPeer", [&] {
    if (!exists(device) || !exists(peer)) return cudaErrorInvalidDevice;
    *can = device != peer;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  return host_call("cudaDeviceGetP2PAttribute", [&] {
    if (!exists(device) || !exists(peer)) return cudaErrorInvalidDevice;
    if (!value || device == peer) return cudaErrorInvalidValue;
    *value = attribute == cudaDevP2PAttrAccessSupported || attribute == cudaDevP2PAttrNativeAtomicSupported;
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

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return host_call("cudaDeviceDisablePeerAccess", [&] {
    if (!exists(peer)) return cudaErrorInvalidDevice;
    return streams().device(current_device()).peers.erase(peer) ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return host_call("cudaMemGetInfo", [&] {
    *free = free_device_bytes(current_device());
    *total = device_bytes();
    return cudaSuccess;
  });
}
