/// @file
/// What all calls of the host's API begin and end with. Private to the host's side of the CPU device.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/streams/stream_engine.hpp"

namespace cpu_device {

/// Calls of the host so far.
inline std::atomic<uint64_t> host_calls_so_far{0};

/// Called where a host function has been queued. From now on, where the host makes no call for a quarter of a
/// second, the host functions that are queued run in a thread of their own, with what they need: the host may
/// spin on what a host function will set, as a GPU's host may.
void watch_for_a_spinning_host();

/// Remembers an error for cudaGetLastError.
cudaError_t remember(cudaError_t);
/// What CUDA's words for the error of this call leave open, in lines: a CudaError says it.
void explain_error(const std::string& lines);
/// The error that fail_call wants from this call, or cudaSuccess.
cudaError_t injected_error(const char* function);
/// Ends the kernel that makes the call, if one does. It must come before the lock, which the host has while
/// kernels run.
void refuse_in_kernel(const char* function);
/// @throws Failure if the call is made inside a host function, or if an earlier call could not throw its own
void begin_call(const char* function);
/// Sets elements of 1, 2 or 4 bytes.
cudaError_t fill_elements(const cudaMemsetParams&, cudaStream_t, Location);
/// A failure that cannot be thrown where it is found: the next call will throw it.
void defer_failure(const std::string& what);

/// While an exception is on its way: what is queued, for describe_host_side(). The calls of destructors will
/// run it.
void note_what_is_queued();

/// Of the last call of this thread.
inline thread_local std::string explanation_of_error;

/// Runs the body of a call under the lock. A failure ends all queued work. It is thrown, except where another
/// exception is on its way: a destructor that waits would end the program.
template <class Body>
cudaError_t host_call(const char* function, const Body& body) {
  refuse_in_kernel(function);
  ++host_calls_so_far;
  const std::lock_guard<std::recursive_mutex> lock(streams().mutex);
  note_what_is_queued();
  explanation_of_error.clear();
  try {
    begin_call(function);
    if (const cudaError_t error = injected_error(function); error != cudaSuccess) return remember(error);
    streams().let_schedule_run();
    return remember(body());
  } catch (const Failure& failure) {
    if (!streams().running()) streams().abandon();
    if (!std::uncaught_exceptions()) throw;
    defer_failure(failure.what());
    return remember(cudaErrorLaunchFailure);
  }
}

/// The same for calls that destructors make: they never throw. They succeed, and the next call throws.
template <class Body>
cudaError_t destroying_call(const char* function, const Body& body) {
  ++host_calls_so_far;
  const std::lock_guard<std::recursive_mutex> lock(streams().mutex);
  note_what_is_queued();
  try {
    if (const cudaError_t error = injected_error(function); error != cudaSuccess) return remember(error);
    if (streams().running()) begin_call(function);
    return remember(body());
  } catch (const Failure& failure) {
    if (!streams().running()) streams().abandon();
    defer_failure(failure.what());
    return cudaSuccess;
  }
}

/// A call of a library of CUDA's: queues `run`, which touches this memory, as the kernel `name`.
/// @param waits the host does, for a result of its own
cudaError_t call_library(const char* name, cudaStream_t stream, std::vector<Touch> touches,
                         std::function<void()> run, bool waits = false);

}  // namespace cpu_device
