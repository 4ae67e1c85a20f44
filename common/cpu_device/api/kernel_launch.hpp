/// @file
/// What the shadow of ladder::launch needs of the streams.
#pragma once
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/cpu_device/declarations/host_api.hpp"
#include "common/cpu_device/kernel/engine.hpp"

namespace cpu_device {

/// How errors call it: "launch of kernel 'NAME'"; or, with the limit that it breaks, "launch of kernel 'NAME'
/// (LIMIT: grid 3 x 1 x 1, ...) at steps/2_narrow_tile.cuh:160 in launch_gemm".
std::string describe_launch(const KernelLaunch& kernel, const char* broken_limit = nullptr);

/// What CUDA answers to a launch as <<< >>> writes it, where it has more dynamic shared memory than it may
/// have without a permission.
cudaError_t refusal_without_permission(const KernelLaunch& kernel);

/// Is given a function that runs its argument as every thread of the grid.
using KernelBody = std::function<void(const std::function<void(const std::function<void()>&)>&)>;
/// Notes a parameter of a kernel that is a pointer.
template <class T>
void note_pointer(std::vector<const void*>& pointers, const T& parameter) {
  if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
    pointers.push_back(const_cast<const void*>(static_cast<const volatile void*>(parameter)));
}

/// Notes everything in a parameter that may be a pointer: it may be a struct that holds some.
inline void note_words(std::vector<const void*>& words, const void* parameter, size_t bytes) {
  for (size_t at = 0; at + sizeof(void*) <= bytes; at += sizeof(void*)) {
    const void* word = nullptr;
    std::memcpy(&word, static_cast<const std::byte*>(parameter) + at, sizeof word);
    words.push_back(word);
  }
}

/// Enqueues the kernel. `body` may be kept, copied, and called several times (by launches of a graph).
/// @param pointers among the parameters, to know pageable memory of the host by
/// @param words of the parameters, to know by whether it may reach pinned memory
/// @throws Failure if what runs now breaks a rule
cudaError_t launch_on_stream(cudaStream_t, DefaultStream, const KernelLaunch&,
                             std::vector<const void*> pointers, const std::vector<const void*>& words,
                             KernelBody body);
/// Completes a launch with what the kernel's declaration says: its clusters, and its name if that is null.
void complete_from_declaration(KernelLaunch&);
/// Launches a kernel of which there is only a pointer, with a pointer to each argument.
using LaunchByPointer = cudaError_t (*)(const void* kernel, const KernelLaunch&, void** arguments,
                                        cudaStream_t, DefaultStream);
/// @return `kernel`, which launch_remembered() launches from now on
void* remember_kernel(void* kernel, LaunchByPointer);
/// @return cudaErrorInvalidDeviceFunction for what was not remembered
cudaError_t launch_remembered(const void* kernel, const KernelLaunch&, void** arguments, cudaStream_t,
                              DefaultStream);
/// The node becomes a launch of this kernel, with what the arguments are now.
cudaError_t add_kernel_node(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t* after, size_t count,
                            const void* kernel, const KernelLaunch&, void** arguments);
/// The same of a node that there is: of the graph, or of what was instantiated of it.
cudaError_t change_kernel_node(cudaGraphExec_t, cudaGraphNode_t, const void* kernel, const KernelLaunch&,
                               void** arguments);
/// Of a launch that breaks a limit: says so on stderr, and leaves the error to cudaGetLastError(), too.
cudaError_t refuse(const KernelLaunch&);

/// Enqueues `kernel` with parameters of its own types.
template <class... Params>
cudaError_t enqueue_kernel(void (*kernel)(Params...), KernelLaunch& launch, cudaStream_t stream,
                           DefaultStream meaning, std::tuple<Params...> converted) {
  launch.function = reinterpret_cast<const void*>(kernel);
  complete_from_declaration(launch);
  std::vector<const void*> pointers, words;
  std::apply(
      [&](const auto&... own) {
        unsigned index = 0;
        (note_parameter(launch, index++, &own, sizeof own), ...);
        (note_pointer(pointers, own), ...);
        (note_words(words, &own, sizeof own), ...);
      },
      converted);
  return launch_on_stream(stream, meaning, launch, pointers, words,
                          [kernel, kept = std::move(converted)](const auto& run_as_every_thread) {
                            // On the stack, where nobody takes them for global memory.
                            const auto function = kernel;
                            const std::tuple<Params...> params = kept;
                            run_as_every_thread([&] {
                              const auto call_kernel = [&](Params... own) {
                                const auto in_register = function;  // read before, not after
                                poison_local_variables();
                                in_register(own...);
                              };
                              std::apply(call_kernel, params);
                            });
                          });
}

/// The same of calls that launch: what they return.
template <class... Params>
cudaError_t launch_kernel(void (*kernel)(Params...), KernelLaunch launch, cudaStream_t stream,
                          DefaultStream meaning, std::tuple<Params...> params) {
  launch.function = reinterpret_cast<const void*>(kernel);
  complete_from_declaration(launch);
  if (refused(launch)) return refuse(launch);
  return enqueue_kernel(kernel, launch, stream, meaning, std::move(params));
}

}  // namespace cpu_device
