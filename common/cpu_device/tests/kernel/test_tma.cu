/// @file
/// TMA: boxes between global and shared memory, their edges, and every rule of their asynchronous life broken
/// once.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/cpu_device/tests/tensor_map.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/tma_3d.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace tma_test {
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

  /// Of the elements, or of a tensor of this shape at `memory`.
  CUtensorMap map(CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B, void* memory = nullptr) {
    return map_of(memory ? memory : elements.data(), rows, columns, kRows, swizzle);
  }
};

/// Thread 0 prepares a barrier for its own arrival.
void prepare(ptx::Mbarrier& full) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
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

TEST_CASE("a TMA store into a group of columns is clipped at the end of the group") {
  constexpr int kGroup = 40;
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    Matrix matrix(20, 88);  // two groups, and 8 columns that belong to none
    const cuuint64_t extents[] = {kGroup, 20, 2}, strides[] = {88 * 2, kGroup * 2};
    const cuuint32_t box[] = {kColumns, kRows, 1}, steps[] = {1, 1, 1};
    CUtensorMap map;
    REQUIRE(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, matrix.elements.data(), extents,
                                   strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                   CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    run(kShape, schedule, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += 64)
        shared.tile[0].at(i / kColumns, i % kColumns) = static_cast<float>(-i % 256);
      ptx::fence_proxy_async();
      __syncthreads();
      if (threadIdx.x == 0) {
        ptx::tma_store_3d(&map, &shared.tile[0], 8, 10, 1);
        ptx::tma_store_commit();
        ptx::tma_store_wait<0>();
      }
    });
    int wrong = 0;
    for (int y = 0; y < 20; ++y)
      for (int x = 0; x < 88; ++x) {
        const bool stored = y >= 10 && x >= kGroup + 8 && x < 2 * kGroup;
        const float expected =
            stored ? static_cast<float>(-((y - 10) * kColumns + x - kGroup - 8) % 256) : Matrix::value(y, x);
        wrong += matrix.at(y, x) != expected;
      }
    REQUIRE(wrong == 0);
  }
}

namespace {

/// What a kernel is blamed for whose thread 0 runs `body` after the barriers are prepared.
template <class Body>
std::string blame(const Schedule& schedule, Body&& body) {
  return failure(kShape, schedule, [&] {
    auto& shared = ladder::shared_storage<Storage>();
    prepare(shared.full[0]);
    if (threadIdx.x == 0) body(shared);
  });
}

template <class Body>
void check_named_always(const std::string& words, Body&& body) {
  for (const Schedule& schedule : fixed_schedules())
    CHECK_THAT(blame(schedule, body), ContainsSubstring(words));
}

}  // namespace

