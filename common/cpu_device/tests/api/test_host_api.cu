/// @file
/// The host's side of the CUDA runtime, and the functions of <cuda_bf16.h>, <cuda_fp8.h> and kernels that
/// need no engine.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cuda/device_buffer.hpp"

TEST_CASE("fresh device memory is NaN") {
  float* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 100 * sizeof(float)) == cudaSuccess);
  CHECK(reinterpret_cast<uintptr_t>(memory) % 256 == 0);
  for (const float value : ladder::download(memory, 100)) REQUIRE(std::isnan(value));
  CHECK(cudaFree(memory) == cudaSuccess);
}

TEST_CASE("memory that does not exist is refused") {
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, std::numeric_limits<size_t>::max() / 2) == cudaErrorMemoryAllocation);
  CHECK(memory == nullptr);
  CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  int here = 0;
  CHECK(cudaFree(&here) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
}

TEST_CASE("memory in use is accounted for") {
  size_t free_before = 0, free_now = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free_before, &total) == cudaSuccess);
  CHECK(total > 0);
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 1 << 20) == cudaSuccess);
  REQUIRE(cudaMemGetInfo(&free_now, &total) == cudaSuccess);
  CHECK(free_before - free_now == 1 << 20);
  REQUIRE(cudaFree(memory) == cudaSuccess);
  REQUIRE(cudaMemGetInfo(&free_now, &total) == cudaSuccess);
  CHECK(free_before == free_now);
}

TEST_CASE("copies and fills arrive, on any stream") {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  char* device = nullptr;
  char* host = nullptr;
  REQUIRE(cudaMalloc(&device, 8) == cudaSuccess);
  REQUIRE(cudaMallocHost(&host, 8) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(device, "ladders", 8, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(device, 'L', 1, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  REQUIRE(cudaMemcpy(host, device, 8, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(std::string(host) == "Ladders");
  CHECK(cudaFree(device) == cudaSuccess);
  CHECK(cudaFreeHost(host) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("rows are copied from one pitch to another, and no row is wider than its pitch") {
  const char from[] = "abc.def.";
  char to[] = "------";
  REQUIRE(cudaMemcpy2D(to, 3, from, 4, 2, 2, cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(std::string(to) == "ab-de-");
  CHECK(cudaMemcpy2D(to, 3, from, 4, 4, 1, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("events measure time, unless they were never recorded") {
  cudaEvent_t start = nullptr, end = nullptr;
  float milliseconds = -1;
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaEventRecord(start) == cudaSuccess);
  REQUIRE(cudaEventRecord(end) == cudaSuccess);
  REQUIRE(cudaEventSynchronize(end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  CHECK(milliseconds >= 0);
  CHECK(cudaEventDestroy(start) == cudaSuccess);
  CHECK(cudaEventDestroy(end) == cudaSuccess);
  (void)cudaGetLastError();
}

TEST_CASE("errors have CUDA's names and words") {
  CHECK(std::string(cudaGetErrorName(cudaErrorMemoryAllocation)) == "cudaErrorMemoryAllocation");
  CHECK(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  int count = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 1);
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  (void)cudaGetLastError();
}

TEST_CASE("bf16 rounds to nearest even and keeps infinities and NaN") {
  const auto bits = [](float value) { return __bfloat16_as_ushort(__float2bfloat16(value)); };
  CHECK(bits(1.0f) == 0x3f80);
  CHECK(bits(__uint_as_float(0x3f808000)) == 0x3f80);  // halfway: to the even neighbour below
  CHECK(bits(__uint_as_float(0x3f818000)) == 0x3f82);  // halfway: to the even neighbour above
  CHECK(bits(__uint_as_float(0x3f808001)) == 0x3f81);
  CHECK(bits(__uint_as_float(0x7f7fffff)) == 0x7f80);  // the largest float becomes infinity
  CHECK(bits(-INFINITY) == 0xff80);
  CHECK(bits(NAN) == 0x7fff);
  CHECK(bits(-0.0f) == 0x8000);
  for (unsigned pattern = 0; pattern < 0x10000; ++pattern) {
    const auto value = __ushort_as_bfloat16(static_cast<unsigned short>(pattern));
    if (!std::isnan(static_cast<float>(value))) REQUIRE(bits(__bfloat162float(value)) == pattern);
  }
  const __nv_bfloat162 pair = __floats2bfloat162_rn(1, 2);
  CHECK(__low2float(pair) == 1);
  CHECK(__bfloat1622float2(pair).y == 2);
}

TEST_CASE("every e4m3 is what its neighbour is and the step between them") {
  const auto of = [](unsigned pattern) {
    __nv_fp8_e4m3 value;
    value.__x = static_cast<__nv_fp8_storage_t>(pattern);
    return static_cast<float>(value);
  };
  CHECK(of(0x38) == 1);
  CHECK(of(0x7e) == 448);
  float value = 0, step = 1.0f / 512;  // subnormals, and the first eight normal values, are as far apart
  for (unsigned pattern = 0; pattern < 0x7f; ++pattern) {
    CAPTURE(pattern);
    if (pattern >= 16 && pattern % 8 == 0) step *= 2;
    REQUIRE(of(pattern) == value);
    REQUIRE(of(pattern | 0x80) == -value);
    REQUIRE(std::signbit(of(pattern | 0x80)));
    value += step;
  }
  CHECK(std::isnan(of(0x7f)));
  CHECK(std::isnan(of(0xff)));
}

TEST_CASE("the first of four e4m3 is in the lowest byte") {
  __nv_fp8x4_e4m3 four;
  four.__x = 0xb8484038;
  const auto values = static_cast<float4>(four);
  CHECK(values.x == 1);
  CHECK(values.y == 2);
  CHECK(values.z == 4);
  CHECK(values.w == -1);
}

TEST_CASE("min and max choose like nvcc's") {
  CHECK(min(3, -2) == -2);
  CHECK(max(3u, 5) == 5u);
  CHECK(min(2.0f, NAN) == 2.0f);
  CHECK(max(1.5f, 2.5) == 2.5);
  CHECK(max(1ll << 40, 1ll) == 1ll << 40);
}
