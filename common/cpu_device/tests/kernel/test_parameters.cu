/// @file
/// What kernels are given: TMA reads a tensor map in place, so it matters where the map lies.
#include <cuda.h>
#include <cuda_bf16.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "common/cpu_device/kernel/from_source/kernel_declaration.hpp"
#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/cpu_device/tests/tensor_map.cuh"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tma.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace parameters_test {
namespace {

struct Maps {
  int before;
  CUtensorMap a, b;
  int after;
};
struct Storage {
  alignas(128) char tile[1024];
  alignas(64) CUtensorMap map;
  ptx::Mbarrier full;
};

/// One thread loads a tile.
void load(const CUtensorMap* map) {
  auto& smem = ladder::shared_storage<Storage>();
  if (threadIdx.x) return;
  ptx::tma_prefetch(map);
  ptx::mbarrier_init(&smem.full, 1);
  ptx::mbarrier_arrive_expect_bytes(&smem.full, sizeof smem.tile);
  ptx::tma_load(smem.tile, map, 0, 0, &smem.full);
  ptx::mbarrier_wait(&smem.full, 0);
}

__global__ void constant(int, const __grid_constant__ Maps maps, int) { load(&maps.b); }
__global__ void of_the_grid(const __grid_constant__ CUtensorMap map) { load(&map); }
template <class T>
__global__ void __launch_bounds__(32, 1) copied(const int first, const T maps,  // not __grid_constant__
                                                const int last) {
  load(&maps.b);
  (void)first, (void)last;
}
__global__ void one_of_two(const __grid_constant__ CUtensorMap a, const CUtensorMap b) {
  load(&a);
  load(&b);
}
__global__ void local(const __grid_constant__ Maps maps) {
  const CUtensorMap mine = maps.a;
  load(&mine);
}
__global__ void in_shared(const __grid_constant__ Maps maps) {
  auto& smem = ladder::shared_storage<Storage>();
  smem.map = maps.a;
  load(&smem.map);
}
__global__ void in_global(const CUtensorMap* map) { load(map); }
/// A map that TMA does not read may be anywhere.
__global__ void unused(const CUtensorMap, const __grid_constant__ CUtensorMap map) { load(&map); }

CUtensorMap map_of(ladder::DeviceBuffer<__nv_bfloat16>& matrix) {
  return test::map_of(matrix.data(), 8, 64, 8, CU_TENSOR_MAP_SWIZZLE_NONE);
}

template <class... Params, class... Args>
std::string failure_of(void (*kernel)(Params...), const Args&... args) {
  std::string text;
  for (const Schedule& schedule : fixed_schedules()) {
    Options options;
    options.schedule = schedule;
    set_options(options);
    try {
      ladder::launch(kernel, {.grid = 2, .block = 32, .shared_bytes = sizeof(Storage)}, args...);
    } catch (const Failure& failure) {
      text = failure.what();
    }
  }
  return text;
}

}  // namespace

TEST_CASE("a tensor map in a parameter that is not __grid_constant__ is named when TMA reads it") {
  ladder::DeviceBuffer<__nv_bfloat16> matrix(64 * 8), other(64 * 8);
  const CUtensorMap a = map_of(matrix), b = map_of(other);
  const Maps maps{1, a, b, 2};
  CHECK(failure_of(constant, 3, maps, 4) == "");
  CHECK(failure_of(of_the_grid, a) == "");
  const ladder::DeviceBuffer<CUtensorMap> global(std::vector{a});
  CHECK(failure_of(in_global, global.data()) == "");
  CHECK(failure_of(unused, a, b) == "");
  const std::string text = failure_of(copied<Maps>, 3, maps, 4);
  CHECK_THAT(text, ContainsSubstring("prefetch.tensormap: the tensor map lies in the parameter 'maps' of the "
                                     "kernel at kernel/test_parameters.cu:"));
  CHECK_THAT(text, ContainsSubstring("which is not __grid_constant__"));
  CHECK_THAT(failure_of(one_of_two, a, b), ContainsSubstring("in the parameter 'b' of the kernel"));
}

TEST_CASE("a tensor map in a local variable or in shared memory is named") {
  ladder::DeviceBuffer<__nv_bfloat16> matrix(64 * 8), other(64 * 8);
  const Maps maps{1, map_of(matrix), map_of(other), 2};
  CHECK_THAT(failure_of(local, maps), ContainsSubstring("the tensor map lies in a local variable"));
  CHECK_THAT(failure_of(in_shared, maps), ContainsSubstring("the tensor map lies in shared memory"));
}

TEST_CASE("a kernel's declaration is read from the source") {
  const std::string source =
      "template <class T>\n"
      "__global__ void __launch_bounds__(f(1), 2)  // (\n"
      "    kernel(const __grid_constant__ Pair<A, B> maps, /* , */ const int k,\n"
      "           T epilogue) {\n"
      "  f(k);\n"
      "}\n"
      "void launch() { kernel<int>(); }\n"
      "__global__ void declared(int);\n";
  const KernelDeclaration found = read_declaration(source, 3);
  REQUIRE(found.is_known);
  CHECK(found.parameters ==
        std::vector<std::string>{"const __grid_constant__ Pair<A, B> maps", "const int k", "T epilogue"});
  CHECK(name_of_parameter(found.parameters[0]) == "maps");
  CHECK(found.first_line == 2);
  CHECK(found.last_line == 4);
  CHECK(read_declaration(source, 4).is_known);
  CHECK_FALSE(read_declaration(source, 1).is_known);
  CHECK_FALSE(read_declaration(source, 7).is_known);
  CHECK_FALSE(read_declaration(source, 8).is_known);
  CHECK_FALSE(read_declaration(source, 99).is_known);
  CHECK_FALSE(read_declaration("", 1).is_known);
}

}  // namespace parameters_test
