/// @file
/// Compiles kernels by NVRTC, the compiler that the CUDA toolkit has as a library.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <nvrtc.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "06_clusters_dsmem/any_shape/kernel_source.hpp"
#include "06_clusters_dsmem/any_shape/on_demand.hpp"
#include "common/cuda/error.hpp"
#include "common/cuda/residency.hpp"
#include "common/host/base/text.hpp"

namespace lesson06::any_shape {
namespace {

/// NVRTC's functions, found at run time: who has a driver but no toolkit runs the kernels that are built in.
struct Nvrtc {
  std::string missing;  ///< why there is no NVRTC; empty if there is
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcAddNameExpression) add_name = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetLoweredName) lowered_name = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;

  Nvrtc() {
#ifdef LADDER_TRACE
    missing = "these kernels are traced";
    return;
#endif
    const std::string name = fmt::format("libnvrtc.so.{}", CUDART_VERSION / 1000);
    void* library = dlopen((std::string(LADDER_CUDA_LIBRARIES "/") + name).c_str(), RTLD_NOW);
    if (!library) library = dlopen(name.c_str(), RTLD_NOW);
    if (!library) {
      missing = name + " is not found";
      return;
    }
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, symbol));
      if (!function) missing = name + " has no " + symbol;
    };
    find(version, "nvrtcVersion");
    find(create, "nvrtcCreateProgram");
    find(add_name, "nvrtcAddNameExpression");
    find(compile, "nvrtcCompileProgram");
    find(log_size, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(lowered_name, "nvrtcGetLoweredName");
    find(cubin_size, "nvrtcGetCUBINSize");
    find(cubin, "nvrtcGetCUBIN");
    find(destroy, "nvrtcDestroyProgram");
    if (missing.empty() && !std::filesystem::exists(LADDER_CUDA_INCLUDE "/cuda_bf16.h"))
      missing = LADDER_CUDA_INCLUDE " has no cuda_bf16.h";
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc only;
  return only;
}

const std::vector<const char*> kOptions = {"--gpu-architecture=sm_90a", "--std=c++20", "-default-device",
                                           "-I" LADDER_CUDA_INCLUDE, "-I" LADDER_CUDA_INCLUDE "/cccl"};

/// Headers of the C++ library and of the driver, as far as kernels need them. NVRTC has none.
constexpr const char* kIntegers =
    "#pragma once\n#include <cuda/std/cstdint>\nusing cuda::std::uint8_t, cuda::std::uint16_t, "
    "cuda::std::uint32_t, cuda::std::uint64_t, cuda::std::int64_t, cuda::std::uintptr_t;\n";
constexpr const char* kStringView =
    "#pragma once\nnamespace std {\nstruct string_view {\n  bool operator==(const char*) const;\n};\n}\n";
constexpr const char* kTensorMap =
    "#pragma once\nstruct CUtensorMap_st {\n  alignas(64) unsigned long long opaque[16];\n};\n"
    "using CUtensorMap = CUtensorMap_st;\n";

uint64_t hash_of(uint64_t hash, std::string_view text) {  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return (hash ^ 0xff) * 0x100000001b3;
}

/// What the bits of a kernel depend on, but for its name.
std::string build_key() {
  static const std::string key = [] {
    int major = 0, minor = 0;
    nvrtc().version(&major, &minor);
    uint64_t hash = 0xcbf29ce484222325, other = 0x84222325cbf29ce4;
    const auto add = [&](std::string_view text) { hash = hash_of(hash, text), other = hash_of(other, text); };
    for (const auto& [name, text] : kKernelHeaders) add(name), add(text);
    for (const char* const option : kOptions) add(option);
    for (const char* const text : {kIntegers, kStringView, kTensorMap}) add(text);
    return fmt::format("{:016x}{:016x}, CUDA {}.{}, NVRTC {}.{}", hash, other, CUDART_VERSION / 1000,
                       CUDART_VERSION % 1000 / 10, major, minor);
  }();
  return key;
}

std::string expression_of(const Plan& plan, const std::string& epilogue) {
  return fmt::format("lesson06::any_shape::gemm<lesson06::any_shape::Shape<{}, {}, {}, {}, {}, {}, {}>, {}>",
                     plan.tile_m, plan.tile_n, plan.cluster_m, plan.cluster_n, plan.cluster_k, plan.stream_k,
                     plan.swapped, epilogue);
}

