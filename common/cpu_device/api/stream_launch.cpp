/// @file
/// Kernels as operations of streams.
#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/api/kernel_launch.hpp"
#include "common/cpu_device/kernel/from_source/kernel_declaration.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

#include "common/cpu_device/streams/stream_model.hpp"

namespace cpu_device {

std::string describe_launch(const KernelLaunch& kernel, const char* broken_limit) {
  const std::string launch = fmt::format("launch of kernel '{}'", kernel.name);
  if (!broken_limit) return launch;
  const auto sides = [](const Dim3& size) { return fmt::format("{} x {} x {}", size.x, size.y, size.z); };
  const std::vector<std::string> calls = own_calls(calling_now());
  return fmt::format("{} ({}: grid {}, block {}, cluster {}, {} bytes of dynamic shared memory){}", launch,
                     broken_limit, sides(kernel.grid), sides(kernel.block), sides(kernel.cluster),
                     kernel.shared_bytes, calls.empty() ? "" : " at " + calls.front());
}

static std::mutex permissions_mutex;
static std::map<const void*, size_t>& permitted_shared_bytes() {
  static auto& bytes = *new std::map<const void*, size_t>;
  return bytes;
}

cudaError_t set_function_attribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  constexpr int kMost = 227 * 1024;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || value > kMost) return remember(cudaErrorInvalidValue);
  const std::lock_guard<std::mutex> lock(permissions_mutex);
  permitted_shared_bytes()[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}

static std::mutex remembered_mutex;
static std::map<const void*, LaunchByPointer>& remembered_kernels() {
  static auto& kernels = *new std::map<const void*, LaunchByPointer>;
  return kernels;
}

void* remember_kernel(void* kernel, LaunchByPointer launch) {
  const std::lock_guard<std::mutex> lock(remembered_mutex);
  remembered_kernels()[kernel] = launch;
  return kernel;
}

cudaError_t launch_remembered(const void* kernel, const KernelLaunch& launch, void** arguments,
                              cudaStream_t stream, DefaultStream meaning) {
  LaunchByPointer by_pointer = nullptr;
  {
    const std::lock_guard<std::mutex> lock(remembered_mutex);
    const auto found = remembered_kernels().find(kernel);
    if (found != remembered_kernels().end()) by_pointer = found->second;
  }
  if (by_pointer) return by_pointer(kernel, launch, arguments, stream, meaning);
  std::fprintf(stderr,
               "%s: the CPU device does not know the parameters of a kernel that is a void pointer: cast the "
               "kernel by its own name\n",
               describe_place(launch.where).c_str());
  return remember(cudaErrorInvalidDeviceFunction);
}

cudaError_t refusal_without_permission(const KernelLaunch& kernel) {
  constexpr size_t kFree = 48 * 1024;
  const std::lock_guard<std::mutex> lock(permissions_mutex);
  if (kernel.shared_bytes <= std::max(kFree, permitted_shared_bytes()[kernel.function])) return cudaSuccess;
  const std::string launch =
      describe_launch(kernel,
                      "more than 48 KiB of dynamic shared memory need cudaFuncSetAttribute() "
                      "with cudaFuncAttributeMaxDynamicSharedMemorySize");
  std::fprintf(stderr, "%s fails: %s\n", launch.c_str(), cudaGetErrorString(cudaErrorInvalidValue));
  return remember(cudaErrorInvalidValue);
}

void complete_from_declaration(KernelLaunch& kernel) {
  if (!kernel.name) {
    const std::string& name = declaration_of(kernel.function).name;
    kernel.name = name.empty() ? "kernel" : name.c_str();
  }
  if (kernel.cluster.count() == 1) find_cluster_dims(kernel.function, kernel.cluster);
}

cudaError_t refuse(const KernelLaunch& kernel) {
  return host_call("cudaLaunchKernel", [&] {
    const cudaError_t error = has_refused_cluster(kernel)         ? cudaErrorInvalidClusterSize
                              : is_too_large_to_cooperate(kernel) ? cudaErrorCooperativeLaunchTooLarge
                                                                  : cudaErrorInvalidConfiguration;
    std::fprintf(stderr, "%s fails: %s\n", describe_launch(kernel, refused(kernel)).c_str(),
                 cudaGetErrorString(error));
    return error;
  });
}

cudaError_t launch_on_stream(cudaStream_t stream, DefaultStream meaning, const KernelLaunch& kernel,
                             std::vector<const void*> pointers, const std::vector<const void*>& words,
                             KernelBody body) {
  return host_call("cudaLaunchKernelEx", [&] {
    CUstream_st* found = streams().find(stream, meaning, current_device());
    if (!found || found->device != current_device()) return cudaErrorInvalidResourceHandle;
    if (found->is_legacy && !streams().captures.empty()) return cudaErrorStreamCaptureImplicit;
    Work work{"kernel", kernel.name, kernel.where};
    work.engine = Engine::multiprocessors;
    work.pointers = std::move(pointers);
    work.reaches_host = std::any_of(words.begin(), words.end(), [](const void* word) {
      const AllocationPointer allocation = streams().memory.find(word);
      return allocation && allocation->kind != MemoryKind::device;
    });
    work.pdl = kernel.pdl;
    if (!kernel.where.line) work.callers = calling_now();
    work.run = [kernel, body = std::move(body)](Operation& operation) {
      KernelLaunch named = kernel;
      named.name = operation.name.c_str();
      named.callers = std::make_shared<const std::vector<uintptr_t>>(operation.callers);
      named.let_others_run = [] { return streams().run_beside_kernel(); };
      body([&](const std::function<void()>& thread_body) { launch(named, thread_body); });
      operation.us = kStreamModel.kernel_us(kernel.grid.count(), last_launch().cycles);
    };
    streams().enqueue(*found, std::move(work));
    return cudaSuccess;
  });
}

}  // namespace cpu_device
