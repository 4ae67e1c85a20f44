/// @file
/// ldmatrix, stmatrix and mma.sync against a plain triple loop, and the bank conflicts of ldmatrix.
#include <cuda_bf16.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"
#include "common/ptx/mma_sync.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/stmatrix_trans.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace mma_sync_test {
namespace {

struct Tiles {
  alignas(16) __nv_bfloat16 a[16][16];  // [m, k]
  alignas(16) __nv_bfloat16 b[16][16];  // [k, n]; ldmatrix.trans brings two groups of 8 columns
};
const Shape kWarp{.block = 32, .shared_bytes = sizeof(Tiles)};

}  // namespace

TEST_CASE("mma.sync multiplies what ldmatrix loaded, exactly for small integers, on every schedule") {
  const CheckRaces checked;
  std::mt19937 random(7);
  float a[16][16], b[16][16], c[16][16], expected[16][16];
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      a[i][j] = static_cast<float>(static_cast<int>(random() % 9) - 4);
      b[i][j] = static_cast<float>(static_cast<int>(random() % 9) - 4);
      c[i][j] = static_cast<float>(static_cast<int>(random() % 9) - 4);
    }
  }
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      expected[i][j] = c[i][j];
      for (int k = 0; k < 16; ++k) expected[i][j] += a[i][k] * b[k][j];
    }
  }
  for (const Schedule& schedule : all_schedules()) {
    float result[16][16] = {};
    run(kWarp, schedule, [&] {
      auto& tiles = ladder::shared_storage<Tiles>();
      const unsigned lane = threadIdx.x;
      for (unsigned i = lane; i < 256; i += 32) {
        tiles.a[i / 16][i % 16] = a[i / 16][i % 16];
        tiles.b[i / 16][i % 16] = b[i / 16][i % 16];
      }
      __syncwarp();
      uint32_t a_fragment[4], b_fragment[4];
      ptx::ldmatrix_x4(a_fragment, &tiles.a[lane % 16][lane / 16 * 8]);
      ptx::ldmatrix_x4_trans(b_fragment, &tiles.b[lane % 16][lane / 16 * 8]);
      for (unsigned n = 0; n < 2; ++n) {
        const unsigned row = lane / 4, column = 8 * n + lane % 4 * 2;
        float d[4] = {c[row][column], c[row][column + 1], c[row + 8][column], c[row + 8][column + 1]};
        ptx::mma_m16n8k16(d, a_fragment, b_fragment[2 * n], b_fragment[2 * n + 1]);
        result[row][column] = d[0];
        result[row][column + 1] = d[1];
        result[row + 8][column] = d[2];
        result[row + 8][column + 1] = d[3];
      }
    });
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) REQUIRE(result[i][j] == expected[i][j]);
    }
  }
  CHECK(last_launch().mma_flops == 2 * 2 * 16 * 8 * 16);
}

TEST_CASE("ldmatrix without .trans gives each lane two neighbours of a row") {
  std::vector<uint32_t> result(32 * 4);
  run({.block = 32, .shared_bytes = 512}, {}, [&] {
    auto& matrices = ladder::shared_storage<uint16_t[4][8][8]>();
    for (unsigned i = threadIdx.x; i < 256; i += 32)
      matrices[i / 64][i / 8 % 8][i % 8] = static_cast<uint16_t>(i);
    __syncwarp();
    uint32_t r[4];
    ptx::ldmatrix_x4(r, matrices[threadIdx.x / 8][threadIdx.x % 8]);
    for (unsigned j = 0; j < 4; ++j) result[threadIdx.x * 4 + j] = r[j];
  });
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned j = 0; j < 4; ++j) {
      const unsigned first = 64 * j + lane / 4 * 8 + lane % 4 * 2;
      CHECK(result[lane * 4 + j] == (first | (first + 1) << 16));
    }
  }
}

TEST_CASE("ldmatrix of rows 128 bytes apart has seven conflicts for each matrix, swizzled rows have none") {
  const auto conflicts = [](bool swizzled) {
    run({.block = 32, .shared_bytes = 32 * 128}, {}, [&] {
      auto& rows = ladder::shared_storage<unsigned char[32][128]>();
      uint32_t r[4];
      ptx::ldmatrix_x4(r, &rows[threadIdx.x][swizzled ? threadIdx.x % 8 * 16 : 0]);
    });
    return last_launch().bank_conflicts;
  };
  CHECK(conflicts(false) == 4 * 7);
  CHECK(conflicts(true) == 0);
  CHECK(last_launch().shared_wavefronts == 4);
  CHECK(last_launch().shared_bytes_read == 512);
}

