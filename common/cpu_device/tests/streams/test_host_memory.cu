/// @file
/// What the host gives to copies: memory that is too small, sources that it changes before they were read,
/// and destinations that it reads before the copy has arrived.
#include "common/cpu_device/tests/stream_test.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a copy that reaches beyond its memory is named, with both sizes, the side and both places") {
  const std::string to_device =
      "cudaMemcpyAsync on stream 1 writes 1024 bytes to the buffer of 1024 bytes of cudaMalloc, from byte "
      "512 "
      "on: 512 too many\n  called at streams/test_host_memory.cu:";
  check_blamed_always(
      [] {
        Stream stream;
        DeviceInts memory;
        PinnedInts input;
        CUDA_CHECK(
            cudaMemcpyAsync(memory.data + kCount / 2, input.data, kBytes, cudaMemcpyHostToDevice, stream));
      },
      to_device);
  check_blamed_always(
      [] {
        DeviceInts memory;
        std::vector<int> output(2 * kCount);
        CUDA_CHECK(cudaMemcpy(output.data(), memory.data, 2 * kBytes, cudaMemcpyDeviceToHost));
      },
      "cudaMemcpy on the legacy stream reads 2048 bytes from the buffer of 1024 bytes of cudaMalloc, from "
      "byte 0 "
      "on: 1024 too many");
  check_blamed_always(
      [] {
        DeviceInts memory;
        const PinnedInts input;
        CUDA_CHECK(cudaMemcpy2D(memory.data, 64, input.data, 128, 64, 9, cudaMemcpyHostToDevice));
      },
      "cudaMemcpy2D on the legacy stream reads 1088 bytes from the pinned memory of 1024 bytes of the host");
  use({});
  {
    Stream stream;
    int* memory = nullptr;
    CUDA_CHECK(cudaMallocAsync(&memory, 100, stream));
    CHECK_THAT(
        blame([&] { cudaMemsetAsync(memory, 0, 101, stream); }),
        ContainsSubstring("cudaMemsetAsync on stream 1 writes 101 bytes to the buffer of 100 bytes allocated "
                          "on stream 1, from byte 0 on: 1 too many"));
    CUDA_CHECK(cudaFreeAsync(memory, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  void* memory = nullptr;
  const int line = __LINE__ + 1;
  CUDA_CHECK(cudaMalloc(&memory, 16));
  CHECK_THAT(blame([&] { cudaMemset(memory, 0, 17); }),
             ContainsSubstring("allocated at streams/test_host_memory.cu:" + std::to_string(line)));
  CUDA_CHECK(cudaFree(memory));
}

TEST_CASE("a copy may fill its memory to the last byte") {
  check_never_blamed([] {
    Stream stream;
    DeviceInts memory;
    PinnedInts input(3);
    CUDA_CHECK(
        cudaMemcpyAsync(memory.data + 1, input.data, kBytes - sizeof(int), cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(peek(memory.data + kCount - 1) == 3);
  });
}
