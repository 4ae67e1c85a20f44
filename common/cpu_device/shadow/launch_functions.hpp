/// @file
/// Part of the shadow of <cuda_runtime.h>: launches that are calls, with types of kernels.
#pragma once
#include <cstddef>
#include <tuple>
#include <utility>

#include "common/cpu_device/api/kernel_launch.hpp"
#include "common/cpu_device/shadow/builtin_variables.hpp"

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeAccessPolicyWindow = 1,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeSynchronizationPolicy = 3,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeClusterSchedulingPolicyPreference = 5,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8
};
enum cudaClusterSchedulingPolicy {
  cudaClusterSchedulingPolicyDefault,
  cudaClusterSchedulingPolicySpread,
  cudaClusterSchedulingPolicyLoadBalancing
};
union cudaLaunchAttributeValue {
  char pad[64];
  cudaAccessPolicyWindow accessPolicyWindow;
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim;
  cudaClusterSchedulingPolicy clusterSchedulingPolicyPreference;
  int programmaticStreamSerializationAllowed;
  int priority;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  char pad[8 - sizeof(cudaLaunchAttributeID)];
  cudaLaunchAttributeValue val;
};
using cudaStreamAttrID = cudaLaunchAttributeID;
using cudaStreamAttrValue = cudaLaunchAttributeValue;
constexpr auto cudaStreamAttributeAccessPolicyWindow = cudaLaunchAttributeAccessPolicyWindow;
constexpr auto cudaStreamAttributePriority = cudaLaunchAttributePriority;
/// How fast it is; only the priority of a stream could be asked for again.
inline cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) {
  return cudaSuccess;
}
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

namespace cpu_device {

inline KernelLaunch kernel_launch_of(const cudaLaunchConfig_t& config, Location where) {
  KernelLaunch launch{nullptr, config.gridDim, config.blockDim, 1, config.dynamicSmemBytes};
  launch.where = where;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttributeValue& value = config.attrs[i].val;
    switch (config.attrs[i].id) {
      case cudaLaunchAttributeClusterDimension:
        launch.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
        break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        launch.pdl = value.programmaticStreamSerializationAllowed != 0;
        break;
      case cudaLaunchAttributeCooperative:
        launch.cooperative = value.cooperative != 0;
        break;
      default:
        break;  // how fast it is
    }
  }
  return launch;
}

/// Of a launch whose arguments are behind pointers.
template <class... Params>
cudaError_t launch_with_pointers(void (*kernel)(Params...), KernelLaunch launch, void** arguments,
                                 cudaStream_t stream, DefaultStream meaning) {
  return [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return launch_kernel(kernel, std::move(launch), stream, meaning,
                         std::tuple<Params...>(*static_cast<Params*>(arguments[kIndex])...));
  }
  (std::index_sequence_for<Params...>());
}

}  // namespace cpu_device

/// What the caller's own last parameters are: what stream 0 means, and where the call is written.
#define CPU_DEVICE_LAUNCH cpu_device::DefaultStream meaning = cpu_device::kDefaultStream, CPU_DEVICE_WHERE

template <class... Params, class... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...), Args&&... args) {
  return cpu_device::launch_kernel(kernel, cpu_device::kernel_launch_of(*config, {}), config->stream,
                                   cpu_device::kDefaultStream,
                                   std::tuple<Params...>(static_cast<Params>(std::forward<Args>(args))...));
}
template <class... Params>
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, void (*kernel)(Params...), void** args,
                                CPU_DEVICE_LAUNCH) {
  return cpu_device::launch_with_pointers(kernel, cpu_device::kernel_launch_of(*config, where), args,
                                          config->stream, meaning);
}
template <class... Params>
cudaError_t cudaLaunchKernel(void (*kernel)(Params...), dim3 grid, dim3 block, void** args,
                             size_t shared_bytes = 0, cudaStream_t stream = nullptr, CPU_DEVICE_LAUNCH) {
  cpu_device::KernelLaunch launch{nullptr, grid, block, 1, shared_bytes};
  launch.where = where;
  return cpu_device::launch_with_pointers(kernel, launch, args, stream, meaning);
}
/// All blocks run at once, so that they may wait for each other.
template <class... Params>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Params...), dim3 grid, dim3 block, void** args,
                                        size_t shared_bytes = 0, cudaStream_t stream = nullptr,
                                        CPU_DEVICE_LAUNCH) {
  cpu_device::KernelLaunch launch{nullptr, grid, block, 1, shared_bytes};
  launch.where = where;
  launch.cooperative = true;
  return cpu_device::launch_with_pointers(kernel, launch, args, stream, meaning);
}

