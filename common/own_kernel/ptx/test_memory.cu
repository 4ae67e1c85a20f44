/// @file
/// Loads, stores, atomic operations and cp.async of inline PTX; that their mistakes are seen.
#include <cuda_runtime.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"
#include "common/own_kernel/ptx/test_asm.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;
using ladder::inline_ptx::in;
using ladder::inline_ptx::inout;
using ladder::inline_ptx::out;

namespace memory_test {
namespace {

unsigned address(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }

struct Shared {
  alignas(128) uint32_t words[64];
  float more[64];
};
constexpr Shape kWarp{.block = 32, .shared_bytes = sizeof(Shared)};

std::string blame(const std::function<void()>& body) {
  const CheckRaces checked;
  return failure(kWarp, {}, body);
}

}  // namespace

TEST_CASE("inline PTX loads and stores every width, in shared and global memory") {
  alignas(32) static uint32_t global[64];
  std::iota(global, global + 64, 100u);
  uint64_t copied[4] = {};
  int8_t negative = -3;
  run({.block = 1, .shared_bytes = sizeof(Shared)}, {}, [&] {
    auto& shared = ladder::shared_storage<Shared>();
    const unsigned at = address(&shared.words);
    uint32_t a = 0, b = 0, c = 0, d = 0;
    PTX("ld.global.v4.u32 {%0, %1, %2, %3}, [%4 + 16];", out("=r", "", a), out("=r", "", b), out("=r", "", c),
        out("=r", "", d), in("l", "", global));
    CHECK((a == 104 && b == 105 && c == 106 && d == 107));
    PTX("st.shared.v2.b32 [%0], {%1, %2};", in("r", "", at), in("r", "", a), in("r", "", d));
    CHECK((shared.words[0] == 104 && shared.words[1] == 107));
    PTX("st.shared::cta.u8 [%0+1], %1;", in("r", "", at), in("r", "", 0x7f));
    CHECK(shared.words[0] == (0x7f00 | 104));
    float f = 0;
    PTX("st.shared.f32 [%1+8], %2; ld.volatile.shared.f32 %0, [%1+8];", out("=f", "", f), in("r", "", at),
        in("f", "", 2.5f));
    CHECK(f == 2.5f);
    int32_t extended = 0;
    PTX("ld.global.s8 %0, [%1];", out("=r", "", extended), in("l", "", &negative));
    CHECK(extended == -3);
    PTX("ld.global.nc.L1::no_allocate.L2::128B.v2.u64 {%0, %1}, [%2];", out("=l", "", copied[0]),
        out("=l", "", copied[1]), in("l", "", global));
    PTX("ld.acquire.gpu.global.b64 %0, [%1];", out("=l", "", copied[2]), in("l", "", global + 4));
    PTX("st.release.gpu.global.u32 [%0], %1;", in("l", "", global + 8), in("r", "", 7));
    PTX("{ .reg .u64 p; cvta.shared.u64 p, %1; ld.u32 %0, [p+4]; }", out("=r", "", a),
        in("l", "", static_cast<uint64_t>(at)));
    CHECK(a == 107);
  });
  CHECK(std::memcmp(copied, global, 24) == 0);
  CHECK(global[8] == 7);
}

TEST_CASE("inline PTX changes memory atomically, as atomicAdd and its siblings do") {
  uint32_t sum = 0, largest = 0, bits = 0, looked[64] = {}, wrapping = 0;
  float total = 0;
  run({.block = 64, .shared_bytes = sizeof(Shared), .grid = 4}, {}, [&] {
    const unsigned lane = threadIdx.x;
    uint32_t before = 0;
    PTX("atom.global.add.u32 %0, [%1], %2;", out("=r", "", before), in("l", "", &sum), in("r", "", 2));
    if (blockIdx.x == 0) looked[lane] = before;
    PTX("red.release.gpu.global.max.u32 [%0], %1;", in("l", "", &largest), in("r", "", lane));
    PTX("red.global.or.b32 [%0], %1;", in("l", "", &bits), in("r", "", 1u << lane % 32));
    PTX("red.global.add.f32 [%0], %1;", in("l", "", &total), in("f", "", 0.5f));
    PTX("red.global.inc.u32 [%0], 9;", in("l", "", &wrapping));
  });
  CHECK((sum == 512 && largest == 63 && bits == ~0u && total == 128.0f && wrapping == 6));
  for (const uint32_t value : looked) CHECK(value % 2 == 0);
  uint32_t cell = 5, found = 0;
  uint16_t halves[2] = {0x3c00, 0x4000};  // 1, 2
  run({.block = 1}, {}, [&] {
    PTX("atom.global.cas.b32 %0, [%1], 5, 8;", out("=r", "", found), in("l", "", &cell));
    PTX("red.global.add.noftz.f16x2 [%0], %1;", in("l", "", halves), in("r", "", 0x3c003c00));
  });
  CHECK((found == 5 && cell == 8 && halves[0] == 0x4000 && halves[1] == 0x4200));
}

TEST_CASE("cp.async of inline PTX copies, fills with zeros, and lands where it is waited for") {
  alignas(16) static uint32_t global[32];
  std::iota(global, global + 32, 1u);
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    run(kWarp, schedule, [&] {
      auto& shared = ladder::shared_storage<Shared>();
      const unsigned at = address(&shared.words[4 * (threadIdx.x % 8)]);
      if (threadIdx.x < 8) {
        PTX("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;", in("r", "", at),
            in("l", "", global + 4 * threadIdx.x), in("n", "", 16));
      } else if (threadIdx.x == 8) {
        PTX("cp.async.ca.shared::cta.global [%0], [%1], 8, %2;", in("r", "", address(&shared.more[0])),
            in("l", "", global), in("r", "", 4));
        PTX("{.reg .pred p; setp.ne.b32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p;}",
            in("r", "", address(&shared.more[2])), in("l", "", global), in("r", "", 1));
      }
      PTX("cp.async.commit_group;");
      PTX("cp.async.wait_group %0;", in("n", "", 0));
      __syncthreads();
      if (threadIdx.x == 0) {
        for (unsigned i = 0; i < 32; ++i) REQUIRE(shared.words[i] == i + 1);
        uint32_t more[3];
        std::memcpy(more, shared.more, sizeof more);
        REQUIRE((more[0] == 1 && more[1] == 0 && more[2] == 0));
      }
    });
  }
}

