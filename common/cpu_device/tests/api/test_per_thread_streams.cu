/// @file
/// A source built with CUDA_API_PER_THREAD_DEFAULT_STREAM: stream 0 is the host thread's own.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include <exception>
#include <thread>

#include "common/cpu_device/tests/stream_test.hpp"

using namespace cpu_device;
using namespace cpu_device::test;

TEST_CASE("stream 0 is a stream of the host thread, which queues") {
  use({Order::round_robin, Landing::late});
  DeviceInts memory;
  PinnedInts input(1);
  CUDA_CHECK(cudaMemcpyAsync(memory.data, input.data, kBytes, cudaMemcpyHostToDevice));
  CHECK(peek(memory.data) == -1);
  CUDA_CHECK(cudaStreamSynchronize(nullptr));
  CHECK(peek(memory.data) == 1);
}

TEST_CASE("work on stream 0 of one thread does not wait for a non-blocking stream, but for the legacy one") {
  check_never_blamed([] {
    DeviceInts memory, to;
    PinnedInts output;
    CUDA_CHECK(cudaMemsetAsync(memory.data, 0, kBytes, cudaStreamLegacy));
    launch_add_one(memory.data, to.data, nullptr);
    CUDA_CHECK(cudaMemcpyAsync(output.data, to.data, kBytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaStreamSynchronize(nullptr));
    CHECK(output.all(1));
  });
}

TEST_CASE("the default streams of two threads are told apart where nothing orders them") {
  check_blamed_always(
      [] {
        DeviceInts memory;
        CUDA_CHECK(cudaMemsetAsync(memory.data, 0, kBytes));
        std::exception_ptr error;
        std::thread([&] {
          try {
            CUDA_CHECK(cudaMemsetAsync(memory.data, 1, kBytes));
            CUDA_CHECK(cudaStreamSynchronize(nullptr));
          } catch (...) {
            error = std::current_exception();
          }
        }).join();
        if (error) std::rethrow_exception(error);
      },
      "which the memset on the per-thread stream writes, and nothing orders them: a cudaStreamWaitEvent is "
      "missing");
}
