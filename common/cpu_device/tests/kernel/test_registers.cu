/// @file
/// setmaxnreg: warpgroups pass registers to each other, and ask for more than there are.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "common/cpu_device/kernel/from_source/launch_bounds.hpp"
#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/wgmma.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace registers_test {
namespace {

/// Three warpgroups, so 65536 / 384 = 170 registers for a thread, in multiples of 8: 168.
const Shape kShape{.block = 384};

template <class Body>
void check_named_always(const std::string& words, Body&& body) {
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK_THAT(failure(kShape, schedule, body), ContainsSubstring(words));
  }
}

unsigned warpgroup() { return threadIdx.x / 128; }

void move_registers() {
  if (warpgroup() == 0) ptx::setmaxnreg_dec<40>();
  if (warpgroup() > 0) ptx::setmaxnreg_inc<232>();
}
// One kernel for each way of writing it.
__global__ void __launch_bounds__(384) without_blocks() { move_registers(); }
template <int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) of_a_template() {
  move_registers();
}
struct Two {
  static constexpr int kThreads = 384, kBlocks = 2;
};
template <class Numbers>
__global__ void __launch_bounds__(  // a comment with (parentheses
    Numbers::kThreads, Numbers::kBlocks) on_lines_of_its_own(int) {
  move_registers();
}
__global__ void without_bounds() { move_registers(); }
__global__ void without_change() {}

template <class... Params>
std::string failure_of(void (*kernel)(Params...), Params... params) {
  set_options({});
  try {
    ladder::launch(kernel, {.grid = 1, .block = 384}, params...);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a loader gives its registers to two compute warpgroups") {
  for (const Schedule& schedule : all_schedules()) {
    REQUIRE(failure(kShape, schedule, [] {
              if (warpgroup() == 0) ptx::setmaxnreg_dec<40>();
              if (warpgroup() > 0) ptx::setmaxnreg_inc<232>();
            }) == "");
  }
}

TEST_CASE("an increase that nobody makes room for is a deadlock, and says what is missing") {
  check_named_always(
      "in setmaxnreg.inc for 240 registers: its threads have 168 each, and 64 are free for each "
      "thread of a warp",
      [] {
        if (warpgroup() == 0) ptx::setmaxnreg_dec<152>();
        if (warpgroup() == 1) ptx::setmaxnreg_inc<240>();
      });
  check_named_always("deadlock: warps 4-7 wait at test_registers.cu:", [] {
    if (warpgroup() == 0) ptx::setmaxnreg_dec<152>();
    if (warpgroup() == 1) ptx::setmaxnreg_inc<240>();
  });
  const std::string none_given = "; no warp has executed setmaxnreg.dec, which gives registers back\n";
  for (const bool gives : {true, false}) {
    const std::string text = failure({.block = 384}, {}, [&] {
      if (gives && warpgroup() == 0) ptx::setmaxnreg_dec<152>();
      if (warpgroup() == 1) ptx::setmaxnreg_inc<240>();
      if (warpgroup() == 2) ptx::setmaxnreg_inc<240>();  // another line
    });
    CHECK_THAT(text, ContainsSubstring("deadlock: warps 4-7 wait at test_registers.cu:") &&
                         ContainsSubstring(", warps 8-11 at test_registers.cu:"));
    CHECK((text.find(none_given) == text.npos) == gives);
  }
  // 40 + 2 x 240 is more than 3 x 168: one of the two waits for ever.
  check_named_always("in setmaxnreg.inc for 240 registers", [] {
    if (warpgroup() == 0) ptx::setmaxnreg_dec<40>();
    if (warpgroup() > 0) ptx::setmaxnreg_inc<240>();
  });
}

TEST_CASE("an increase that could never be granted is named at once") {
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK_THAT(failure({.block = 256}, schedule, [] { ptx::setmaxnreg_inc<256>(); }),
               ContainsSubstring("deadlock"));
    CHECK_THAT(failure({.block = 512}, schedule,
                       [] {
                         if (warpgroup() == 0) ptx::setmaxnreg_inc<256>();
                       }),
               ContainsSubstring("deadlock"));
    CHECK_THAT(
        failure({.block = 128}, schedule, [] { ptx::setmaxnreg_inc<256>(); }),
        ContainsSubstring("setmaxnreg.inc 256 can never be granted: the launch gave 255 registers to each of "
                          "128 threads"));
  }
}

TEST_CASE("counts that are no multiple of 8, too small or too large are named") {
  check_named_always("setmaxnreg.dec 100: it takes multiples of 8 from 24 to 256",
                     [] { ptx::setmaxnreg_dec<100>(); });
  check_named_always("setmaxnreg.dec 16: it takes multiples of 8 from 24 to 256",
                     [] { ptx::setmaxnreg_dec<16>(); });
  check_named_always("setmaxnreg.inc 264: it takes multiples of 8 from 24 to 256",
                     [] { ptx::setmaxnreg_inc<264>(); });
}