namespace cpu_device {

/// A pointer to the kernel by which cudaLaunchKernel() knows its parameters.
template <class... Params>
void* pointer_without_type(void (*kernel)(Params...)) {
  return remember_kernel(reinterpret_cast<void*>(kernel),
                         [](const void* known, const KernelLaunch& launch, void** args, cudaStream_t stream,
                            DefaultStream meaning) {
                           const auto typed = reinterpret_cast<void (*)(Params...)>(const_cast<void*>(known));
                           return launch_with_pointers(typed, launch, args, stream, meaning);
                         });
}

}  // namespace cpu_device

struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void **kernelParams, **extra;
};

namespace cpu_device {
inline KernelLaunch kernel_launch_of(const cudaKernelNodeParams& node, Location where) {
  KernelLaunch launch{nullptr, node.gridDim, node.blockDim, 1, node.sharedMemBytes};
  launch.where = where;
  return launch;
}
}  // namespace cpu_device

inline cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                          const cudaGraphNode_t* after, size_t count,
                                          const cudaKernelNodeParams* params, CPU_DEVICE_WHERE) {
  return cpu_device::add_kernel_node(node, graph, after, count, params->func,
                                     cpu_device::kernel_launch_of(*params, where), params->kernelParams);
}
inline cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params,
                                                CPU_DEVICE_WHERE) {
  return cpu_device::change_kernel_node(nullptr, node, params->func,
                                        cpu_device::kernel_launch_of(*params, where), params->kernelParams);
}
inline cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                    const cudaKernelNodeParams* params, CPU_DEVICE_WHERE) {
  return cpu_device::change_kernel_node(exec, node, params->func,
                                        cpu_device::kernel_launch_of(*params, where), params->kernelParams);
}

#ifdef LADDER_REWRITES  // a cast of a kernel becomes a call of pointer_without_type()
inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args,
                                    size_t shared_bytes = 0, cudaStream_t stream = nullptr,
                                    CPU_DEVICE_LAUNCH) {
  cpu_device::KernelLaunch launch{nullptr, grid, block, 1, shared_bytes};
  launch.where = where;
  return cpu_device::launch_remembered(kernel, launch, args, stream, meaning);
}
inline cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** args,
                                               size_t shared_bytes = 0, cudaStream_t stream = nullptr,
                                               CPU_DEVICE_LAUNCH) {
  cpu_device::KernelLaunch launch{nullptr, grid, block, 1, shared_bytes};
  launch.where = where;
  launch.cooperative = true;
  return cpu_device::launch_remembered(kernel, launch, args, stream, meaning);
}
inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** args,
                                       CPU_DEVICE_LAUNCH) {
  return cpu_device::launch_remembered(kernel, cpu_device::kernel_launch_of(*config, where), args,
                                       config->stream, meaning);
}
#else
#define CPU_DEVICE_WITHOUT_A_CAST                                                                    \
  __attribute__((                                                                                    \
      unavailable("the CPU device does not know the parameters of a kernel that is a void pointer: " \
                  "pass the kernel itself, without a cast")))
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t = 0,
                             cudaStream_t = nullptr) CPU_DEVICE_WITHOUT_A_CAST;
cudaError_t cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, size_t = 0,
                                        cudaStream_t = nullptr) CPU_DEVICE_WITHOUT_A_CAST;
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) CPU_DEVICE_WITHOUT_A_CAST;
#undef CPU_DEVICE_WITHOUT_A_CAST
#endif
#undef CPU_DEVICE_LAUNCH

template <class Kernel>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, Kernel*, const cudaLaunchConfig_t* config) {
  const cpu_device::KernelLaunch launch = cpu_device::kernel_launch_of(*config, {});
  const int blocks = 132 * cpu_device::blocks_per_multiprocessor(static_cast<int>(launch.block.count()),
                                                                 launch.shared_bytes);
  *clusters = blocks / static_cast<int>(launch.cluster.count());
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, Kernel*, const cudaLaunchConfig_t*) {
  *blocks = 8;
  return cudaSuccess;
}