TEST_CASE("a misaligned row, and a warp that is not whole, are named") {
  CHECK_THAT(failure(kWarp, {},
                     [] {
                       uint32_t r[4];
                       ptx::ldmatrix_x4(r, &ladder::shared_storage<Tiles>().a[threadIdx.x % 16][1]);
                     }),
             ContainsSubstring("ldmatrix of a row that is not 16-byte aligned"));
  CHECK_THAT(failure(kWarp, {Order::lowest_first, Landing::late},
                     [] {
                       if (threadIdx.x == 0) return;
                       float d[4] = {};
                       const uint32_t a[4] = {};
                       ptx::mma_m16n8k16(d, a, 0, 0);
                     }),
             ContainsSubstring("mma.sync: lanes of the warp have exited"));
  const std::string divergent = failure(kWarp, {}, [] {
    float d[4] = {};
    const uint32_t a[4] = {};
    if (threadIdx.x < 16) {
      ptx::mma_m16n8k16(d, a, 0, 0);
    } else {
      ptx::mma_m16n8k16(d, a, 0, 0);
    }
  });
  CHECK_THAT(divergent, ContainsSubstring("warp divergence: this lane executes mma.sync"));
}

TEST_CASE("mma.sync that adds to accumulators that were never written is named") {
  const auto kernel = [](bool clears) {
    return [=] {
      float d[8];
      const uint32_t fresh[] = {clears ? 0 : cpu_device::kUnwrittenLocal};
      for (float& x : d) std::memcpy(&x, fresh, sizeof x);
      const uint32_t a[4] = {};
      ptx::mma_m16n8k16(d, a, 0, 0);
      ptx::mma_m16n8k16(d + 4, a, 0, 0);
    };
  };
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK(failure(kWarp, schedule, kernel(true)) == "");
    CHECK_THAT(failure(kWarp, schedule, kernel(false)),
               ContainsSubstring("mma.sync: the product is added to accumulators that were never written"));
  }
}

TEST_CASE("stmatrix puts back what ldmatrix took, on every schedule") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    int wrong = 0;
    run({.block = 32, .shared_bytes = 1024}, schedule, [&] {
      auto& matrices = ladder::shared_storage<uint16_t[8][8][8]>();
      for (unsigned i = threadIdx.x; i < 256; i += 32)
        matrices[i / 64][i / 8 % 8][i % 8] = static_cast<uint16_t>(i);
      __syncwarp();
      uint32_t r[4];
      ptx::ldmatrix_x4(r, matrices[threadIdx.x / 8][threadIdx.x % 8]);
      ptx::stmatrix_x4(matrices[4 + threadIdx.x / 8][threadIdx.x % 8], r);
      __syncwarp();
      for (unsigned i = threadIdx.x; i < 256; i += 32) wrong += matrices[4 + i / 64][i / 8 % 8][i % 8] != i;
    });
    REQUIRE(wrong == 0);
  }
  CHECK(last_launch().shared_bytes_written == 512);
}

TEST_CASE("stmatrix with .trans stores each matrix transposed, where its own row's lane points") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    int wrong = 0;
    run({.block = 32, .shared_bytes = 512}, schedule, [&] {
      auto& matrices = ladder::shared_storage<uint16_t[4][8][8]>();
      const unsigned row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
      uint32_t r[4];  // matrix j has 64 j + 8 row + column, two neighbours of a row in a register
      for (unsigned j = 0; j < 4; ++j) {
        const unsigned first = 64 * j + 8 * row + column;
        r[j] = first | (first + 1) << 16;
      }
      ptx::stmatrix_x4_trans(matrices[threadIdx.x / 8][threadIdx.x % 8], r);
      __syncwarp();
      for (unsigned i = threadIdx.x; i < 256; i += 32) wrong += matrices[i / 64][i % 8][i / 8 % 8] != i;
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("stmatrix names misaligned rows and lanes that do not take part") {
  CHECK_THAT(failure(kWarp, {},
                     [] {
                       const uint32_t r[4] = {};
                       ptx::stmatrix_x4(&ladder::shared_storage<Tiles>().a[threadIdx.x % 16][1], r);
                     }),
             ContainsSubstring("stmatrix of a row that is not 16-byte aligned"));
  CHECK_THAT(failure(kWarp, {},
                     [] {
                       const uint32_t r[4] = {};
                       if (threadIdx.x > 3) ptx::stmatrix_x4(ladder::shared_storage<Tiles>().a, r);
                     }),
             ContainsSubstring("stmatrix"));
}

TEST_CASE("reading what stmatrix of another warp stores needs a barrier") {
  const auto kernel = [](bool synchronise) {
    return [=] {
      auto& matrices = ladder::shared_storage<uint16_t[4][8][8]>();
      const uint32_t r[4] = {};
      if (threadIdx.x < 32) ptx::stmatrix_x4(matrices[threadIdx.x / 8][threadIdx.x % 8], r);
      if (synchronise) __syncthreads();
      volatile uint16_t seen = 0;
      static_cast<void>(seen);
      if (threadIdx.x == 40) seen = matrices[1][2][3];
    };
  };
  if (!instrumented()) return;
  const CheckRaces checked;
  const Shape shape{.block = 64, .shared_bytes = 512};
  CHECK(failure(shape, {}, kernel(true)) == "");
  CHECK_THAT(failure(shape, {}, kernel(false)), ContainsSubstring("stmatrix (a write)"));
}

}  // namespace mma_sync_test
