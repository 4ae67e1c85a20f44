/// @file
/// Kernels that begin before the kernel before them has ended: what they touch before they have waited for
/// it.
#include "common/cpu_device/tests/stream_test.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/ptx/grid_dependency.cuh"

using namespace cpu_device;
using namespace cpu_device::test;

namespace {

enum class Waits { first, too_late, never };

/// to = from + 1, with cp.async, whose reads every build sees. The first thread waits for all.
__global__ void add_one_early(const int* constants, const int* from, int* to, Waits waits) {
  auto& shared = *static_cast<int(*)[kCount]>(shared_storage(kBytes, 16, Location::current()));
  const auto load = [&](const int* source) {
    copy_async(&shared[4 * threadIdx.x], &source[4 * threadIdx.x], 16, 16, Location::current());
    copy_commit(Location::current());
    copy_wait(0, "wait", Location::current());
  };
  load(constants);  // nobody writes them: that may be early
  if (waits == Waits::first) ptx::griddepcontrol_wait();
  __syncthreads();
  load(from);
  __syncthreads();
  if (waits == Waits::too_late) ptx::griddepcontrol_wait();
  __syncthreads();
  for (unsigned i = 4 * threadIdx.x; i < 4 * threadIdx.x + 4; ++i) to[i] = shared[i] + 1;
}

struct Chain {
  Chain() {
    for (DeviceInts* memory : {&constants, &one, &two, &three}) {
      CUDA_CHECK(cudaMemsetAsync(memory->data, 0, kBytes, stream));
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  void launch(const int* from, int* to, Waits waits, bool pdl = true) {
    ladder::launch(add_one_early,
                   {.name = "add_one_early",
                    .grid = 1,
                    .block = kCount / 4,
                    .shared_bytes = kBytes,
                    .stream = stream,
                    .pdl = pdl},
                   constants.data, from, to, waits);
  }
  /// @return what the last buffer holds is right
  bool is_right() {
    CUDA_CHECK(cudaMemcpyAsync(output.data, three.data, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return output.all(2);
  }

  Stream stream;
  DeviceInts constants, one, two, three;
  PinnedInts output;
};

}  // namespace

TEST_CASE(
    "a programmatic dependent launch that waits before it touches what the kernel before wrote is right") {
  check_never_blamed([] {
    Chain chain;
    chain.launch(chain.one.data, chain.two.data, Waits::first);
    chain.launch(chain.two.data, chain.three.data, Waits::first);
    CHECK(chain.is_right());
  });
}

TEST_CASE("a programmatic dependent launch that reads before it waits is named, with the line") {
  if (!instrumented()) SKIP("plain stores are seen in the instrumented build");
  check_blamed_always(
      [] {
        Chain chain;
        chain.launch(chain.one.data, chain.two.data, Waits::first);
        chain.launch(chain.two.data, chain.three.data, Waits::too_late);
        chain.is_right();
      },
      "kernel add_one_early on stream 1, a programmatic dependent launch, reads the buffer of 1024 bytes of "
      "cudaMalloc, "
      "from byte 0 on, before it has waited for the kernel before it, while kernel add_one_early on stream 1 "
      "before it may still write that: griddepcontrol_wait must come first\n  at "
      "streams/test_dependent_launch.cu:");
}

TEST_CASE("a programmatic dependent launch that never waits is named") {
  if (!instrumented()) SKIP("plain stores are seen in the instrumented build");
  check_blamed_always(
      [] {
        Chain chain;
        chain.launch(chain.one.data, chain.two.data, Waits::first);
        chain.launch(chain.two.data, chain.three.data, Waits::never);
        chain.is_right();
      },
      "reads the buffer of 1024 bytes of cudaMalloc, from byte 0 on, and never waits for the kernel before "
      "it, "
      "while kernel add_one_early on stream 1 before it may still write that");
}

TEST_CASE("a programmatic dependent launch must not overwrite what the one before may still read") {
  if (!instrumented()) SKIP("plain stores are seen in the instrumented build");
  check_blamed_always(
      [] {
        Chain chain;
        chain.launch(chain.one.data, chain.two.data, Waits::first);
        chain.launch(chain.three.data, chain.one.data, Waits::never);
        chain.is_right();
      },
      "writes the buffer of 1024 bytes of cudaMalloc, from byte 0 on, and never waits for the kernel before "
      "it, while kernel add_one_early on stream 1 before it may still read that");
}

TEST_CASE("what a kernel that never waits comes after is what came before the kernel before it") {
  if (!instrumented()) SKIP("plain stores are seen in the instrumented build");
  // The third kernel may begin with the second, which may begin with the first.
  check_blamed_always(
      [] {
        Chain chain;
        chain.launch(chain.one.data, chain.two.data, Waits::first);
        chain.launch(chain.constants.data, chain.three.data, Waits::never);
        chain.launch(chain.two.data, chain.one.data, Waits::never);
        chain.is_right();
      },
      "reads the buffer of 1024 bytes of cudaMalloc, from byte 0 on, and never waits");
}

TEST_CASE("a kernel that does not wait is right where it is launched in the ordinary way, or nothing runs") {
  check_never_blamed([] {
    Chain chain;
    chain.launch(chain.one.data, chain.two.data, Waits::never);  // behind memsets that are over
    chain.launch(chain.two.data, chain.three.data, Waits::never, /*pdl=*/false);
    CHECK(chain.is_right());
  });
  check_never_blamed([] {
    Chain chain;
    chain.launch(chain.one.data, chain.two.data, Waits::first);
    CUDA_CHECK(cudaStreamSynchronize(chain.stream));
    chain.launch(chain.two.data, chain.three.data, Waits::never);
    CHECK(chain.is_right());
  });
  check_never_blamed([] {  // only between kernels is a launch dependent
    Chain chain;
    chain.launch(chain.one.data, chain.two.data, Waits::first);
    CUDA_CHECK(cudaMemcpyAsync(chain.one.data, chain.two.data, kBytes, cudaMemcpyDefault, chain.stream));
    chain.launch(chain.one.data, chain.three.data, Waits::never);
    CHECK(chain.is_right());
  });
}