TEST_CASE("the driver's rules for tensor maps are kept") {
  alignas(16) __nv_bfloat16 matrix[64];
  const auto encode = [&](uint32_t rank, const void* base, cuuint64_t columns, cuuint64_t stride,
                          cuuint32_t box_columns, cuuint32_t box_rows,
                          CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B) {
    // A third dimension would have a stride that is no multiple of 16.
    const cuuint64_t extents[] = {columns, 8, 2}, strides[] = {stride, 8};
    const cuuint32_t box[] = {box_columns, box_rows, 1}, steps[] = {1, 1, 1};
    CUtensorMap map;
    return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, rank, const_cast<void*>(base),
                                  extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CHECK(encode(2, matrix, 8, 16, 64, 256) == CUDA_SUCCESS);
  CHECK(encode(2, matrix, 8, 16, 256, 8, CU_TENSOR_MAP_SWIZZLE_NONE) == CUDA_SUCCESS);
  CHECK(encode(3, matrix, 8, 16, 64, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(encode(2, matrix + 4, 8, 16, 64, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(encode(2, nullptr, 8, 16, 64, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(encode(2, matrix, 0, 16, 64, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(encode(2, matrix, 7, 14, 64, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(encode(2, matrix, 8, 16, 72, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(encode(2, matrix, 8, 16, 4, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(encode(2, matrix, 8, 16, 64, 257) == CUDA_ERROR_INVALID_VALUE);
  CHECK(encode(2, matrix, 8, 16, 64, 8, CU_TENSOR_MAP_SWIZZLE_64B) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("without a swizzle the rows of a box follow each other") {
  Matrix matrix(20, 72);
  const CUtensorMap map = matrix.map(CU_TENSOR_MAP_SWIZZLE_NONE);
  int wrong = -1;
  run(kShape, {}, [&] {
    auto& shared = ladder::shared_storage<Storage>();
    prepare(shared.full[0]);
    if (threadIdx.x) return;
    auto* flat = reinterpret_cast<__nv_bfloat16*>(&shared.tile[0]) + 64;  // 128 bytes on are aligned enough
    ptx::mbarrier_arrive_expect_bytes(&shared.full[0], kTileBytes);
    ptx::tma_load(flat, &map, 5, 2, &shared.full[0]);
    ptx::mbarrier_wait(&shared.full[0], 0);
    wrong = 0;
    for (int i = 0; i < kRows * kColumns; ++i)
      wrong += float(flat[i]) != matrix.at(2 + i / kColumns, 5 + i % kColumns);
  });
  CHECK(wrong == 0);
}

TEST_CASE("a load is not there before its barrier says so") {
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.landing != Landing::late) continue;
    Matrix matrix(16, 64);
    const CUtensorMap map = matrix.map();
    float early = 0;
    run(kShape, schedule, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      prepare(shared.full[0]);
      if (threadIdx.x) return;
      ptx::mbarrier_arrive_expect_bytes(&shared.full[0], kTileBytes);
      ptx::tma_load(&shared.tile[0], &map, 0, 0, &shared.full[0]);
      early = shared.tile[0].at(3, 3);
      ptx::mbarrier_wait(&shared.full[0], 0);
    });
    CHECK(std::isnan(early));
  }
}

TEST_CASE("places and maps that TMA cannot use are named") {
  Matrix matrix(16, 64);
  const CUtensorMap map = matrix.map(), flat = matrix.map(CU_TENSOR_MAP_SWIZZLE_NONE), none = {};
  check_named_always(
      "TMA load: shared memory + 0x80 is not aligned to 1024 bytes, after which the 128-byte swizzle "
      "repeats: elsewhere its pattern is "
      "shifted",
      [&](Storage& shared) { ptx::tma_load(shared.tile[0].panels[0][1], &map, 0, 0, &shared.full[0]); });
  check_named_always("TMA store: shared memory + 0x10 is not aligned to 128 bytes",
                     [&](Storage& shared) { ptx::tma_store(&flat, &shared.tile[0].panels[0][0][8], 0, 0); });
  check_named_always(
      " bytes of shared memory: a box of 16 rows of 128 bytes begins at shared.tile[1].panels[0][9], and "
      "shared.tile[1].panels[0] has 16 rows: is an index too large?",
      [&](Storage& shared) { ptx::tma_load(&shared.tile[1].panels[0][9], &flat, 0, 0, &shared.full[0]); });
  check_named_always(
      "TMA store reaches over the end of the block's 5120 bytes of shared memory: a box of 16 rows of 128 "
      "bytes begins where shared.tile[1].panels[0][16] would be, and shared.tile[1].panels[0] has 16 rows: "
      "is "
      "an index too large?",
      [&](Storage& shared) { ptx::tma_store(&flat, &shared.tile[1].panels[0][kRows], 0, 0); });
  check_named_always("TMA store reaches over the end of the block's 5120 bytes of shared memory\n",
                     [&](Storage& shared) {  // of no row
                       ptx::tma_store(&flat, &shared.tile[1].panels[0][kRows - 1][8], 0, 0);
                     });
  const CUtensorMap high = map_of(matrix.elements.data(), 16, 64, 2 * kRows);
  check_named_always(
      " bytes of shared memory: a box of 32 rows of 128 bytes (4096 bytes) goes to shared.tile[1].panels[0], "
      "which has room for 16 (2048 bytes): is the box of the tensor map too large?",
      [&](Storage& shared) { ptx::tma_load(&shared.tile[1], &high, 0, 0, &shared.full[0]); });
  check_named_always(
      "a box of 32 rows of 128 bytes begins at shared.tile[1].panels[0][1], and shared.tile[1].panels[0] has "
      "16 "
      "rows: is the box of the tensor map too large?",
      [&](Storage& shared) { ptx::tma_load(&shared.tile[1].panels[0][1], &high, 0, 0, &shared.full[0]); });
  check_named_always("TMA load: the address is not in the shared memory of the block", [&](Storage& shared) {
    ptx::tma_load(matrix.elements.data(), &map, 0, 0, &shared.full[0]);
  });
  check_named_always("the tensor map was not made by cuTensorMapEncodeTiled",
                     [&](Storage& shared) { ptx::tma_load(&shared.tile[0], &none, 0, 0, &shared.full[0]); });
  check_named_always("prefetch.tensormap: the tensor map was not made by cuTensorMapEncodeTiled",
                     [&](Storage&) { ptx::tma_prefetch(&none); });
  check_named_always("the mbarrier at shared memory + 0x1008 was never initialised",
                     [&](Storage& shared) { ptx::tma_load(&shared.tile[0], &map, 0, 0, &shared.full[1]); });
}

TEST_CASE("a tensor that reaches behind its allocation is named when TMA is asked for such a row") {
  constexpr size_t kRowBytes = kColumns * sizeof(__nv_bfloat16);
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, (kRows - 1) * kRowBytes) == cudaSuccess);
  Matrix matrix(kRows, kColumns);
  const CUtensorMap map = matrix.map(CU_TENSOR_MAP_SWIZZLE_128B, memory);
  check_named_always("TMA load: row 15 of the tensor ",
                     [&](Storage& shared) { ptx::tma_load(&shared.tile[0], &map, 0, 0, &shared.full[0]); });
  check_named_always("TMA store: row 15 of the tensor ",
                     [&](Storage& shared) { ptx::tma_store(&map, &shared.tile[0], 0, 0); });
  REQUIRE(cudaFree(memory) == cudaSuccess);
}

TEST_CASE("a block that exits while a load is in flight, or whose bytes nobody expected, is named") {
  Matrix matrix(16, 64);
  const CUtensorMap map = matrix.map();
  for (const Schedule& schedule : fixed_schedules()) {
    const bool late = schedule.landing == Landing::late;
    CHECK_THAT(blame(schedule,
                     [&](Storage& shared) { ptx::tma_load(&shared.tile[0], &map, 0, 0, &shared.full[0]); }),
               ContainsSubstring(
                   late ? "the block exits while this copy from or to its shared memory is in flight\n  no "
                          "thread has waited at full"
                        : "the block exits after 2048 bytes more than were expected came at full"));
  }
  const Schedule late{Order::round_robin, Landing::late};
  CHECK_THAT(
      blame(late,
            [&](Storage& shared) {
              ptx::mbarrier_arrive_expect_bytes(&shared.full[0], kTileBytes);
              for (Tile& tile : shared.tile) ptx::tma_load(&tile, &map, 0, 0, &shared.full[0]);
              ptx::mbarrier_wait(&shared.full[0], 0);
            }),
      ContainsSubstring("TMA load: brings 2048 bytes more than expected: a box of 16 rows of 128 bytes, "
                        "where 0 are left of the 2048 "
                        "that are expected: the box is too large, or too few bytes were expected at full"));
  CHECK_THAT(blame(late,
                   [&](Storage& shared) {
                     ptx::mbarrier_arrive_expect_bytes(&shared.full[0], kTileBytes);
                     ptx::tma_load(&shared.tile[0], &map, 0, 0, &shared.full[0]);
                     ptx::mbarrier_wait(&shared.full[0], 1);
                   }),
             ContainsSubstring("is in flight\n  in block"));  // the bytes are right
  // The second fill of full[0], for which nobody waits.
  CHECK_THAT(
      blame(late,
            [&](Storage& shared) {
              for (uint32_t fill = 0; fill < 2; ++fill) {
                ptx::mbarrier_arrive_expect_bytes(&shared.full[0], kTileBytes);
                ptx::tma_load(&shared.tile[0], &map, 0, 0, &shared.full[0]);
                if (!fill) ptx::mbarrier_wait(&shared.full[0], 0);
              }
            }),
      ContainsSubstring("is in flight\n  2 fills of full were begun, and warp 0 lane 0 has waited once "
                        "(test_tma.cu:") &&
          ContainsSubstring("): is a wait missing, or a fill too many?\n"));
  check_named_always("the block exits while 64 bytes that were expected have not come at full",
                     [&](Storage& shared) { ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 64); });
}

TEST_CASE("bytes that counted at another barrier are looked for where as many are missing") {
  Matrix matrix(16, 64);
  const CUtensorMap map = matrix.map();
  const auto load = [&](Storage& shared) {
    ptx::mbarrier_init(&shared.full[1], 1);
    ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 2 * kTileBytes);
    for (int i = 0; i < 2; ++i) ptx::tma_load(&shared.tile[i], &map, 0, 0, &shared.full[i]);
    ptx::mbarrier_wait(&shared.full[0], 0);
  };
  check_named_always("; as many bytes as are missing, 2048, came at full[1], unexpected, of warp 0 (", load);
}

TEST_CASE("a load that counts at the barrier of another slot is told from one that is too large") {
  Matrix matrix(16, 64);
  const CUtensorMap map = matrix.map();
  struct Slots {
    Tile a[2], b[2];
    ptx::Mbarrier full[2];
  };
  const auto report = [&](int slot_of_barrier) {
    return failure({.block = 32, .shared_bytes = sizeof(Slots)}, {Order::round_robin, Landing::late}, [&] {
      auto& shared = ladder::shared_storage<Slots>();
      if (threadIdx.x != 0) return;
      for (ptx::Mbarrier& full : shared.full) ptx::mbarrier_init(&full, 1);
      ptx::fence_mbarrier_init();
      for (int slot = 0; slot < 2; ++slot) {
        ptx::mbarrier_arrive_expect_bytes(&shared.full[slot], 2 * kTileBytes);
        ptx::tma_load(&shared.a[slot], &map, 0, 0, &shared.full[slot]);
        ptx::tma_load(&shared.b[slot], &map, 0, 0, &shared.full[slot * slot_of_barrier]);
      }
      for (ptx::Mbarrier& full : shared.full) ptx::mbarrier_wait(&full, 0);
    });
  };
  CHECK(report(1) == "");
  CHECK_THAT(report(0),
             ContainsSubstring("TMA load: brings 2048 bytes more than expected: the load of shared.b[1] "
                               "counts at full[0], and that of shared.a[1] (test_tma.cu:"));
  CHECK_THAT(report(0), ContainsSubstring(") at full[1]: is full[0] the barrier of another slot?\n"));
  CHECK_THAT(report(0), !ContainsSubstring("too large"));

  if (!instrumented()) return;  // races are seen in the instrumented build
  const CheckRaces checked;
  const std::string race =
      failure({.block = 64, .shared_bytes = sizeof(Slots)}, {Order::round_robin, Landing::late}, [&] {
        auto& shared = ladder::shared_storage<Slots>();
        if (threadIdx.x == 0)
          for (ptx::Mbarrier& full : shared.full) ptx::mbarrier_init(&full, 1);
        __syncthreads();
        for (int slot = 0; slot < 2 && threadIdx.x == 0; ++slot) {
          ptx::mbarrier_arrive_expect_bytes(&shared.full[slot], 2 * kTileBytes);
          ptx::tma_load(&shared.a[slot], &map, 0, 0, &shared.full[1 - slot]);
          ptx::tma_load(&shared.b[slot], &map, 0, 0, &shared.full[slot]);
        }
        if (threadIdx.x != 32) return;
        ptx::mbarrier_wait(&shared.full[0], 0);
        ptx::tma_store(&map, &shared.a[0], 0, 0);
        ptx::tma_store_commit();
        ptx::tma_store_wait<0>();
        ptx::mbarrier_wait(&shared.full[1], 0);
      });
  CHECK_THAT(race, ContainsSubstring("the load of shared.a[0] counts at full[1], and that of shared.b[0] ("));
}

TEST_CASE("who arrived in the phase before is said with the line of the arrival, and not of its loads") {
  Matrix matrix(16, 64);
  const CUtensorMap map = matrix.map();
  constexpr int kArrives = __LINE__ + 3;
  check_named_always(("arrived in the phase before (test_tma.cu:" + std::to_string(kArrives) + ")").c_str(),
                     [&](Storage& shared) {
                       ptx::mbarrier_arrive_expect_bytes(&shared.full[0], kTileBytes);
                       ptx::tma_load(&shared.tile[0], &map, 0, 0, &shared.full[0]);
                       ptx::mbarrier_wait(&shared.full[0], 0);
                       ptx::mbarrier_wait(&shared.full[0], 1);
                     });
}

TEST_CASE("a store reads its tile late, so what was overwritten meanwhile is what is stored") {
  for (const Schedule& schedule : fixed_schedules()) {
    Matrix matrix(16, 64);
    const CUtensorMap map = matrix.map();
    run(kShape, schedule, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      if (threadIdx.x) return;
      for (int i = 0; i < kRows * kColumns; ++i) shared.tile[0].at(i / kColumns, i % kColumns) = 1.f;
      ptx::fence_proxy_async();
      ptx::tma_store(&map, &shared.tile[0], 0, 0);
      ptx::tma_store_commit();
      shared.tile[0].at(7, 9) = 2.f;
      ptx::fence_proxy_async();
      ptx::tma_store_wait<0>();
    });
    CHECK(matrix.at(7, 9) == (schedule.landing == Landing::late ? 2.f : 1.f));
  }
}

TEST_CASE(
    "what a store reads before it was written, or before a fence has published it, is kept for who asks") {
  Matrix matrix(kRows, kColumns);
  const CUtensorMap map = matrix.map();
  const auto read = [&](bool is_written, bool is_fenced) {
    run(kShape, {}, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      for (int i = static_cast<int>(threadIdx.x); is_written && i < kRows * kColumns; i += 64)
        shared.tile[0].at(i / kColumns, i % kColumns) = 1.f;
      if (is_fenced) ptx::fence_proxy_async();
      __syncthreads();
      if (threadIdx.x != 0) return;
      ptx::tma_store(&map, &shared.tile[0], 0, 0);
      ptx::tma_store_commit();
      ptx::tma_store_wait<0>();
    });
    return take_unwritten_read();
  };
  (void)take_unwritten_read();
  CHECK(read(true, true) == "");
  CHECK_THAT(read(true, false),
             ContainsSubstring("TMA store at test_tma.cu:") &&
                 ContainsSubstring(
                     "read shared memory that threads had written and no "
                     "fence.proxy.async had published (block (0,0,0), shared.tile[0].panels[0][0][0])"));
  CHECK_THAT(read(false, true), ContainsSubstring("read shared memory before anything was written to it"));
  CHECK(take_unwritten_read() == "");
}

TEST_CASE("a cp.async that leaves half of a chunk is named with the bytes that nobody has written") {
  Matrix matrix(kRows, kColumns);
  const CUtensorMap map = matrix.map();
  const auto read = [&](int bytes) {
    run(kShape, {}, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      constexpr int kChunk = 8;  // elements
      for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns / kChunk; i += 64) {
        const auto* from = &matrix.elements[static_cast<size_t>(i * kChunk)];
        auto* to = shared.tile[0].chunk(i * kChunk / kColumns, i * kChunk % kColumns);
        if (bytes == 4) __pipeline_memcpy_async(to, from, 4);
        if (bytes == 8 || bytes == 88) __pipeline_memcpy_async(to, from, 8);
        if (bytes == 88) __pipeline_memcpy_async(to + 4, from + 4, 8);
        if (bytes == 16) __pipeline_memcpy_async(to, from, 16);
      }
      __pipeline_commit();
      __pipeline_wait_prior(0);
      ptx::fence_proxy_async();
      __syncthreads();
      if (threadIdx.x != 0) return;
      ptx::tma_store(&map, &shared.tile[0], 0, 0);
      ptx::tma_store_commit();
      ptx::tma_store_wait<0>();
    });
    return take_unwritten_read();
  };
  (void)take_unwritten_read();
  CHECK(read(16) == "");
  CHECK(read(88) == "");  // two of 8 bytes
  CHECK_THAT(read(8),
             ContainsSubstring("read shared memory before anything was written to it (block (0,0,0), "
                               "shared.tile[0].panels[0][0][4]): the cp.async at test_tma.cu:") &&
                 ContainsSubstring(" copies 8 of the 16 bytes of a chunk, and nobody has written its "
                                   "bytes 8 to 15"));
  CHECK_THAT(read(4),
             ContainsSubstring(" copies 4 of the 16 bytes of a chunk, and nobody has written its bytes 4 "
                               "to 15"));
}

TEST_CASE("waiting for reads frees the tile, waiting for groups counts them from the newest") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    Matrix matrix(64, 64);
    const CUtensorMap map = matrix.map();
    run(kShape, schedule, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      if (threadIdx.x) return;
      for (int box = 0; box < 4; ++box) {
        Tile& tile = shared.tile[box % 2];
        if (box >= 2) ptx::tma_store_wait_read<1>();
        for (int i = 0; i < kRows * kColumns; ++i) {
          tile.at(i / kColumns, i % kColumns) = static_cast<float>(box + 10);
        }
        ptx::fence_proxy_async();
        ptx::tma_store(&map, &tile, 0, box * kRows);
        ptx::tma_store_commit();
      }
      ptx::tma_store_wait_read<0>();
    });
    int wrong = 0;
    for (int i = 0; i < 64 * 64; ++i)
      wrong += matrix.at(i / 64, i % 64) != static_cast<float>(i / 64 / kRows + 10);
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("stores that were not committed, or not waited for, are named when the thread exits") {
  Matrix matrix(16, 64);
  const CUtensorMap map = matrix.map();
  check_named_always("the thread exits with TMA stores that were never committed",
                     [&](Storage& shared) { ptx::tma_store(&map, &shared.tile[0], 0, 0); });
  check_named_always("the thread exits with TMA stores that it never waited for", [&](Storage& shared) {
    ptx::tma_store(&map, &shared.tile[0], 0, 0);
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<1>();
  });
}

TEST_CASE("TMA copies are counted, and have their spans on the virtual timeline") {
  Matrix matrix(20, 72);
  const CUtensorMap map = matrix.map();
  Options options;
  options.trace = true;
  set_options(options);
  launch({"test", 1, 64, 1, sizeof(Storage)}, [&] {
    auto& shared = ladder::shared_storage<Storage>();
    prepare(shared.full[0]);
    if (threadIdx.x == 32) {
      ptx::mbarrier_arrive_expect_bytes(&shared.full[0], kTileBytes);
      ptx::tma_load(&shared.tile[0], &map, 64, 10, &shared.full[0]);
    }
    if (threadIdx.x < 32) ptx::mbarrier_wait(&shared.full[0], 0);
    if (threadIdx.x == 0) {
      ptx::tma_store(&map, &shared.tile[0], 0, 0);
      ptx::tma_store_commit();
      ptx::tma_store_wait<0>();
    }
  });
  const Counters& counted = last_launch();
  CHECK(counted.async_copies == 2);
  CHECK(counted.global_bytes_read == 10 * 8 * 2);
  CHECK(counted.global_bytes_written == kTileBytes);
  CHECK(counted.global_write_sectors == 8 * 4 + 8 * 5);  // every other row begins inside a sector
  CHECK(counted.shared_bytes_read == kTileBytes);
  CHECK(counted.shared_bytes_written == kTileBytes);
  CHECK(counted.barrier_waits == 3);  // for the load, for the store, and of one warp in __syncthreads
  const auto count = [](unsigned warp, const std::string& what) {
    return std::count_if(last_trace().begin(), last_trace().end(),
                         [&](const Span& span) { return span.warp == warp && span.what == what; });
  };
  CHECK(count(1, "copy") == 1);
  CHECK(count(0, "wait full") == 1);
  CHECK(count(0, "store") == 1);
}

TEST_CASE("a block that ends with a filled slot for which nobody waited is remembered") {
  Matrix matrix(kRows, kColumns);
  const CUtensorMap map = matrix.map();
  const auto fills = [&](int loads, int waits) {
    (void)take_work_of_kernels();
    run(kShape, {.landing = Landing::eager}, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      for (ptx::Mbarrier& full : shared.full) prepare(full);
      if (threadIdx.x != 0) return;
      for (int i = 0; i < loads; ++i) {
        ptx::mbarrier_arrive_expect_bytes(&shared.full[i], kTileBytes);
        ptx::tma_load(&shared.tile[i], &map, 0, 0, &shared.full[i]);
      }
      for (int i = 0; i < waits; ++i) ptx::mbarrier_wait(&shared.full[i], 0);
    });
    return take_work_of_kernels().unread_fills();
  };
  CHECK(fills(1, 1) == "");
  CHECK(fills(2, 2) == "");
  CHECK_THAT(fills(2, 1), ContainsSubstring("block (0,0,0) ended with a fill that nobody waited for, at ") &&
                              ContainsSubstring("full[1] (bytes of a TMA load at test_tma.cu:") &&
                              ContainsSubstring("): does the loader make more steps than those who read?"));
}

TEST_CASE("boxes are remembered in the order of a thread, with the block whose shared memory they are in") {
  Matrix matrix(kRows, kColumns);
  const CUtensorMap map = matrix.map();
  const auto launch_it = [&] {
    run(kShape, {}, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      for (ptx::Mbarrier& full : shared.full) prepare(full);
      if (threadIdx.x != 1) return;
      ptx::mbarrier_arrive_expect_bytes(&shared.full[0], kTileBytes);
      ptx::tma_load(&shared.tile[0], &map, 8, 16, &shared.full[0]);
      ptx::mbarrier_wait(&shared.full[0], 0);
      ptx::tma_store(&map, &shared.tile[0], 24, 32);
      ptx::tma_store_commit();
      ptx::tma_store_wait<0>();
    });
  };
  (void)take_work_of_kernels();
  launch_it();
  const auto boxes = take_work_of_kernels().moved_boxes();
  REQUIRE(boxes.size() == 2);
  CHECK(boxes[0].is_load);
  CHECK(std::pair(boxes[0].row, boxes[0].column) == std::pair(16, 8));
  CHECK(!boxes[1].is_load);
  CHECK(std::pair(boxes[1].row, boxes[1].column) == std::pair(32, 24));
  for (const auto& box : boxes) {
    CHECK(box.block == 0);
    CHECK(box.thread == 1);
    CHECK(box.matrix == boxes[0].matrix);
    CHECK(box.rows * box.columns * 2 == int{kTileBytes});
  }
  launch_it();
  launch_it();
  CHECK(take_work_of_kernels().moved_boxes().empty());  // of which launch?
}

TEST_CASE("a TMA store that lies outside is asked whether its row and column are exchanged") {
  Matrix matrix(100, kColumns);
  const CUtensorMap map = matrix.map();
  const auto said = [&](int column, int row, int unwritten_row) {
    (void)take_work_of_kernels();
    run(kShape, {}, [&] {
      if (threadIdx.x) return;
      auto& tile = ladder::shared_storage<Storage>().tile[0];
      std::memset(static_cast<void*>(&tile), 0, sizeof tile);
      ptx::fence_proxy_async();
      ptx::tma_store(&map, &tile, column, row);
      ptx::tma_store_commit();
      ptx::tma_store_wait<0>();
    });
    return take_work_of_kernels().exchanged_store(matrix.elements.data(), matrix.rows, matrix.columns,
                                                  [&](int i, int j) { return i == unwritten_row && j == 0; });
  };
  CHECK_THAT(
      said(64, 0, 79),
      ContainsSubstring("a TMA store (test_tma.cu:") &&
          ContainsSubstring(") begins at column 64 and row 0, outside the matrix of 64 columns and 100 "
                            "rows: are column and row exchanged? tma_store takes the column first"));
  CHECK(said(64, 0, 80) == "");  // what else has left that out?
  CHECK(said(0, 64, 0) == "");
  CHECK(said(64, 64, 64) == "");
}

TEST_CASE("warps of which no TMA store reads what they have staged are remembered") {
  // Tile 0 is made of strips of four rows, one of each of four warps.
  Matrix matrix(kRows, kColumns);
  const CUtensorMap map =
      map_of(matrix.elements.data(), kRows, kColumns, kRows / 4, CU_TENSOR_MAP_SWIZZLE_NONE);
  const auto unsent = [&](auto store) {
    (void)take_work_of_kernels();
    run({.block = 128, .shared_bytes = sizeof(Storage)}, {}, [&] {
      auto& strips = ladder::shared_storage<__nv_bfloat16[4][kRows / 4 * kColumns]>();
      const unsigned warp = threadIdx.x / 32;
      ptx::stmatrix_x4(&strips[warp][threadIdx.x % 32 * 8], {0, 0, 0, 0});
      ptx::fence_proxy_async();
      __syncthreads();
      store(strips, static_cast<int>(warp));
      ptx::tma_store_commit();
      ptx::tma_store_wait<0>();
    });
    return take_work_of_kernels().unsent_sums();
  };
  const auto send = [&](const void* strip, int row) { ptx::tma_store(&map, strip, 0, row); };
  CHECK(unsent([&](const auto& strips, int warp) {
          if (threadIdx.x % 32 == 0) send(strips[warp], 4 * warp);
        }) == "");
  CHECK(unsent([&](const auto& strips, int) {
          for (int strip = 0; strip < 4 && threadIdx.x == 0; ++strip) send(strips[strip], 4 * strip);
        }) == "");
  CHECK_THAT(unsent([&](const auto& strips, int warp) {
               if (threadIdx.x == 0) send(strips[warp], 4 * warp);
             }),
             ContainsSubstring("no TMA store reads what warps 1-3 stage (test_tma.cu:") &&
                 ContainsSubstring("), and only warp 0 issues any (test_tma.cu:") &&
                 ContainsSubstring("): must one thread of each warp send its strip?"));
  CHECK_THAT(unsent([&](const auto& strips, int warp) {
               if (threadIdx.x % 32 == 0) send(strips[0], 4 * warp);
             }),
             ContainsSubstring("no TMA store reads what warps 1-3 stage (test_tma.cu:") &&
                 ContainsSubstring("), though warps 1-3 issue some (test_tma.cu:") &&
                 ContainsSubstring("): does each begin at the strip of its own warp?"));
}

}  // namespace tma_test
