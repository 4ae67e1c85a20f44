/// @file
/// What programs of others ask of the runtime: properties, occupancy, symbols, managed and pitched memory,
/// typed launches, the driver's calls; curand and cublas.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_fp16.h>
#include <curand.h>
#include <curand_kernel.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "common/cpu_device/tests/stream_test.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace {

__constant__ float weights[8];
__device__ int total;

__global__ void add_weights(int times) { atomicAdd(&total, times * static_cast<int>(weights[3])); }
__global__ void fill(int* memory, int value) { memory[blockIdx.x * blockDim.x + threadIdx.x] = value; }

}  // namespace

TEST_CASE("properties, attributes and versions agree") {
  cudaDeviceProp properties;
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  int major = 0, sms = 0, version = 0;
  REQUIRE(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess);
  REQUIRE(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess);
  REQUIRE(cudaRuntimeGetVersion(&version) == cudaSuccess);
  CHECK(properties.major == major);
  CHECK(properties.multiProcessorCount == sms);
  CHECK(version == CUDART_VERSION);
  CHECK(cudaGetDeviceProperties(&properties, 99) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
}

TEST_CASE("occupancy is what threads and shared memory allow") {
  struct {
    int threads;
    size_t shared_bytes;
    int blocks;
  } cases[] = {{1024, 0, 2},         {128, 0, 16},         {32, 0, 32},
               {256, 100 * 1024, 2}, {128, 227 * 1024, 1}, {2048, 0, 0}};
  for (const auto& [threads, shared_bytes, expected] : cases) {
    int blocks = -1;
    REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, threads, shared_bytes) ==
            cudaSuccess);
    CHECK(blocks == expected);
  }
  int grid = 0, threads = 0;
  REQUIRE(cudaOccupancyMaxPotentialBlockSize(&grid, &threads, fill) == cudaSuccess);
  CHECK(threads == 1024);
  CHECK(grid == 264);
}

TEST_CASE("variables of kernels are copied to and from, and end where they end") {
  use({});
  const float values[8] = {0, 1, 2, 3};
  const int zero = 0;
  REQUIRE(cudaMemcpyToSymbol(weights, values, sizeof values) == cudaSuccess);
  REQUIRE(cudaMemcpyToSymbol(total, &zero, sizeof zero) == cudaSuccess);
  int times = 2, sum = 0;
  void* arguments[] = {&times};
  REQUIRE(cudaLaunchKernel(add_weights, dim3(2), dim3(3), arguments) == cudaSuccess);
  REQUIRE(cudaMemcpyFromSymbol(&sum, total, sizeof sum) == cudaSuccess);
  CHECK(sum == 36);
  float* address = nullptr;
  REQUIRE(cudaGetSymbolAddress(&address, weights) == cudaSuccess);
  CHECK(address == weights);
  CHECK_THAT(blame([&] { cudaMemcpyToSymbol(weights, values, 32, 4); }), ContainsSubstring("4 too many"));
}

TEST_CASE("managed memory belongs to both sides, and advice must concern it") {
  use({});
  int* memory = nullptr;
  REQUIRE(cudaMallocManaged(&memory, 64 * sizeof(int)) == cudaSuccess);
  memory[3] = 1;
  CHECK(cudaMemPrefetchAsync(memory, 256, 0) == cudaSuccess);
  CHECK(cudaMemPrefetchAsync(memory, 257, 0) == cudaErrorInvalidValue);
  cudaLaunchConfig_t config = {};
  config.gridDim = 2, config.blockDim = 32;
  REQUIRE(cudaLaunchKernelEx(&config, fill, memory, 7) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(memory[63] == 7);
  cudaPointerAttributes attributes;
  REQUIRE(cudaPointerGetAttributes(&attributes, memory) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeManaged);
  CHECK(cudaFree(memory) == cudaSuccess);
}

TEST_CASE("pitched memory is filled and copied by rows") {
  use({});
  char* memory = nullptr;
  size_t pitch = 0;
  REQUIRE(cudaMallocPitch(&memory, &pitch, 100, 3) == cudaSuccess);
  CHECK(pitch == 512);
  REQUIRE(cudaMemset2D(memory, pitch, 5, 100, 3) == cudaSuccess);
  std::vector<char> rows(300);
  REQUIRE(cudaMemcpy2DAsync(rows.data(), 100, memory, pitch, 100, 3, cudaMemcpyDeviceToHost) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(rows == std::vector<char>(300, 5));
  CHECK(cudaFree(memory) == cudaSuccess);
}

TEST_CASE("launches that CUDA refuses return its error") {
  use({});
  int value = 0;
  int* memory = nullptr;
  void* arguments[] = {&memory, &value};
  CHECK(cudaLaunchKernel(fill, dim3(1), dim3(2000), arguments) == cudaErrorInvalidConfiguration);
  CHECK(cudaLaunchCooperativeKernel(fill, dim3(100), dim3(1024), arguments) ==
        cudaErrorCooperativeLaunchTooLarge);
  CHECK(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
}

TEST_CASE("the driver's functions are found by name") {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  REQUIRE(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result) ==
          cudaSuccess);
  CHECK(result == cudaDriverEntryPointSuccess);
  CHECK(function == reinterpret_cast<void*>(&cuTensorMapEncodeTiled));
  CHECK(cudaGetDriverEntryPointByVersion("cuNothing", &function, 12000, 0, &result) ==
        cudaErrorSymbolNotFound);
  CHECK(function == nullptr);
  cudaGetLastError();
}

TEST_CASE("the driver's attributes of a device are the runtime's") {
  CHECK(cuInit(0) == CUDA_SUCCESS);
  const auto attribute = [](CUdevice_attribute wanted) {
    int value = -1;
    CHECK(cuDeviceGetAttribute(&value, wanted, 0) == CUDA_SUCCESS);
    return value;
  };
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR) == 32);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK) == 1024);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 1);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 1);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED) == 0);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED) == 0);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED) == 0);
  int value = -1;
  CHECK(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(9999), 0) == CUDA_ERROR_INVALID_VALUE);
  cudaGetLastError();
}

