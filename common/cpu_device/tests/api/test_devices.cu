/// @file
/// Several devices: copies between them, peer access, and all-reduces of the shadow of NCCL.
#include <nccl.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "common/cpu_device/tests/stream_test.hpp"
#include "common/cuda/device_buffer.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Two devices for this program, before it makes its first call.
const int kTwoDevices = setenv("LADDER_CPU_DEVICES", "2", 1);

/// (Catch2's macros would keep a Failure to themselves.)
void ok(ncclResult_t result) {
  if (result != ncclSuccess) throw std::runtime_error(ncclGetErrorString(result));
}

/// On each device a buffer of floats and a stream.
struct Rank {
  explicit Rank(int device) : device(device) {
    CUDA_CHECK(cudaSetDevice(device));
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaMalloc(&values, kBytes));
    const std::vector<float> start(kCount, static_cast<float>(device + 1));
    ladder::copy_to_device(values, start.data(), kBytes);
    CUDA_CHECK(cudaSetDevice(0));
  }
  ~Rank() {
    cudaStreamDestroy(stream);
    cudaFree(values);
  }
  Rank(const Rank&) = delete;
  int device;
  cudaStream_t stream = nullptr;
  float* values = nullptr;
};

struct Communicator {
  Communicator() { REQUIRE(ncclCommInitAll(ranks, 2, nullptr) == ncclSuccess); }
  ~Communicator() {
    for (ncclComm_t rank : ranks) ncclCommDestroy(rank);
  }
  ncclComm_t ranks[2];
};

ncclResult_t all_reduce(Rank& rank, const Communicator& communicator, size_t count = kCount) {
  return ncclAllReduce(rank.values, rank.values, count, ncclFloat, ncclSum, communicator.ranks[rank.device],
                       rank.stream);
}

}  // namespace

TEST_CASE("as many devices as the environment says") {
  use({});
  int count = 0, can = 0;
  CUDA_CHECK(cudaGetDeviceCount(&count));
  CHECK(count == 2);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  CUDA_CHECK(cudaDeviceGetP2PAttribute(&can, cudaDevP2PAttrAccessSupported, 0, 1));
  CHECK(can == 1);
  CUDA_CHECK(cudaDeviceGetP2PAttribute(&can, cudaDevP2PAttrCudaArrayAccessSupported, 0, 1));
  CHECK(can == 0);
  CHECK(cudaDeviceGetP2PAttribute(&can, cudaDevP2PAttrAccessSupported, 1, 1) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
  CUDA_CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 1);
  CUDA_CHECK(cudaDeviceCanAccessPeer(&can, 1, 1));
  CHECK(can == 0);
  (void)cudaGetLastError();
}

TEST_CASE("a kernel is launched on a stream of the current device") {
  use({});
  Rank second(1);
  CHECK_THROWS_AS(launch_add_one(nullptr, nullptr, second.stream), ladder::CudaError);
  (void)cudaGetLastError();
}

TEST_CASE("a batch goes from device to device by an event") {
  check_never_blamed([] {
    Rank first(0), second(1);
    Event handed_over;
    CUDA_CHECK(cudaMemsetAsync(first.values, 0, kBytes, first.stream));
    CUDA_CHECK(cudaEventRecord(handed_over, first.stream));
    CUDA_CHECK(cudaStreamWaitEvent(second.stream, handed_over));
    CUDA_CHECK(cudaMemcpyPeerAsync(second.values, 1, first.values, 0, kBytes, second.stream));
    CUDA_CHECK(cudaStreamSynchronize(second.stream));
    CHECK(peek(second.values + kCount - 1) == 0);
  });
}

TEST_CASE("a hand-over without its event is named") {
  check_blamed_always(
      [] {
        Rank first(0), second(1);
        CUDA_CHECK(cudaMemsetAsync(first.values, 0, kBytes, first.stream));
        CUDA_CHECK(cudaMemcpyPeerAsync(second.values, 1, first.values, 0, kBytes, second.stream));
        CUDA_CHECK(cudaStreamSynchronize(second.stream));
        CUDA_CHECK(cudaStreamSynchronize(first.stream));
      },
      "the copy on stream 2 of device 1 reads the buffer of 1024 bytes of cudaMalloc, from byte 0 on, which "
      "the "
      "memset on stream 1 of device 0 writes");
}

