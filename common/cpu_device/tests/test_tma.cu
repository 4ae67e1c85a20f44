/// @file
/// TMA: boxes between global and shared memory, their edges, and every rule of their asynchronous life broken
/// once.
#include <cuda.h>
#include <cuda_bf16.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tma.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int kRows = 16, kColumns = 64;  // of a box
using Tile = ladder::SwizzledTile<kRows, kColumns>;
constexpr uint32_t kTileBytes = sizeof(Tile);

struct Storage {
  Tile tile[2];
  ptx::Mbarrier full[2];
};
const Shape kShape{.block = 64, .shared_bytes = sizeof(Storage)};

/// A row-major bf16 matrix whose elements all differ, as far as bf16 can tell.
struct Matrix {
  int rows, columns;
  std::vector<__nv_bfloat16> elements;

  Matrix(int rows, int columns) : rows(rows), columns(columns) {
    for (int i = 0; i < rows * columns; ++i) elements.push_back(value(i / columns, i % columns));
  }
  static float value(int row, int column) { return static_cast<float>((row * 67 + column) % 251 + 1); }
  float at(int row, int column) const { return elements[static_cast<size_t>(row * columns + column)]; }

  CUtensorMap map(CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B) {
    const cuuint64_t extents[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
    const cuuint64_t strides[] = {static_cast<cuuint64_t>(columns) * sizeof(__nv_bfloat16)};
    const cuuint32_t box[] = {kColumns, kRows}, steps[] = {1, 1};
    CUtensorMap map;
    REQUIRE(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, elements.data(), extents,
                                   strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    return map;
  }
};

/// Thread 0 prepares a barrier for its own arrival.
void prepare(ptx::Mbarrier& full, const char* name = "full") {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_name(&full, name, -1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
}

/// Loads the box at (row, column) and returns what the block finds in its tile.
std::vector<float> load_box(Matrix& matrix, int row, int column, const Schedule& schedule) {
  std::vector<float> found(kRows * kColumns);
  const CUtensorMap map = matrix.map();
  run(kShape, schedule, [&] {
    auto& shared = ladder::shared_storage<Storage>();
    prepare(shared.full[0]);
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_bytes(&shared.full[0], kTileBytes);
      ptx::tma_load(&shared.tile[0], &map, column, row, &shared.full[0]);
    }
    ptx::mbarrier_wait(&shared.full[0], 0);
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += 64) {
      found[static_cast<size_t>(i)] = shared.tile[0].at(i / kColumns, i % kColumns);
    }
  });
  return found;
}

}  // namespace

TEST_CASE("a TMA load brings a box with the 128-byte swizzle, and zeros outside the tensor") {
  const CheckRaces checked;
  Matrix matrix(20, 72);
  for (const auto& [row, column] :
       {std::pair{0, 0}, {4, 8}, {8, 40}, {-3, -5}, {19, 71}, {-16, 0}, {40, 0}}) {
    CAPTURE(row, column);
    for (const Schedule& schedule : fixed_schedules()) {
      const std::vector<float> found = load_box(matrix, row, column, schedule);
      int wrong = 0;
      for (int r = 0; r < kRows; ++r) {
        for (int c = 0; c < kColumns; ++c) {
          const int y = row + r, x = column + c;
          const bool inside = y >= 0 && y < 20 && x >= 0 && x < 72;
          wrong += found[static_cast<size_t>(r * kColumns + c)] != (inside ? matrix.at(y, x) : 0.0f);
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a TMA store takes a tile back, clipped at the edges") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    Matrix matrix(20, 72);
    const CUtensorMap map = matrix.map();
    run(kShape, schedule, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += 64) {
        shared.tile[0].at(i / kColumns, i % kColumns) = static_cast<float>(-i % 256);
      }
      ptx::fence_proxy_async();
      __syncthreads();
      if (threadIdx.x == 0) {
        ptx::tma_store(&map, &shared.tile[0], 40, 10);
        ptx::tma_store(&map, &shared.tile[0], -60, -15);
        ptx::tma_store_commit();
        ptx::tma_store_wait<0>();
      }
    });
    int wrong = 0;
    for (int y = 0; y < 20; ++y) {
      for (int x = 0; x < 72; ++x) {
        float expected = Matrix::value(y, x);
        if (y >= 10 && x >= 40) expected = static_cast<float>(-((y - 10) * kColumns + x - 40) % 256);
        if (y < 1 && x < 4) expected = static_cast<float>(-((y + 15) * kColumns + x + 60) % 256);
        wrong += matrix.at(y, x) != expected;
      }
    }
    REQUIRE(wrong == 0);
  }
}
