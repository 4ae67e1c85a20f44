/// @file
/// cuRAND's generators of the host. The numbers are known at the call; they arrive in the order of the
/// stream.
#include "common/cpu_device/declarations/curand_api.hpp"

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "common/cpu_device/api/host_calls.hpp"

struct curandGenerator_st {
  cudaStream_t stream = nullptr;
  bool to_host = false;
  unsigned long long seed = 0, offset = 0;
  bool is_new = true;
  std::mt19937_64 numbers;
};

namespace cpu_device {
namespace {

curandStatus_t create(curandGenerator_t* generator, bool to_host) {
  if (!generator) return CURAND_STATUS_OUT_OF_RANGE;
  *generator = new curandGenerator_st;
  (*generator)->to_host = to_host;
  return CURAND_STATUS_SUCCESS;
}

template <class T, class Draw>
curandStatus_t generate(const char* call, curandGenerator_t generator, T* to, size_t count,
                        const Draw& draw) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  if (!to) return CURAND_STATUS_OUT_OF_RANGE;
  if (!count) return CURAND_STATUS_SUCCESS;
  if (std::exchange(generator->is_new, false)) {
    generator->numbers.seed(generator->seed);
    generator->numbers.discard(generator->offset);
  }
  std::vector<T> values(count);
  for (T& value : values) value = draw(generator->numbers);
  const size_t bytes = count * sizeof(T);
  if (generator->to_host) {
    std::memcpy(to, values.data(), bytes);
    return CURAND_STATUS_SUCCESS;
  }
  const cudaError_t error =
      call_library(call, generator->stream, {{reinterpret_cast<const std::byte*>(to), bytes, true}},
                   [to, bytes, values = std::move(values)] { std::memcpy(to, values.data(), bytes); });
  return error == cudaSuccess ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}

/// In 0 to 1, without the 0.
template <class T>
T uniform(std::mt19937_64& numbers) {
  return 1 - std::generate_canonical<T, 64>(numbers);
}

}  // namespace
}  // namespace cpu_device

using namespace cpu_device;

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t) {
  return create(generator, /*to_host=*/false);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t) {
  return create(generator, /*to_host=*/true);
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->seed = seed;
  generator->is_new = true;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->offset = offset;
  generator->is_new = true;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* to, size_t count) {
  return generate("curandGenerate", generator, to, count,
                  [](auto& numbers) { return static_cast<unsigned>(numbers() >> 32); });
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* to, size_t count) {
  return generate("curandGenerateUniform", generator, to, count,
                  [](auto& numbers) { return uniform<float>(numbers); });
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* to, size_t count) {
  return generate("curandGenerateUniformDouble", generator, to, count,
                  [](auto& numbers) { return uniform<double>(numbers); });
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* to, size_t count, float mean,
                                    float deviation) {
  std::normal_distribution<float> normal(mean, deviation);
  return generate("curandGenerateNormal", generator, to, count,
                  [&](auto& numbers) { return normal(numbers); });
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* to, size_t count, double mean,
                                          double deviation) {
  std::normal_distribution<double> normal(mean, deviation);
  return generate("curandGenerateNormalDouble", generator, to, count,
                  [&](auto& numbers) { return normal(numbers); });
}