TEST_CASE("the driver's errors have the runtime's numbers and words") {
  CUdevice device = -1;
  CHECK(cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  CHECK(cuDeviceGet(&device, 99) == CUDA_ERROR_INVALID_DEVICE);
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaMalloc(&memory, 64) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  if (graph) cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFree(memory);

  const char* text = nullptr;
  CHECK(cuGetErrorName(CUDA_ERROR_LAUNCH_FAILED, &text) == CUDA_SUCCESS);
  CHECK(std::string_view(text) == "CUDA_ERROR_LAUNCH_FAILED");
  CHECK(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text) == CUDA_SUCCESS);
  CHECK(std::string_view(text) == "an illegal memory access was encountered");
  // 9 is an error of the runtime alone, 9999 of neither.
  for (const int number : {9, 9999}) {
    CHECK(cuGetErrorString(static_cast<CUresult>(number), &text) == CUDA_ERROR_INVALID_VALUE);
    CHECK(text == nullptr);
    CHECK(cuGetErrorName(static_cast<CUresult>(number), &text) == CUDA_ERROR_INVALID_VALUE);
  }
  cudaGetLastError();
}

TEST_CASE("the driver's calls refuse null pointers") {
  CHECK(cuMemAlloc(nullptr, 16) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDeviceGetName(nullptr, 16, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDeviceTotalMem(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGetErrorString(CUDA_SUCCESS, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGetErrorName(CUDA_SUCCESS, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr pointer = 0;
  size_t bytes = 0;
  char name[16];
  CHECK(cuDeviceGetName(name, sizeof name, 0) == CUDA_SUCCESS);
  CHECK(cuDeviceTotalMem(&bytes, 0) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&pointer, 16) == CUDA_SUCCESS);
  CHECK(cuMemFree(pointer) == CUDA_SUCCESS);
}

TEST_CASE("cublas multiplies matrices by columns") {
  use({});
  constexpr int kM = 3, kN = 2, kK = 4;
  std::vector<float> a(kM * kK), b(kK * kN), c(kM * kN, 1);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 5) - 1;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 3) + 2;
  const auto upload = [](const std::vector<float>& values) {
    float* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, values.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    return memory;
  };
  cublasHandle_t handle;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  for (const bool transposed : {false, true}) {
    float *on_a = upload(a), *on_b = upload(b), *on_c = upload(c);
    const float alpha = 2, beta = 3;
    REQUIRE(cublasSgemm(handle, transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &alpha, on_a,
                        transposed ? kK : kM, on_b, kK, &beta, on_c, kM) == CUBLAS_STATUS_SUCCESS);
    std::vector<float> result(kM * kN);
    CUDA_CHECK(cudaMemcpy(result.data(), on_c, result.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kM; ++i) {
      for (int j = 0; j < kN; ++j) {
        float sum = 0;
        for (int k = 0; k < kK; ++k)
          sum += a[static_cast<size_t>(transposed ? i * kK + k : k * kM + i)] *
                 b[static_cast<size_t>(j * kK + k)];
        CHECK(result[static_cast<size_t>(j * kM + i)] == 2 * sum + 3);
      }
    }
    for (float* memory : {on_a, on_b, on_c}) CUDA_CHECK(cudaFree(memory));
  }
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("cublas multiplies a vector, adds matrices and copies, with steps and leading dimensions") {
  use({});
  // By columns: a has rows 1 3 5 and 2 4 6, and a third row that belongs to nobody.
  const std::vector<double> of_a{1, 2, -1, 3, 4, -1, 5, 6, -1}, of_x{1, 0, 10, 0, 100}, of_y{1000, 2000};
  const auto upload = [](const auto& values) {
    using Number = std::remove_cvref_t<decltype(values[0])>;
    Number* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, values.size() * sizeof(Number)));
    CUDA_CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(Number), cudaMemcpyHostToDevice));
    return memory;
  };
  const auto downloaded = []<class Number>(const Number* memory, size_t count) {
    std::vector<Number> values(count);
    CUDA_CHECK(cudaMemcpy(values.data(), memory, count * sizeof(Number), cudaMemcpyDeviceToHost));
    return values;
  };
  cublasHandle_t handle;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  double *const a = upload(of_a), *const x = upload(of_x), *const y = upload(of_y);
  const double two = 2, one = 1;
  CHECK(cublasDgemv(handle, CUBLAS_OP_N, 2, 3, &two, a, 3, x, 2, &one, y, 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(downloaded(y, 2) == std::vector<double>{1000 + 2 * 531, 2000 + 2 * 642});
  float* const b = upload(std::vector<float>{1, 2, 3, 4, 5, 6});
  float* const c = upload(std::vector<float>(7, -1));
  const float three = 3, none = 0, minus = -1;
  CHECK(cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, 3, 2, &three, b, 2, &none, nullptr, 3, c, 4) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(downloaded(c, 7) == std::vector<float>{3, 9, 15, -1, 6, 12, 18});
  CHECK(cublasSgeam(handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 1, &three, b, 3, &minus, b + 3, 3, c, 3) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(downloaded(c, 3) == std::vector<float>{-1, 1, 3});
  CHECK(cublasSgeam(handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 1, &three, nullptr, 3, &none, nullptr, 3, c, 3) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasScopy(handle, 3, b, 2, c, -1) == CUBLAS_STATUS_SUCCESS);
  CHECK(downloaded(c, 4) == std::vector<float>{5, 3, 1, -1});
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  for (double* memory : {a, x, y}) CUDA_CHECK(cudaFree(memory));
  for (float* memory : {b, c}) CUDA_CHECK(cudaFree(memory));
}

TEST_CASE("cublasLt adds a bias to each row, and rectifies") {
  use({});
  float *a = nullptr, *c = nullptr, *bias = nullptr;
  const float of_a[4] = {1, 2, 3, -4}, of_bias[2] = {0, -20};
  CUDA_CHECK(cudaMalloc(&a, sizeof of_a));
  CUDA_CHECK(cudaMalloc(&c, sizeof of_a));
  CUDA_CHECK(cudaMalloc(&bias, sizeof of_bias));
  CUDA_CHECK(cudaMemcpy(a, of_a, sizeof of_a, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(bias, of_bias, sizeof of_bias, cudaMemcpyHostToDevice));
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t description;
  cublasLtMatrixLayout_t layout;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 2, 2, 2) == CUBLAS_STATUS_SUCCESS);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
  cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  const float one = 1, zero = 0;
  REQUIRE(cublasLtMatmul(handle, description, &one, a, layout, a, layout, &zero, c, layout, c, layout,
                         nullptr, nullptr, 0, nullptr) == CUBLAS_STATUS_SUCCESS);
  std::vector<float> result(4);
  CUDA_CHECK(cudaMemcpy(result.data(), c, sizeof of_a, cudaMemcpyDeviceToHost));
  CHECK(result == std::vector<float>{5, 0, 0, 5});
  cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(description);
  CHECK(cublasLtDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  for (float* memory : {a, c, bias}) CUDA_CHECK(cudaFree(memory));
}

TEST_CASE("random numbers are those of the distribution, and the same for a seed") {
  use({});
  constexpr size_t kSamples = 4096;
  float* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, kSamples * sizeof(float)));
  std::vector<float> first(kSamples), again(kSamples);
  for (std::vector<float>* samples : {&first, &again}) {
    curandGenerator_t generator;
    REQUIRE(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT) == CURAND_STATUS_SUCCESS);
    REQUIRE(curandSetPseudoRandomGeneratorSeed(generator, 42) == CURAND_STATUS_SUCCESS);
    REQUIRE(curandGenerateNormal(generator, memory, kSamples, 1, 2) == CURAND_STATUS_SUCCESS);
    CUDA_CHECK(cudaMemcpy(samples->data(), memory, kSamples * sizeof(float), cudaMemcpyDeviceToHost));
    REQUIRE(curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS);
  }
  CHECK(first == again);
  double mean = 0, variance = 0;
  for (const float x : first) mean += static_cast<double>(x) / kSamples;
  for (const float x : first) variance += (x - mean) * (x - mean) / kSamples;
  CHECK(std::fabs(mean - 1) < 0.15);
  CHECK(std::fabs(variance - 4) < 0.5);
  CUDA_CHECK(cudaFree(memory));
  curandState one, other;
  curand_init(7, 0, 0, &one);
  curand_init(7, 1, 0, &other);
  CHECK(curand(&one) != curand(&other));
  const float uniform = curand_uniform(&one);
  CHECK((uniform > 0 && uniform <= 1));
}