/// The kernel's mangled name, a newline, and its cubin.
std::string compile(const std::string& expression) {
  std::vector<const char*> names = {"cstdint", "stdint.h", "string_view", "cuda.h"},
                           texts = {kIntegers, kIntegers, kStringView, kTensorMap};
  for (const auto& [name, text] : kKernelHeaders) names.push_back(name), texts.push_back(text);
  nvrtcProgram program = nullptr;
  const auto check = [](nvrtcResult result, const std::string& what) {
    if (result != NVRTC_SUCCESS) throw std::runtime_error("NVRTC: " + what);
  };
  check(nvrtc().create(&program, "#include \"06_clusters_dsmem/any_shape/gemm.cuh\"\n", "any_shape.cu",
                       static_cast<int>(names.size()), texts.data(), names.data()),
        "no program");
  check(nvrtc().add_name(program, expression.c_str()), "no name");
  if (nvrtc().compile(program, static_cast<int>(kOptions.size()), kOptions.data()) != NVRTC_SUCCESS) {
    size_t size = 0;
    nvrtc().log_size(program, &size);
    std::string log(size, ' ');
    nvrtc().log(program, log.data());
    nvrtc().destroy(&program);
    check(NVRTC_ERROR_COMPILATION, ladder::one_line(log.substr(0, 400)));
  }
  const char* name = nullptr;
  size_t size = 0;
  check(nvrtc().lowered_name(program, expression.c_str(), &name), "no mangled name");
  check(nvrtc().cubin_size(program, &size), "no cubin");
  std::string result = std::string(name) + "\n";
  const size_t begin = result.size();
  result.resize(begin + size);
  check(nvrtc().cubin(program, result.data() + begin), "no cubin");
  nvrtc().destroy(&program);
  return result;
}

/// From the cache, or compiled and put there.
std::string find_or_compile(const Plan& plan, const std::string& epilogue) {
  const std::string expression = expression_of(plan, epilogue), key = build_key() + ", " + expression;
  std::string path;
  try {
    path = fmt::format("{}/{:016x}", kernel_cache(), hash_of(0xcbf29ce484222325, key));
    if (const auto cached = read_cached(path, key)) return *cached;
  } catch (const std::runtime_error&) {  // no place for a cache
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string compiled = compile(expression);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::string why_not_kept = path.empty() ? "there is no cache: neither XDG_CACHE_HOME nor HOME is set"
                                                : write_cached(path, key, compiled);
  std::cerr << fmt::format("06_any_shape: compiled {} in {:.1f} s, {}", plan.name(), seconds.count(),
                           why_not_kept.empty() ? "and kept it" : "but cannot keep it: " + why_not_kept)
            << std::endl;
  return compiled;
}

}  // namespace

bool compiles_on_demand() {
  static const bool can = [] {
    if (nvrtc().missing.empty()) return true;
    std::cerr << "06_any_shape: no kernel is compiled on demand: " << nvrtc().missing
              << "; a few that are built in serve" << std::endl;
    return false;
  }();
  return can;
}

const void* kernel_on_demand(const Plan& plan, const std::string& epilogue) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, cudaKernel_t>;  // never unloaded
  const std::string name = plan.name() + epilogue;
  const std::lock_guard lock(mutex);
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  const std::string compiled = find_or_compile(plan, epilogue);
  const size_t end = compiled.find('\n');
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  CUDA_CHECK(
      cudaLibraryLoadData(&library, compiled.data() + end + 1, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUDA_CHECK(cudaLibraryGetKernel(&kernel, library, compiled.substr(0, end).c_str()));
  known[name] = kernel;
  return kernel;
}

void launch_on_demand(const void* kernel, const ladder::LaunchConfig& config, const void* const* arguments) {
  ladder::detail::allow_shared_bytes(kernel, config.shared_bytes);
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  if (config.cluster.x > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {config.cluster.x, 1, 1};
  }
  if (config.pdl) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t cuda{};
  cuda.gridDim = config.grid;
  cuda.blockDim = config.block;
  cuda.dynamicSmemBytes = config.shared_bytes;
  cuda.stream = config.stream;
  cuda.attrs = attributes;
  cuda.numAttrs = count;
  CUDA_CHECK(cudaLaunchKernelExC(&cuda, kernel, const_cast<void**>(arguments)));
}

}  // namespace lesson06::any_shape