TEST_CASE("a kernel touches the memory of another device only with peer access") {
  const auto program = [] {
    Rank first(0), second(1);
    CUDA_CHECK(cudaSetDevice(1));
    launch_add_one(reinterpret_cast<int*>(first.values), reinterpret_cast<int*>(second.values),
                   second.stream);
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaSetDevice(0));
  };
  check_blamed_always(program,
                      "which runs on device 1, touches the buffer of 1024 bytes of cudaMalloc of device 0 "
                      "without peer access: a cudaDeviceEnablePeerAccess");
  CUDA_CHECK(cudaSetDevice(1));
  CUDA_CHECK(cudaDeviceEnablePeerAccess(0, 0));
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorPeerAccessAlreadyEnabled);
  (void)cudaGetLastError();
  CUDA_CHECK(cudaSetDevice(0));
  check_never_blamed(program);
}

TEST_CASE("an all-reduce brings the sum to every rank") {
  check_never_blamed([] {
    Rank first(0), second(1);
    const Communicator communicator;
    ok(ncclGroupStart());
    ok(all_reduce(first, communicator));
    ok(all_reduce(second, communicator));
    ok(ncclGroupEnd());
    for (Rank* rank : {&first, &second}) {
      CUDA_CHECK(cudaStreamSynchronize(rank->stream));
      CHECK(peek(rank->values) == 3);
      CHECK(peek(rank->values + kCount - 1) == 3);
    }
  });
}

TEST_CASE("a rank that does not call is named by the wait that needs it") {
  check_blamed_always(
      [] {
        Rank first(0), second(1);
        const Communicator communicator;
        ok(ncclGroupStart());
        ok(all_reduce(first, communicator));
        ok(ncclGroupEnd());
        CUDA_CHECK(cudaStreamSynchronize(first.stream));
      },
      "the host waits for the allreduce on stream 1 of device 0 of 2 ranks, but rank 1 has not called it");
}

TEST_CASE("after an abort a rank says that another failed, and what it still waits for ends") {
  use({});
  Rank first(0);
  Communicator communicator;
  ok(ncclGroupStart());
  ok(all_reduce(first, communicator));
  ok(ncclGroupEnd());
  ncclResult_t failed = ncclSuccess;
  ok(ncclCommGetAsyncError(communicator.ranks[0], &failed));
  CHECK(failed == ncclSuccess);
  ok(ncclCommAbort(std::exchange(communicator.ranks[1], nullptr)));
  ok(ncclCommGetAsyncError(communicator.ranks[0], &failed));
  CHECK(failed == ncclRemoteError);
  CUDA_CHECK(cudaStreamSynchronize(first.stream));
}

TEST_CASE("a refused call takes its group with it") {
  use({});
  Rank first(0);
  const Communicator communicator;
  ok(ncclGroupStart());
  ok(all_reduce(first, communicator));
  CHECK(ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, communicator.ranks[1], nullptr) ==
        ncclInvalidArgument);
  CHECK(ncclGroupEnd() == ncclInvalidArgument);
  CUDA_CHECK(cudaStreamSynchronize(first.stream));
}

TEST_CASE("ranks that disagree, and ranks outside of a group, are named") {
  use({});
  CHECK_THAT(blame([] {
               Rank first(0), second(1);
               const Communicator communicator;
               ok(ncclGroupStart());
               ok(all_reduce(first, communicator));
               ok(all_reduce(second, communicator, kCount / 2));
               ok(ncclGroupEnd());
               CUDA_CHECK(cudaStreamSynchronize(first.stream));
             }),
             ContainsSubstring("ncclAllReduce: rank 0 gives 256 elements and another rank 128"));
  CHECK_THAT(blame([] {
               Rank first(0);
               const Communicator communicator;
               all_reduce(first, communicator);
             }),
             ContainsSubstring("outside of a group"));
}

TEST_CASE("an all-reduce that does not wait for the kernel before it is named") {
  check_blamed_always(
      [] {
        Rank first(0), second(1);
        const Communicator communicator;
        Stream other;
        CUDA_CHECK(cudaMemsetAsync(first.values, 0, kBytes, other));
        ok(ncclGroupStart());
        ok(all_reduce(first, communicator));
        ok(all_reduce(second, communicator));
        ok(ncclGroupEnd());
        for (Rank* rank : {&first, &second}) CUDA_CHECK(cudaStreamSynchronize(rank->stream));
        CUDA_CHECK(cudaStreamSynchronize(other));
      },
      "which the memset on stream 3 of device 0 writes");
}