TEST_CASE("an increase to fewer and a decrease to more registers are named") {
  check_named_always("setmaxnreg.inc 160: the thread has 168 registers", [] { ptx::setmaxnreg_inc<160>(); });
  check_named_always("setmaxnreg.dec 176: the thread has 168 registers", [] { ptx::setmaxnreg_dec<176>(); });
}

TEST_CASE("a warpgroup whose warps do not all execute it is named") {
  check_named_always("setmaxnreg", [] {
    if (threadIdx.x < 96) ptx::setmaxnreg_dec<40>();
  });
  check_named_always("ask for", [] {
    if (threadIdx.x < 96) {
      ptx::setmaxnreg_dec<40>();
    } else if (threadIdx.x < 128) {
      ptx::setmaxnreg_dec<48>();
    }
  });
  CHECK_THAT(failure({.block = 96}, {}, [] { ptx::setmaxnreg_dec<40>(); }),
             ContainsSubstring("the warpgroup of this thread has fewer than 128 threads"));
}

TEST_CASE("a warp whose lanes do not all execute it is named") {
  check_named_always("setmaxnreg.dec", [] {
    if (threadIdx.x % 32 < 16) ptx::setmaxnreg_dec<40>();
  });
}

TEST_CASE("blocks that share an SM share its registers: what __launch_bounds__ says counts") {
  CHECK(failure_of(without_blocks) == "");
  CHECK(failure_of(without_bounds) == "");
  CHECK(failure_of(of_a_template<384, 1>) == "");
  const std::string words =
      "setmaxnreg.inc 232 can never be granted: the launch gave 80 registers to each of 384 threads, because "
      "__launch_bounds__ leaves room for 2 blocks on an SM";
  CHECK_THAT(failure_of(on_lines_of_its_own<Two>, 0), ContainsSubstring(words));
}

TEST_CASE("a product whose sums need more registers than a setmaxnreg has left is named with both lines") {
  const auto multiply = [](auto change) {
    for (int i = static_cast<int>(threadIdx.x); i < 2 * 64 * 64; i += 384)
      ladder::shared_storage<uint16_t[2 * 64 * 64]>()[i] = 0;
    ptx::fence_proxy_async();
    __syncthreads();
    change();
    if (warpgroup() != 1) return;
    const uint64_t zeros = ptx::matrix_descriptor(&ladder::shared_storage<char>(), 16, 1024);
    float d[64];
    ptx::wgmma_fence();
    ptx::wgmma_m64n128k16<false>(d, zeros, zeros, false);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
    ptx::keep_in_registers(d);
  };
  const Shape shape{.block = 384, .shared_bytes = 2 * 64 * 64 * 2};
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK(failure(shape, schedule, [&] { multiply([] {}); }) == "");
    CHECK(failure(shape, schedule, [&] { multiply([] { ptx::setmaxnreg_dec<64>(); }); }) == "");
    CHECK_THAT(failure(shape, schedule, [&] { multiply([] { ptx::setmaxnreg_dec<56>(); }); }),
               ContainsSubstring(
                   "wgmma: its sums take 64 registers of each thread, which has 56 since the setmaxnreg "
                   "at test_registers.cu:") &&
                   ContainsSubstring(": should this warpgroup ask for more?"));
  }
}

TEST_CASE("of kernels from one template the most generous bounds count, as nobody knows which is which") {
  CHECK(failure_of(of_a_template<384, 2>) == failure_of(of_a_template<384, 1>));
}

TEST_CASE("what warpgroups asked for is recorded, and whether __launch_bounds__ was there") {
  Options options;
  options.trace = true;
  set_options(options);
  ladder::launch(without_blocks, {.grid = 2, .block = 384});
  CHECK(last_registers() == std::vector<unsigned>{40, 232, 232});
  CHECK(last_kernel_has_launch_bounds());
  ladder::launch(without_bounds, {.grid = 1, .block = 384});
  CHECK(last_registers() == std::vector<unsigned>{40, 232, 232});
  CHECK_FALSE(last_kernel_has_launch_bounds());
  ladder::launch(without_change, {.grid = 1, .block = 384});
  CHECK(last_registers() == std::vector<unsigned>{0, 0, 0});
  set_options({});
}

TEST_CASE("what a file says of its kernels is told from what a copy of it says") {
  const std::string original = "/r/05_x/gemm.cuh", copy = "/r/build/copy/05_x/gemm.cuh";
  using cpu_device::common_end, cpu_device::hash_of_path;
  for (const char* path :
       {"/r/05_x/gemm.cuh", "05_x/gemm.cuh", "../05_x/gemm.cuh", "/r/03_y/../05_x/gemm.cuh"})
    CHECK(common_end(original, hash_of_path(path)) > 0);
  for (const char* path :
       {"/r/build/copy/05_x/gemm.cuh", "copy/05_x/gemm.cuh", "/r/build/../copy/05_x/gemm.cuh"}) {
    CHECK(common_end(original, hash_of_path(path)) == 0);
    CHECK(common_end(copy, hash_of_path(path)) > common_end(copy, hash_of_path("../05_x/gemm.cuh")));
  }
  CHECK(common_end(original, hash_of_path("mm.cuh")) == 0);
}

}  // namespace registers_test
