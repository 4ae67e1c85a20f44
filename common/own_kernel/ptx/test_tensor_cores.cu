/// @file
/// wgmma of inline PTX in every layout, TMA of more than two dimensions, clusters, and what cannot run.
#include <cuda.h>
#include <cuda_runtime.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "common/cpu_device/base/float16.hpp"
#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"
#include "common/own_kernel/ptx/test_asm.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;
using ladder::inline_ptx::in;
using ladder::inline_ptx::inout;
using ladder::inline_ptx::out;

namespace tensor_cores_test {
namespace {

unsigned address(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }

struct Operands {
  alignas(1024) uint16_t a[64 * 64];
  alignas(1024) uint16_t b[64 * 64];
};

int a_at(int m, int k) { return (m * 5 + k * 3) % 7 - 3; }
int b_at(int k, int n) { return (k * 2 + n * 11) % 9 - 4; }

/// Where element (row, k) of an operand lies, in elements: each layout as PTX describes it.
struct Layout {
  int swizzle;  ///< bytes of a row: 16 (none), 32, 64, 128
  bool across;  ///< the rows are contiguous, not k
  uint64_t leading, stride;
};
size_t place(const Layout& layout, size_t row, size_t k) {
  const auto width = static_cast<size_t>(layout.swizzle);
  size_t byte;
  if (layout.across) {
    const size_t panel = width / 2, c = row % panel, outer = row / panel;
    byte = layout.swizzle == 16 ? row / 8 * layout.stride + k / 8 * layout.leading + k % 8 * 16 + row % 8 * 2
                                : outer * layout.leading + k / 8 * layout.stride + k % 8 * width + c * 2;
  } else {
    byte = row / 8 * layout.stride + row % 8 * width + k % 8 * 2 +
           k / 8 * (layout.swizzle == 16 ? layout.leading : 16);
  }
  const size_t mask = layout.swizzle == 128  ? 0x70
                      : layout.swizzle == 64 ? 0x30
                      : layout.swizzle == 32 ? 0x10
                                             : 0;
  return (byte ^ (byte >> 3 & mask)) / 2;
}
uint64_t descriptor(const void* start, const Layout& layout) {
  const uint64_t code = layout.swizzle == 128 ? 1 : layout.swizzle == 64 ? 2 : layout.swizzle == 32 ? 3 : 0;
  return address(start) >> 4 | layout.leading >> 4 << 16 | layout.stride >> 4 << 32 | code << 62;
}

/// m64n16k16 of fp16 with these layouts; A from registers if `from_registers`.
void check_product(const Layout& a, const Layout& b, bool from_registers) {
  constexpr int kN = 16;
  float results[64][kN];
  run({.block = 128, .shared_bytes = sizeof(Operands)}, {}, [&] {
    auto& shared = ladder::shared_storage<Operands>();
    const unsigned t = threadIdx.x, lane = t % 32, row = t / 32 * 16 + lane / 4;
    if (t == 0) {
      for (size_t k = 0; k < 16; ++k) {
        for (size_t m = 0; m < 64; ++m)
          shared.a[place(a, m, k)] =
              float_to_float16(static_cast<float>(a_at(static_cast<int>(m), static_cast<int>(k))));
        for (size_t n = 0; n < kN; ++n)
          shared.b[place(b, n, k)] =
              float_to_float16(static_cast<float>(b_at(static_cast<int>(k), static_cast<int>(n))));
      }
      PTX("fence.proxy.async;");
    }
    __syncthreads();
    uint32_t registers[4];
    for (unsigned q = 0; q < 4; ++q) {
      const int m = static_cast<int>(row + 8 * (q % 2)), k = static_cast<int>(lane % 4 * 2 + 8 * (q / 2));
      registers[q] = float_to_float16(static_cast<float>(a_at(m, k))) |
                     uint32_t{float_to_float16(static_cast<float>(a_at(m, k + 1)))} << 16;
    }
    float d[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    PTX("wgmma.fence.sync.aligned;");
    if (from_registers) {
      PTX("{.reg .pred p; setp.ne.b32 p, %13, 0;"
          "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7},"
          "{%8, %9, %10, %11}, %12, p, 1, 1, %14;}",
          SUMS_8(d, 0), in("r", "", registers[0]), in("r", "", registers[1]), in("r", "", registers[2]),
          in("r", "", registers[3]), in("l", "", descriptor(shared.b, b)), in("r", "", 1),
          in("n", "", b.across ? 1 : 0));
    } else {
      PTX("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7},"
          "%8, %9, 1, 1, -1, %10, %11;",
          SUMS_8(d, 0), in("l", "", descriptor(shared.a, a)), in("l", "", descriptor(shared.b, b)),
          in("n", "", a.across ? 1 : 0), in("n", "", b.across ? 1 : 0));
    }
    PTX("wgmma.commit_group.sync.aligned;");
    PTX("wgmma.wait_group.sync.aligned 0;");
    for (unsigned i = 0; i < 8; ++i) results[row + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
  });
  for (int m = 0; m < 64; ++m) {
    for (int n = 0; n < kN; ++n) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) sum += a_at(m, k) * b_at(k, n);
      CAPTURE(a.swizzle, a.across, b.swizzle, b.across, from_registers, m, n);
      REQUIRE(results[m][n] == static_cast<float>(from_registers ? 1 + sum : 1 - sum));
    }
  }
}

}  // namespace

TEST_CASE("wgmma of inline PTX reads every layout of its operands, and A from registers") {
  for (const int swizzle : {16, 32, 64, 128}) {
    const auto width = static_cast<uint64_t>(swizzle);
    // Along k: 8 rows are 8 * width bytes; without a swizzle the two halves of k are apart.
    const Layout along{swizzle, false, swizzle == 16 ? 128u : 16u, swizzle == 16 ? 256u : 8 * width};
    // Across: panels of `width` bytes with 16 rows of k.
    const Layout across{swizzle, true, swizzle == 16 ? 128u : 16 * width, swizzle == 16 ? 256u : 8 * width};
    for (const Layout& b : {along, across}) {
      check_product(along, b, false);
      check_product(across, b, false);
      check_product(along, b, true);
    }
  }
}

TEST_CASE("TMA of inline PTX loads three dimensions with a swizzle, stores, and adds") {
  constexpr int kX = 40, kY = 6, kZ = 4, kBoxX = 16, kBoxY = 4, kBoxZ = 2, kBytes = kBoxX * kBoxY * kBoxZ * 4;
  alignas(16) static float from[kZ][kY][kX], to[kZ][kY][kX];
  std::iota(&from[0][0][0], &from[0][0][0] + kX * kY * kZ, 1.0f);
  const auto map_of = [](void* tensor) {
    const cuuint64_t extents[] = {kX, kY, kZ}, strides[] = {kX * 4, kX * kY * 4};
    const cuuint32_t box[] = {kBoxX, kBoxY, kBoxZ}, steps[] = {1, 1, 1};
    CUtensorMap map;
    REQUIRE(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, tensor, extents, strides, box,
                                   steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    return map;
  };
  static const CUtensorMap map = map_of(from), target = map_of(to);
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    std::memset(to, 0, sizeof to);
    std::vector<float> seen(kBoxX * kBoxY * kBoxZ);
    run({.block = 1, .shared_bytes = 4096}, schedule, [&] {
      auto* const shared = &ladder::shared_storage<char[4096]>()[0];
      const unsigned barrier = address(shared + 2048), tile = address(shared);
      PTX("mbarrier.init.shared.b64 [%0], 1;", in("r", "", barrier));
      uint64_t token = 0;
      PTX("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %0, [%1], %2;", out("=l", "", token),
          in("r", "", barrier), in("n", "", kBytes));
      PTX("cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint"
          " [%0], [%1, {%2, %3, %4}], [%5], %6;",
          in("r", "", tile), in("l", "", &map), in("r", "", 32), in("r", "", 1), in("r", "", -1),
          in("r", "", barrier), in("l", "", 0));
      uint32_t done = 0;
      while (!done)
        PTX("{.reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}",
            out("=r", "", done), in("r", "", barrier), in("l", "", token));
      for (size_t i = 0; i < seen.size(); ++i) {
        const size_t byte = i * 4;
        std::memcpy(&seen[i], shared + (byte ^ (byte >> 3 & 0x30)), 4);
      }
      for (int twice = 0; twice < 2; ++twice) {
        if (twice == 0) {
          PTX("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];",
              in("l", "", &target), in("r", "", tile), in("r", "", 0), in("r", "", 0), in("r", "", 0));
        } else {
          PTX("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.bulk_group [%0, {%2, %3, %4}], [%1];",
              in("l", "", &target), in("r", "", tile), in("r", "", 0), in("r", "", 0), in("r", "", 0));
        }
        PTX("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
      }
    });
    for (int z = 0; z < kBoxZ; ++z)
      for (int y = 0; y < kBoxY; ++y)
        for (int x = 0; x < kBoxX; ++x) {
          const bool is_inside = 32 + x < kX && z - 1 >= 0;
          const float expected = is_inside ? from[z - 1][1 + y][32 + x] : 0.0f;
          REQUIRE(seen[static_cast<size_t>((z * kBoxY + y) * kBoxX + x)] == expected);
          REQUIRE(to[z][y][x] == 2 * expected);
        }
  }
}

TEST_CASE("blocks of a cluster reach each other by inline PTX: mapa, arrivals, bulk copies, barriers apart") {
  const CheckRaces checked;
  struct Shared {
    alignas(128) uint32_t mine[32], got[32];
    uint64_t full;
  };
  for (const Schedule& schedule : all_schedules()) {
    uint32_t seen[2][32] = {}, ranks[2] = {};
    run({.block = 32, .shared_bytes = sizeof(Shared), .grid = 2, .cluster = 2}, schedule, [&] {
      auto& shared = ladder::shared_storage<Shared>();
      uint32_t rank = 9, peer = 0, peer_full = 0;
      PTX("mov.u32 %0, %cluster_ctarank;", out("=r", "", rank));
      shared.mine[threadIdx.x] = 100 * rank + threadIdx.x;
      if (threadIdx.x == 0) {
        PTX("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;",
            in("r", "", address(&shared.full)));
        PTX("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;", in("r", "", address(&shared.full)));
      }
      PTX("fence.proxy.async.shared::cta;");
      PTX("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;");
      if (threadIdx.x == 0) {
        PTX("mapa.shared::cluster.u32 %0, %1, %2;", out("=r", "", peer), in("r", "", address(shared.got)),
            in("r", "", rank ^ 1));
        PTX("mapa.shared::cluster.u32 %0, %1, %2;", out("=r", "", peer_full),
            in("r", "", address(&shared.full)), in("r", "", rank ^ 1));
        uint32_t owner = 9;
        PTX("getctarank.shared::cluster.u32 %0, %1;", out("=r", "", owner), in("r", "", peer));
        ranks[rank] = owner;
        PTX("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];",
            in("r", "", peer), in("r", "", address(shared.mine)), in("r", "", peer_full));
      }
      PTX("{.reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0, 1000; @!p "
          "bra.uni W;}",
          in("r", "", address(&shared.full)));
      seen[rank][threadIdx.x] = shared.got[threadIdx.x];
      PTX("barrier.cluster.arrive; barrier.cluster.wait;");
    });
    for (uint32_t rank = 0; rank < 2; ++rank) {
      REQUIRE(ranks[rank] == 1 - rank);
      for (uint32_t i = 0; i < 32; ++i) REQUIRE(seen[rank][i] == 100 * (1 - rank) + i);
    }
  }
}

TEST_CASE("what inline PTX cannot do here is one line with the file's line") {
  const auto blame = [](const std::function<void()>& body) { return failure({.block = 1}, {}, body); };
  uint32_t x = 0;
  CHECK_THAT(blame([&] { PTX("tcgen05.wait::ld.sync.aligned;"); }),
             ContainsSubstring("tcgen05.wait::ld.sync.aligned is not one that the CPU device runs") &&
                 ContainsSubstring("test_tensor_cores.cu:"));
  CHECK_THAT(blame([&] { PTX("add.u32 %0, %0;", inout("+r", "", x)); }),
             ContainsSubstring("add.u32 is not one"));
  CHECK_THAT(blame([&] { PTX("add.rz.f32 %0, %0, %0;", inout("+r", "", x)); }),
             ContainsSubstring("add.rz.f32 is not one"));
  CHECK_THAT(blame([&] { PTX("mov.u32 %0, %1;", out("=r", "", x)); }),
             ContainsSubstring("there is no operand %1; the statement has 1"));
  CHECK_THAT(blame([&] { PTX("mov.u32 %0, r1;", out("=r", "", x)); }),
             ContainsSubstring("'r1' is no register of this asm statement"));
  CHECK_THAT(blame([&] { PTX("bra NOWHERE;"); }), ContainsSubstring("there is no label 'NOWHERE'"));
  CHECK_THAT(blame([&] { PTX("mov.u32 %[y], 1;", out("=r", "x", x)); }),
             ContainsSubstring("there is no operand '%[y]'"));
  CHECK_THAT(blame([&] {
               PTX("mov.u32 %0, 1", out("=r", "", x));
               PTX("} mov.u32 %0, 1;", out("=r", "", x));
             }),
             ContainsSubstring("'}' without a '{'"));
  CHECK_THAT(blame([&] { PTX("trap;"); }), ContainsSubstring("trap"));
  // What is right: names, constants in words, scopes, comments, and an exit.
  bool came_back = false;
  CHECK(blame([&] {
          PTX("mov.u32 %[y], %[z]; // a comment ; }\n /* another } */ { .reg .b32 t<2>; mov.b32 t1, 5;\n"
              "{ .reg .b32 t1; mov.b32 t1, 7; } add.u32 %[y], %[y], t1; }",
              out("=r", "y", x), in("r", "z", 30));
          CHECK(x == 35);
          PTX("mov.b%1 %0, 8;", out("=r", "", x), in("n", "", 32));
          CHECK(x == 8);
          PTX("exit;");
          came_back = true;
        }) == "");
  CHECK(!came_back);
}

}  // namespace tensor_cores_test
