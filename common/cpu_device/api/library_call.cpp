/// @file
/// Calls of CUDA's libraries as operations of streams.
#include "common/cpu_device/api/library_call.hpp"

#include <utility>

namespace cpu_device {

cudaError_t call_library(const char* name, cudaStream_t stream, std::vector<Touch> touches,
                         std::function<void()> run, bool waits) {
  return host_call(name, [&] {
    CUstream_st* found = streams().find(stream, DefaultStream::legacy, current_device());
    if (!found) return cudaErrorInvalidResourceHandle;
    if (found->is_legacy && !streams().captures.empty()) return cudaErrorStreamCaptureImplicit;
    Work work{"library call", name};
    for (Touch& touch : touches) {
      if (!streams().memory.find(touch.begin)) return cudaErrorInvalidValue;
      work.touches.push_back(std::move(touch));
    }
    work.engine = Engine::multiprocessors;
    work.run = [run = std::move(run)](Operation&) { run(); };
    const OperationPointer operation = streams().enqueue(*found, std::move(work));
    if (operation && waits) streams().wait_on_host(operation);
    return cudaSuccess;
  });
}

}  // namespace cpu_device