TEST_CASE("mistakes in inline PTX are reported with its instruction and its line") {
  static uint32_t global[32];
  const auto expect = [](const std::function<void()>& body, const std::string& words) {
    CHECK_THAT(blame(body), ContainsSubstring(words) && ContainsSubstring("test_memory.cu:"));
  };
  uint32_t x = 0;
  // Two lanes, and no barrier.
  expect(
      [&] {
        auto& shared = ladder::shared_storage<Shared>();
        PTX("st.shared.u32 [%0], 1;", in("r", "", address(&shared.words[threadIdx.x])));
        PTX("ld.shared.u32 %0, [%1];", out("=r", "", x),
            in("r", "", address(&shared.words[threadIdx.x ^ 1])));
      },
      "(ld.shared.u32)");
  expect(
      [&] {
        auto& shared = ladder::shared_storage<Shared>();
        if (threadIdx.x < 4)
          PTX("cp.async.ca.shared.global [%0], [%1], 4;", in("r", "", address(&shared.words[threadIdx.x])),
              in("l", "", global));
        PTX("cp.async.wait_all;");
        PTX("ld.shared.u32 %0, [%1];", out("=r", "", x),
            in("r", "", address(&shared.words[threadIdx.x & 3])));
      },
      "cp.async");
  expect([&] { PTX("ld.shared.u32 %0, [%1];", out("=r", "", x), in("r", "", 4096)); },
         "lies 2560 bytes behind the end");
  expect([&] { PTX("ld.shared.u32 %0, [%1];", out("=r", "", x), in("r", "", 16)); },
         "0x10 is in no block's shared memory");
  expect(
      [&] {
        auto& shared = ladder::shared_storage<Shared>();
        PTX("ld.shared.u32 %0, [%1];", out("=r", "", x), in("l", "", shared.words));
      },
      "is a generic pointer, where an address in shared memory is needed");
  expect(
      [&] {
        auto& shared = ladder::shared_storage<Shared>();
        PTX("ld.shared.u32 %0, [%1];", out("=r", "", x),
            in("r", "", static_cast<uint32_t>(reinterpret_cast<uintptr_t>(shared.words))));
      },
      "is the lower half of a generic pointer");
  expect([&] { PTX("ld.shared.u32 %0, [%1];", out("=r", "", x), in("r", "", address(global))); },
         "comes of a pointer that is not to shared memory");
  expect(
      [&] {
        auto& shared = ladder::shared_storage<Shared>();
        PTX("ld.shared.v4.u32 {%0, %0, %0, %0}, [%1];", out("=r", "", x),
            in("r", "", address(&shared.words[1])));
      },
      "the address is not a multiple of 16");
}

TEST_CASE("a loop in inline PTX lets others run, and is a deadlock where nobody comes") {
  static uint32_t flag;
  for (const Schedule& schedule : all_schedules()) {
    flag = 0;
    run({.block = 2}, schedule, [&] {
      if (threadIdx.x == 0) {
        PTX("{ .reg .pred p; .reg .b32 r;\n"
            "WAIT: ld.acquire.gpu.global.u32 r, [%0];\n"
            "setp.eq.u32 p, r, 0; @p bra WAIT; }",
            in("l", "", &flag));
      } else {
        PTX("st.release.gpu.global.u32 [%0], 1;", in("l", "", &flag));
      }
    });
  }
  flag = 0;
  CHECK_THAT(failure({.block = 1}, {},
                     [&] {
                       PTX("{ .reg .pred p; .reg .b32 r; WAIT: ld.acquire.gpu.global.u32 r, [%0];"
                           "setp.eq.u32 p, r, 0; @p bra WAIT; }",
                           in("l", "", &flag));
                     }),
             ContainsSubstring("every running thread polls and nothing changes") &&
                 ContainsSubstring("ld.acquire.gpu.global.u32"));
}

}  // namespace memory_test
