/// @file
/// What the tests of streams share: small kernels, a few buffers, and programs run on many schedules.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/observe/hidden_memory.hpp"
#include "common/cuda/error.hpp"
#include "common/cuda/launch.cuh"

namespace cpu_device::test {

/// The six fixed schedules and 20 seeds.
inline std::vector<Schedule> stream_schedules() {
  std::vector<Schedule> schedules = fixed_schedules();
  for (uint64_t seed = 1; seed <= 20; ++seed) schedules.push_back(Schedule::random(seed));
  return schedules;
}

inline void use(const Schedule& schedule, bool check_streams = true) {
  Options options;
  options.schedule = schedule;
  options.os_threads = 1;
  options.check_streams = check_streams;
  set_options(options);
}

/// What the program is blamed for; empty if for nothing. Waits for the device, so that nothing is left.
inline std::string blame(const std::function<void()>& program) {
  try {
    program();
    CUDA_CHECK(cudaDeviceSynchronize());
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

/// The program is blamed in the same words, apart from the schedule, whatever the schedule.
inline void check_blamed_always(const std::function<void()>& program, const std::string& words) {
  for (const Schedule& schedule : stream_schedules()) {
    INFO("schedule " << schedule.name());
    use(schedule);
    CHECK_THAT(blame(program), Catch::Matchers::ContainsSubstring(words));
  }
  use({});
}

inline void check_never_blamed(const std::function<void()>& program) {
  for (const Schedule& schedule : stream_schedules()) {
    INFO("schedule " << schedule.name());
    use(schedule);
    CHECK(blame(program) == "");
  }
  use({});
}

/// A stream that is gone with its scope.
struct Stream {
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&handle, flags));
  }
  ~Stream() { cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  operator cudaStream_t() const { return handle; }
  cudaStream_t handle = nullptr;
};

struct Event {
  Event() { CUDA_CHECK(cudaEventCreate(&handle)); }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event&) = delete;
  operator cudaEvent_t() const { return handle; }
  cudaEvent_t handle = nullptr;
};

/// Destroys what has been captured and instantiated, also where an exception ends the program.
struct CapturedGraph {
  CapturedGraph() = default;
  ~CapturedGraph() {
    if (exec) cudaGraphExecDestroy(exec);
    if (graph) cudaGraphDestroy(graph);
  }
  CapturedGraph(const CapturedGraph&) = delete;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
};

constexpr int kCount = 256;
constexpr size_t kBytes = kCount * sizeof(int);

struct DeviceInts {
  DeviceInts() { CUDA_CHECK(cudaMalloc(&data, kBytes)); }
  ~DeviceInts() { cudaFree(data); }
  DeviceInts(const DeviceInts&) = delete;
  int* data = nullptr;
};

struct PinnedInts {
  explicit PinnedInts(int value = 0) {
    CUDA_CHECK(cudaMallocHost(&data, kBytes));
    fill(value);
  }
  ~PinnedInts() { cudaFreeHost(data); }
  PinnedInts(const PinnedInts&) = delete;
  void fill(int value) {
    for (int i = 0; i < kCount; ++i) data[i] = value;
  }
  bool all(int value) const {
    for (int i = 0; i < kCount; ++i) {
      if (data[i] != value) return false;
    }
    return true;
  }
  int* data = nullptr;
};

/// What lies in device memory now, whoever may be about to write it.
template <class T>
T peek(const T* device) {
  const HiddenMemoryIsOpen open;
  return *device;
}

/// to = from + 1, through cp.async, whose reads every build sees.
__global__ inline void add_one(const int* from, int* to) {
  auto& shared = *static_cast<int(*)[kCount]>(shared_storage(kBytes, 16, Location::current()));
  copy_async(&shared[4 * threadIdx.x], &from[4 * threadIdx.x], 16, 16, Location::current());
  copy_commit(Location::current());
  copy_wait(0, "wait", Location::current());
  for (unsigned i = 4 * threadIdx.x; i < 4 * threadIdx.x + 4; ++i) to[i] = shared[i] + 1;
}

inline void launch_add_one(const int* from, int* to, cudaStream_t stream) {
  ladder::launch(
      add_one, {.name = "add_one", .grid = 1, .block = kCount / 4, .shared_bytes = kBytes, .stream = stream},
      from, to);
}

}  // namespace cpu_device::test
