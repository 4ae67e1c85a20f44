/// @file
/// Instructions that a warp executes as a whole. Two halves of a warp that call one function from two places
/// reach the same line, and do not execute it together.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"
#include "common/ptx/mma_sync.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/wgmma.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace aligned_test {
namespace {

struct Storage {
  alignas(1024) char tile[16 * 1024];
};
const Shape kShape{.block = 128, .shared_bytes = sizeof(Storage)};

struct Sums {
  float d[32] = {};
};

// One line each, called from several places.
void multiply(Sums& sums) {
  const uint32_t a[4] = {};
  ptx::mma_m16n8k16(sums.d, a, 0, 0);
}
void load(Sums&) {
  uint32_t r[4];
  ptx::ldmatrix_x4(r, &ladder::shared_storage<Storage>().tile[threadIdx.x % 32 * 16]);
}
void store(Sums&) {
  const uint32_t r[4] = {};
  ptx::stmatrix_x4(&ladder::shared_storage<Storage>().tile[threadIdx.x * 16], r);
}
void give_registers_back(Sums&) { ptx::setmaxnreg_dec<40>(); }
void fence(Sums&) { ptx::wgmma_fence(); }
void start(Sums& sums) {
  const uint64_t tile = ptx::matrix_descriptor(ladder::shared_storage<Storage>().tile, 16, 1024);
  ptx::wgmma_m64n64k16<false>(sums.d, tile, tile, true);
}
void commit(Sums&) { ptx::wgmma_commit_group(); }
void wait(Sums&) { ptx::wgmma_wait_group<0>(); }
void meet(Sums&) { __syncthreads(); }

using Step = void (*)(Sums&);
constexpr Step kProduct[] = {fence, start, commit, wait};

/// Steps one after the other; lanes for which `elsewhere` holds come to step `which` by another call.
void run_steps(const Step* steps, int count, int which, bool elsewhere) {
  Sums sums;
  for (int i = 0; i < count; ++i) {
    if (i == which && elsewhere) {
      steps[i](sums);
    } else {
      steps[i](sums);
    }
  }
  ptx::keep_in_registers(sums.d);
}

bool in_upper_half() { return threadIdx.x % 32 >= 16; }

}  // namespace

TEST_CASE("an .aligned instruction that halves of a warp reach by different calls is named") {
  for (const Step step : {multiply, load, store, give_registers_back}) {
    for (const Schedule& schedule : fixed_schedules()) {
      const std::string text = failure(kShape, schedule, [&] { run_steps(&step, 1, 0, in_upper_half()); });
      CHECK_THAT(text, ContainsSubstring("warp divergence: the lanes of one warp come to "));
      CHECK_THAT(text, ContainsSubstring(" by different calls, so they do not execute it together: this lane "
                                         "by kernel/test_aligned.cu:"));
      CHECK_THAT(text, ContainsSubstring("; others by kernel/test_aligned.cu:"));
      CHECK(failure(kShape, schedule, [&] { run_steps(&step, 1, 0, false); }) == "");
    }
  }
}

TEST_CASE("each instruction of wgmma that halves of a warp reach by different calls is named") {
  const char* names[] = {"wgmma.fence", "wgmma", "wgmma.commit_group", "wgmma.wait_group"};
  for (int which = 0; which < 4; ++which) {
    for (const Schedule& schedule : fixed_schedules()) {
      CHECK_THAT(failure(kShape, schedule, [&] { run_steps(kProduct, 4, which, in_upper_half()); }),
                 ContainsSubstring(std::string("the lanes of one warp come to ") + names[which] +
                                   " by different calls"));
    }
  }
  for (const Schedule& schedule : all_schedules())
    REQUIRE(failure(kShape, schedule, [&] { run_steps(kProduct, 4, 0, false); }) == "");
}

TEST_CASE("whole warps may come to an instruction of a warp by different calls") {
  for (const Step step : {multiply, load, store}) {
    for (const Schedule& schedule : fixed_schedules())
      CHECK(failure(kShape, schedule, [&] { run_steps(&step, 1, 0, threadIdx.x / 32 == 1); }) == "");
  }
}

TEST_CASE("a __syncthreads that threads of a block reach by different calls is named") {
  const Step step = meet;
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK_THAT(failure(kShape, schedule, [&] { run_steps(&step, 1, 0, threadIdx.x / 32 == 1); }),
               ContainsSubstring("threads of one block come to it by different calls, this one by "));
    CHECK(failure(kShape, schedule, [&] { run_steps(&step, 1, 0, false); }) == "");
  }
}

TEST_CASE("lanes that leave out an instruction of their warp, or have another, are named") {
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK_THAT(failure(kShape, schedule,
                       [] {
                         if (threadIdx.x != 40) ptx::wgmma_fence();
                       }),
               ContainsSubstring("the thread exits without the wgmma.fence that lane"));
    CHECK_THAT(failure(kShape, schedule,
                       [] {
                         if (threadIdx.x == 40) {
                           ptx::wgmma_commit_group();
                           ptx::wgmma_fence();
                         } else {
                           ptx::wgmma_fence();
                           ptx::wgmma_commit_group();
                         }
                       }),
               ContainsSubstring("all 32 lanes must execute the same one together"));
  }
}

}  // namespace aligned_test
