/// @file
/// Memory in the order of streams: pools, what they reserve, and what is used before or after its time.

#include "common/cpu_device/tests/stream_test.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr size_t kChunk = 2 << 20;

struct Pool {
  explicit Pool(size_t most = 0) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    properties.maxSize = most;
    CUDA_CHECK(cudaMemPoolCreate(&handle, &properties));
  }
  ~Pool() { cudaMemPoolDestroy(handle); }
  Pool(const Pool&) = delete;
  uint64_t get(cudaMemPoolAttr attribute) const {
    uint64_t value = 0;
    CUDA_CHECK(cudaMemPoolGetAttribute(handle, attribute, &value));
    return value;
  }
  void keep_all() const {
    uint64_t threshold = UINT64_MAX;
    CUDA_CHECK(cudaMemPoolSetAttribute(handle, cudaMemPoolAttrReleaseThreshold, &threshold));
  }
  int* allocate(size_t bytes, cudaStream_t stream) const {
    int* memory = nullptr;
    CUDA_CHECK(cudaMallocFromPoolAsync(&memory, bytes, handle, stream));
    return memory;
  }
  cudaMemPool_t handle = nullptr;
};

}  // namespace

TEST_CASE("memory is reused in its stream without a wait, and is NaN again") {
  check_never_blamed([] {
    Stream stream;
    Pool pool;
    int* const first = pool.allocate(kBytes, stream);
    CUDA_CHECK(cudaMemsetAsync(first, 0, kBytes, stream));
    CUDA_CHECK(cudaFreeAsync(first, stream));
    int* const second = pool.allocate(kBytes, stream);
    CHECK(first == second);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(peek(second) == -1);
    CHECK(pool.get(cudaMemPoolAttrReservedMemCurrent) == kChunk);
    CUDA_CHECK(cudaFreeAsync(second, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
  });
}

TEST_CASE("memory is reused in another stream only where an event orders it") {
  for (const bool ordered : {false, true}) {
    use({});
    Stream one, two;
    Event freed;
    Pool pool;
    int* const first = pool.allocate(kBytes, one);
    CUDA_CHECK(cudaFreeAsync(first, one));
    CUDA_CHECK(cudaEventRecord(freed, one));
    if (ordered) CUDA_CHECK(cudaStreamWaitEvent(two, freed));
    int* const second = pool.allocate(kBytes, two);
    CHECK((first == second) == ordered);
    CUDA_CHECK(cudaFreeAsync(second, two));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
}

TEST_CASE("what is reserved beyond the threshold goes back when the host waits") {
  use({});
  Stream stream;
  Pool pool;
  for (const bool keeps : {false, true}) {
    if (keeps) pool.keep_all();
    CUDA_CHECK(cudaFreeAsync(pool.allocate(3 * kChunk, stream), stream));
    CHECK(pool.get(cudaMemPoolAttrReservedMemCurrent) == 3 * kChunk);
    CHECK(pool.get(cudaMemPoolAttrUsedMemCurrent) == 0);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(pool.get(cudaMemPoolAttrReservedMemCurrent) == (keeps ? 3 * kChunk : 0));
  }
  CHECK(pool.get(cudaMemPoolAttrUsedMemHigh) == 3 * kChunk);
  CUDA_CHECK(cudaMemPoolTrimTo(pool.handle, 0));
  CHECK(pool.get(cudaMemPoolAttrReservedMemCurrent) == 0);
  CHECK(pool.get(cudaMemPoolAttrReservedMemHigh) == 3 * kChunk);
}

TEST_CASE("a pool gives out no more than its maximum") {
  use({});
  Stream stream;
  Pool pool(kChunk);
  int* const memory = pool.allocate(kChunk, stream);
  int* more = nullptr;
  CHECK(cudaMallocFromPoolAsync(&more, 256, pool.handle, stream) == cudaErrorMemoryAllocation);
  CHECK(more == nullptr);
  (void)cudaGetLastError();
  CUDA_CHECK(cudaFreeAsync(memory, stream));
  CUDA_CHECK(cudaFreeAsync(pool.allocate(256, stream), stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

TEST_CASE("memory of many sizes is cut from one chunk and becomes whole again") {
  check_never_blamed([] {
    Stream stream;
    Pool pool;
    for (int round = 0; round < 10; ++round) {
      std::vector<int*> memory;
      for (size_t i = 1; i <= 20; ++i) {
        memory.push_back(pool.allocate(i * 1000, stream));
        CUDA_CHECK(cudaMemsetAsync(memory.back(), 1, i * 1000, stream));
      }
      for (size_t i = 0; i < 20; ++i) CUDA_CHECK(cudaFreeAsync(memory[i * 7 % 20], stream));
    }
    CUDA_CHECK(cudaFreeAsync(pool.allocate(kChunk, stream), stream));
    CHECK(pool.get(cudaMemPoolAttrReservedMemHigh) == kChunk);
    CUDA_CHECK(cudaStreamSynchronize(stream));
  });
}

TEST_CASE("memory that is used after its free in the stream is named") {
  check_blamed_always(
      [] {
        Stream stream;
        int* memory = nullptr;
        DeviceInts to;
        CUDA_CHECK(cudaMallocAsync(&memory, kBytes, stream));
        CUDA_CHECK(cudaMemsetAsync(memory, 0, kBytes, stream));
        CUDA_CHECK(cudaFreeAsync(memory, stream));
        launch_add_one(memory, to.data, stream);
        CUDA_CHECK(cudaStreamSynchronize(stream));
      },
      "kernel add_one on stream 1 uses the buffer of 1024 bytes allocated on stream 1 after it was freed");
}

TEST_CASE("of memory that is used after its free, the lines of the use and of the free are said") {
  use({});
  const std::string here = ": streams/test_pools.cu:";
  constexpr int free = __LINE__ + 9;
  const auto use_after_free = [&](bool copies) {
    return blame([&] {
      Stream stream;
      int* memory = nullptr;
      DeviceInts to;
      PinnedInts output;
      CUDA_CHECK(cudaMallocAsync(&memory, kBytes, stream));
      CUDA_CHECK(cudaMemsetAsync(memory, 0, kBytes, stream));
      CUDA_CHECK(cudaFreeAsync(memory, stream));
      if (copies)
        CUDA_CHECK(cudaMemcpyAsync(output.data, memory, kBytes, cudaMemcpyDeviceToHost, stream));
      else
        launch_add_one(memory, to.data, stream);
      CUDA_CHECK(cudaStreamSynchronize(stream));
    });
  };
  const std::string freed = here + std::to_string(free);
  CHECK_THAT(use_after_free(true), ContainsSubstring("\n  cudaMemcpyAsync on stream 1" + here +
                                                     std::to_string(free + 2) + "\n  the cudaFreeAsync") &&
                                       ContainsSubstring(freed));
  CHECK_THAT(use_after_free(false), ContainsSubstring("\n  kernel add_one on stream 1") &&
                                        ContainsSubstring("launch_add_one") && ContainsSubstring(freed));
}

TEST_CASE("memory that is used on another stream before it exists there, or after it may be gone, is named") {
  check_blamed_always(
      [] {
        Stream one, two;
        int* memory = nullptr;
        CUDA_CHECK(cudaMallocAsync(&memory, kBytes, one));
        CUDA_CHECK(cudaMemsetAsync(memory, 0, kBytes, two));
        CUDA_CHECK(cudaDeviceSynchronize());
      },
      "the memset on stream 2 writes the buffer of 1024 bytes allocated on stream 1, from byte 0 on, which "
      "exists on stream 1 from its allocation on, and nothing orders stream 2 behind that: a "
      "cudaStreamWaitEvent is missing");
  check_blamed_always(
      [] {
        Stream one, two;
        int* memory = nullptr;
        DeviceInts to;
        CUDA_CHECK(cudaMallocAsync(&memory, kBytes, one));
        CUDA_CHECK(cudaStreamSynchronize(one));
        launch_add_one(memory, to.data, two);
        CUDA_CHECK(cudaFreeAsync(memory, one));
        CUDA_CHECK(cudaDeviceSynchronize());
      },
      "the cudaFreeAsync on stream 1 frees the buffer of 1024 bytes allocated on stream 1, from byte 0 on, "
      "which kernel add_one on stream 2 reads");
}

TEST_CASE("a pool may be destroyed while its memory is in use, and goes when that is freed") {
  const LiveResources before = live_resources();
  check_never_blamed([&] {
    Stream stream;
    DeviceInts result;
    PinnedInts input(41), output;
    int* memory = nullptr;
    {
      Pool pool;
      memory = pool.allocate(kBytes, stream);
    }
    CHECK(live_resources().pools == before.pools);
    CUDA_CHECK(cudaMemcpyAsync(memory, input.data, kBytes, cudaMemcpyHostToDevice, stream));
    launch_add_one(memory, result.data, stream);
    CUDA_CHECK(cudaFreeAsync(memory, stream));
    CUDA_CHECK(cudaMemcpyAsync(output.data, result.data, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(output.all(42));
  });
  CHECK(live_resources().device_bytes == before.device_bytes);
  size_t free_now = 0, all = 0;
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemGetInfo(&free_now, &all));
  CHECK(free_now == all);
}

TEST_CASE("a pool that was destroyed gives out nothing more, and is destroyed once") {
  use({});
  Stream stream;
  Pool pool;
  int *memory = pool.allocate(kBytes, stream), *more = nullptr;
  CUDA_CHECK(cudaMemPoolDestroy(pool.handle));
  CHECK(cudaMallocFromPoolAsync(&more, kBytes, pool.handle, stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaMemPoolDestroy(pool.handle) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
  CUDA_CHECK(cudaFreeAsync(memory, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

TEST_CASE("freeing twice in a stream is reported") {
  use({});
  Stream stream;
  int* memory = nullptr;
  CUDA_CHECK(cudaMallocAsync(&memory, kBytes, stream));
  CUDA_CHECK(cudaFreeAsync(memory, stream));
  cudaFreeAsync(memory, stream);
  CHECK_THAT(blame([] {}), ContainsSubstring("frees memory that was freed before") &&
                               ContainsSubstring("\n  the cudaFreeAsync on stream 1 (") &&
                               ContainsSubstring("\n  freed again at streams/test_pools.cu:"));
}
