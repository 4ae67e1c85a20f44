/// @file
/// Notes an exercise's calls that make the host wait. A check includes this before the exercise: from here on
/// the calls are macros that note their names first. So it also works on a GPU, which does not count them.
#pragma once
#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

// These headers' waits are not the exercise's.
#include "07_streams/pinned_ring.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/exercise/check.hpp"

namespace lesson07 {

/// The names of the calls so far.
inline std::vector<std::string>& noted_host_waits() {
  static std::vector<std::string> names;
  return names;
}
inline void note_host_wait(const char* name) { noted_host_waits().emplace_back(name); }

/// The names of the calls in `body`.
inline std::vector<std::string> host_waits_of(const std::function<void()>& body) {
  noted_host_waits().clear();
  body();
  return std::exchange(noted_host_waits(), {});
}

}  // namespace lesson07

// A macro is not expanded within itself, so the call after the comma is CUDA's.
#define cudaDeviceSynchronize() (::lesson07::note_host_wait("cudaDeviceSynchronize"), cudaDeviceSynchronize())
#define cudaStreamSynchronize(...) \
  (::lesson07::note_host_wait("cudaStreamSynchronize"), cudaStreamSynchronize(__VA_ARGS__))
#define cudaEventSynchronize(...) \
  (::lesson07::note_host_wait("cudaEventSynchronize"), cudaEventSynchronize(__VA_ARGS__))
#define cudaStreamQuery(...) (::lesson07::note_host_wait("cudaStreamQuery"), cudaStreamQuery(__VA_ARGS__))
#define cudaEventQuery(...) (::lesson07::note_host_wait("cudaEventQuery"), cudaEventQuery(__VA_ARGS__))
#define cudaMemcpy(...) (::lesson07::note_host_wait("cudaMemcpy"), cudaMemcpy(__VA_ARGS__))
