/// @file
/// cp.async in all the ways that kernels can ask for it, and the mistakes made with it.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdint>
#include <cuda/pipeline>
#include <string>
#include <vector>

#include "common/cpu_device/base/fiber.hpp"
#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/mbarrier.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;
namespace cg = cooperative_groups;

namespace async_copies_test {
namespace {

constexpr int kTiles = 7, kTile = 128;  ///< more tiles than slots, so that the ring wraps

/// What a mistake leaves out.
enum class Without { nothing, wait, last_commit, barrier_before_reuse };

struct Ring {
  alignas(16) float tiles[2][kTile];
};
const Shape kShape{.block = 32, .shared_bytes = sizeof(Ring)};

std::vector<float> numbers(int count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i + 1);
  return values;
}

/// Two slots of cp.async; every thread sums what another one copied. @return how many sums are wrong.
template <Without kWithout>
int double_buffer(const Schedule& schedule) {
  const std::vector<float> input = numbers(kTiles * kTile);
  std::vector<float> sums(32);
  run(kShape, schedule, [&] {
    auto& shared = ladder::shared_storage<Ring>();
    auto pipe = cuda::make_pipeline();
    const unsigned t = threadIdx.x;
    const auto copy = [&](int tile) {
      pipe.producer_acquire();
      cuda::memcpy_async(&shared.tiles[tile % 2][4 * t], &input[static_cast<size_t>(tile * kTile) + 4 * t],
                         cuda::aligned_size_t<16>(16), pipe);
      if (kWithout != Without::last_commit || tile + 1 < kTiles) pipe.producer_commit();
    };
    copy(0);
    float sum = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      if (tile + 1 < kTiles) copy(tile + 1);
      if (kWithout != Without::wait || tile != 3) {
        if (tile + 1 < kTiles) {
          cuda::pipeline_consumer_wait_prior<1>(pipe);
        } else {
          cuda::pipeline_consumer_wait_prior<0>(pipe);
        }
      }
      __syncthreads();
      for (int i = 0; i < 4; ++i) sum += shared.tiles[tile % 2][4 * (31 - t) + i];
      pipe.consumer_release();
      if (kWithout != Without::barrier_before_reuse) __syncthreads();
    }
    sums[t] = sum;
  });
  int wrong = 0;
  for (unsigned t = 0; t < 32; ++t) {
    float expected = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      for (int i = 0; i < 4; ++i) expected += input[static_cast<size_t>(tile * kTile) + 4 * (31 - t) + i];
    }
    wrong += sums[t] != expected;
  }
  return wrong;
}

/// How a warp says that it has filled a slot.
enum class Arrival { of_copies, of_copies_on_top, of_thread, of_copies_for_a_store_too };

struct HandedOver {
  alignas(16) float tiles[2][kTile];
  ptx::Mbarrier full[2], empty[2];
};
const Shape kTwoWarps{.block = 64, .shared_bytes = sizeof(HandedOver)};

/// Warp 0 copies tiles to two slots and warp 1 sums them. Half of the last tile is zeros. @return how many
/// sums are wrong.
template <Arrival kArrival>
int warp_to_warp(const Schedule& schedule) {
  const std::vector<float> input = numbers(kTiles * kTile);
  std::vector<float> sums(32);
  run(kTwoWarps, schedule, [&] {
    auto& shared = ladder::shared_storage<HandedOver>();
    const unsigned lane = threadIdx.x % 32;
    for (int slot = 0; threadIdx.x == 0 && slot < 2; ++slot) {
      ptx::mbarrier_init(&shared.full[slot], 32);
      ptx::mbarrier_init(&shared.empty[slot], 32);
    }
    __syncthreads();
    float sum = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int slot = tile % 2;
      const auto parity = static_cast<uint32_t>(tile / 2 % 2);
      if (threadIdx.x < 32) {
        ptx::mbarrier_wait(&shared.empty[slot], parity ^ 1);
        float* const to = &shared.tiles[slot][4 * lane];
        const bool is_zero = tile == kTiles - 1 && lane >= 16;
        if (is_zero && kArrival == Arrival::of_copies_for_a_store_too)
          *reinterpret_cast<float4*>(to) = make_float4(0, 0, 0, 0);
        else
          ptx::cp_async_16(to, &input[static_cast<size_t>(tile * kTile) + 4 * lane], is_zero ? 0 : 16);
        if (kArrival == Arrival::of_thread)
          ptx::mbarrier_arrive(&shared.full[slot]);
        else if (kArrival == Arrival::of_copies_on_top)
          ptx::cp_async_mbarrier_arrive(&shared.full[slot]);
        else
          ptx::cp_async_mbarrier_arrive_noinc(&shared.full[slot]);
      } else {
        ptx::mbarrier_wait(&shared.full[slot], parity);
        for (int i = 0; i < 4; ++i) sum += shared.tiles[slot][4 * (31 - lane) + i];
        ptx::mbarrier_arrive(&shared.empty[slot]);
      }
    }
    if (threadIdx.x >= 32) sums[lane] = sum;
  });
  int wrong = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    float expected = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      if (tile == kTiles - 1 && 31 - lane >= 16) continue;
      for (int i = 0; i < 4; ++i) expected += input[static_cast<size_t>(tile * kTile) + 4 * (31 - lane) + i];
    }
    wrong += sums[lane] != expected;
  }
  return wrong;
}

/// What the kernel is blamed for; empty if for nothing.
std::string blame(int (*kernel)(const Schedule&), const Schedule& schedule) {
  try {
    kernel(schedule);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

int wrong_on_any(int (*kernel)(const Schedule&), Landing landing) {
  int wrong = 0;
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.landing == landing) wrong += kernel(schedule);
  }
  return wrong;
}

}  // namespace

TEST_CASE("a double buffer of cp.async is right on every schedule") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) REQUIRE(double_buffer<Without::nothing>(schedule) == 0);
}

TEST_CASE("a missing wait shows where copies land late") {
  CHECK(wrong_on_any(double_buffer<Without::wait>, Landing::late) > 0);
}

TEST_CASE("overwriting a slot too early shows where copies land eagerly") {
  CHECK(wrong_on_any(double_buffer<Without::barrier_before_reuse>, Landing::eager) > 0);
}

TEST_CASE("copies arrive at a barrier when they have landed, on every schedule") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) REQUIRE(warp_to_warp<Arrival::of_copies>(schedule) == 0);
}

TEST_CASE("a thread that arrives for its copies says it too early") {
  for (const Schedule& schedule : fixed_schedules())
    CHECK_THAT(blame(warp_to_warp<Arrival::of_thread>, schedule), ContainsSubstring("cp.async"));
}

TEST_CASE("an arrival of copies on top of those expected does not complete the phase") {
  for (const Schedule& schedule : fixed_schedules())
    CHECK_THAT(blame(warp_to_warp<Arrival::of_copies_on_top>, schedule), ContainsSubstring("deadlock"));
}

TEST_CASE("an arrival of copies does not speak for what the thread has stored") {
  if (!instrumented()) SKIP("races are seen in the instrumented build");
  const CheckRaces checked;
  for (const Schedule& schedule : fixed_schedules())
    CHECK_THAT(blame(warp_to_warp<Arrival::of_copies_for_a_store_too>, schedule), ContainsSubstring("race"));
}

TEST_CASE("copies that were never committed are named when the thread exits") {
  for (const Schedule& schedule : all_schedules()) {
    try {
      double_buffer<Without::last_commit>(schedule);
      FAIL("no failure");
    } catch (const Failure& failure) {
      REQUIRE_THAT(failure.what(), ContainsSubstring("exits with cp.async copies that were never committed"));
      REQUIRE_THAT(failure.what(), ContainsSubstring("test_async_copies.cu:"));
    }
  }
}

TEST_CASE("of copies that were never committed the wait is named that waits for none of them") {
  const std::vector<float> input = numbers(128);
  for (const Schedule& schedule : all_schedules()) {
    const auto run = [&](bool waits) {
      return failure(kShape, schedule, [&] {
        auto& shared = ladder::shared_storage<Ring>();
        __pipeline_memcpy_async(&shared.tiles[0][4 * threadIdx.x], &input[4 * threadIdx.x], 16);
        if (waits) __pipeline_wait_prior(0);
      });
    };
    REQUIRE_THAT(run(true), ContainsSubstring("that were never committed: its wait (test_async_copies.cu:"));
    REQUIRE_THAT(run(true), ContainsSubstring(") waits for none of them: a commit must come before it\n"));
    REQUIRE_THAT(run(false), ContainsSubstring("that were never committed\n"));
  }
}

TEST_CASE("groups that were never waited for are named when the thread exits") {
  const std::vector<float> input = numbers(128);
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = failure(kShape, schedule, [&] {
      auto& shared = ladder::shared_storage<Ring>();
      __pipeline_memcpy_async(&shared.tiles[0][4 * threadIdx.x], &input[4 * threadIdx.x], 16);
      __pipeline_commit();
    });
    REQUIRE_THAT(text, ContainsSubstring("exits with cp.async groups that it never waited for: it has "
                                         "not waited for cp.async at all\n"));
    REQUIRE_THAT(text, ContainsSubstring(" at test_async_copies.cu:"));
  }
}

TEST_CASE("a loop that ends before its first wait and its first arrival is asked for") {
  struct Slots {
    alignas(16) float tile[kTile];
    ladder::Pipeline<1> pipe;
  };
  const std::vector<float> input = numbers(128);
  for (const Schedule& schedule : all_schedules()) {
    const auto kernel = [&](bool arrives) {
      return failure({.block = 32, .shared_bytes = sizeof(Slots)}, schedule, [&, arrives] {
        auto& shared = ladder::shared_storage<Slots>();
        if (threadIdx.x == 0) shared.pipe.init(32, 1);
        __syncthreads();
        ptx::mbarrier_wait(&shared.pipe.empty[0], 1);
        __pipeline_memcpy_async(&shared.tile[4 * threadIdx.x], &input[4 * threadIdx.x], 16);
        __pipeline_commit();
        if (arrives) ptx::mbarrier_arrive(&shared.pipe.full[0]);
      });
    };
    REQUIRE_THAT(kernel(false),
                 ContainsSubstring("it has not waited for cp.async at all, nor arrived at any "
                                   "mbarrier, though it waited for pipe.empty[0]: does its loop "
                                   "end before the waits, and the arrivals, for its last copies?"));
    REQUIRE_THAT(kernel(true), ContainsSubstring("it has not waited for cp.async at all\n"));
  }
}

TEST_CASE("a group that was never waited for is reported with what the last wait has to do with it") {
  const std::vector<float> input = numbers(128);
  const auto kernel = [&](bool waits_after) {
    return failure(kShape, {}, [&] {
      auto& shared = ladder::shared_storage<Ring>();
      const auto copy = [&](int slot) {
        __pipeline_memcpy_async(&shared.tiles[slot][4 * threadIdx.x], &input[4 * threadIdx.x], 16);
        __pipeline_commit();
      };
      copy(0);
      if (!waits_after) __pipeline_wait_prior(0);
      copy(1);
      if (waits_after) __pipeline_wait_prior(1);
    });
  };
  CHECK_THAT(
      kernel(true),
      ContainsSubstring("never waited for: its last wait (test_async_copies.cu:") &&
          ContainsSubstring(") leaves out the newest group, with its last copies, because "
                            "no commit stands between that group and the wait") &&
          ContainsSubstring("wait with a smaller count, after the last copies for all groups (a wait of 0)"));
  CHECK_THAT(kernel(false), ContainsSubstring("never waited for: it commits after its last wait"));
}

TEST_CASE("empty groups need no wait") {
  CHECK(failure(kShape, {}, [] { __pipeline_commit(); }).empty());
}

TEST_CASE("a copy lands as late as the wait, or at once, as the schedule says") {
  const std::vector<float> input = numbers(128);
  for (Landing landing : {Landing::late, Landing::eager}) {
    int nan_before_wait = 0;
    run(kShape, {Order::round_robin, landing}, [&] {
      float* mine = &ladder::shared_storage<Ring>().tiles[0][4 * threadIdx.x];
      __pipeline_memcpy_async(mine, &input[4 * threadIdx.x], 16);
      nan_before_wait += std::isnan(mine[0]);
      __pipeline_commit();
      nan_before_wait += std::isnan(mine[0]);
      __pipeline_wait_prior(0);
      if (mine[0] != input[4 * threadIdx.x]) __trap();
    });
    CHECK(nan_before_wait == (landing == Landing::late ? 64 : 0));
  }
}

TEST_CASE("copies past L1 and through it are of one group") {
  const std::vector<float> input = numbers(128);
  int nan_before_wait = 0;
  run(kShape, {Order::round_robin, Landing::late}, [&] {
    auto& shared = ladder::shared_storage<Ring>();
    float *past = &shared.tiles[0][4 * threadIdx.x], *through = &shared.tiles[1][4 * threadIdx.x];
    ptx::cp_async_16(past, &input[4 * threadIdx.x], 16);
    ptx::cp_async_ca_16(through, &input[4 * threadIdx.x]);
    __pipeline_commit();
    nan_before_wait += std::isnan(past[3]) && std::isnan(through[3]);
    __pipeline_wait_prior(0);
    for (int i = 0; i < 4; ++i)
      if (past[i] != input[4 * threadIdx.x + i] || through[i] != past[i]) __trap();
  });
  CHECK(nan_before_wait == 32);
  CHECK_THAT(failure({.block = 1, .shared_bytes = sizeof(Ring)}, {},
                     [&] { ptx::cp_async_ca_16(&ladder::shared_storage<Ring>().tiles[0][1], input.data()); }),
             ContainsSubstring("cp.async of 16 bytes to a misaligned address in shared memory"));
}

TEST_CASE("zero filling writes zeros behind the copied bytes") {
  const std::vector<float> input = numbers(4);
  std::vector<float> result(4);
  run({.block = 1, .shared_bytes = sizeof(Ring)}, {}, [&] {
    float* tile = ladder::shared_storage<Ring>().tiles[0];
    __pipeline_memcpy_async(tile, input.data(), 16, 8);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    for (int i = 0; i < 4; ++i) result[static_cast<size_t>(i)] = tile[i];
  });
  CHECK(result == std::vector<float>{1, 2, 0, 0});
}

TEST_CASE("a copy that cp.async cannot make is named") {
  alignas(16) static const float input[16] = {};
  const auto blamed = [](const std::function<void(Ring&)>& copy) {
    return failure({.block = 1, .shared_bytes = sizeof(Ring)}, {},
                   [&] { copy(ladder::shared_storage<Ring>()); });
  };
  CHECK_THAT(blamed([](Ring& ring) { __pipeline_memcpy_async(&ring.tiles[0][1], input, 16); }),
             ContainsSubstring("cp.async of 16 bytes to a misaligned address in shared memory"));
  CHECK_THAT(blamed([](Ring& ring) { __pipeline_memcpy_async(ring.tiles[0], input + 2, 16); }),
             ContainsSubstring("cp.async of 16 bytes from a misaligned address in global memory"));
  CHECK_THAT(blamed([](Ring& ring) { __pipeline_memcpy_async(ring.tiles[0], input, 12); }),
             ContainsSubstring("cp.async of 12 bytes; it copies 4, 8 or 16"));
  CHECK_THAT(blamed([](Ring&) {
               alignas(16) float registers[4];
               __pipeline_memcpy_async(registers, input, 16);
             }),
             ContainsSubstring("cp.async: the address is not in the shared memory of the block"));
  CHECK_THAT(blamed([](Ring& ring) { __pipeline_memcpy_async(&ring + 1, input, 16); }),
             ContainsSubstring("not in the shared memory of the block: it lies 0 bytes behind the end of the "
                               "block's 1024: is an index too large?"));
  CHECK_THAT(blamed([](Ring& ring) { __pipeline_memcpy_async(&ring - 1, input, 16); }),
             ContainsSubstring("it lies 1024 bytes before the block's 1024: is an index negative?"));
  CHECK_THAT(blamed([](Ring& ring) { __pipeline_memcpy_async(&ring.tiles[1][kTile - 2], input, 16); }),
             ContainsSubstring("cp.async reaches over the end of the block's 1024 bytes of shared memory"));
}

TEST_CASE("a line whose cp.async never read their source is remembered") {
  std::vector<std::byte> memory(100 * kTile);
  const auto zero_copies = [&](auto source_bytes) {
    (void)take_work_of_kernels();
    run(kShape, {}, [&] {
      auto* slot = reinterpret_cast<std::byte*>(ladder::shared_storage<Ring>().tiles) + threadIdx.x * 16;
      copy_async(slot, memory.data() + threadIdx.x * 16, 16, source_bytes(), Location::current());
      copy_commit(Location::current());
      copy_wait(0, "wait", Location::current());
    });
    return take_work_of_kernels().zero_copies();
  };
  CHECK_THAT(
      zero_copies([] { return 0; }),
      ContainsSubstring("each cp.async at test_async_copies.cu:") &&
          ContainsSubstring(" filled all its bytes with zeros and read none: is its condition inverted?"));
  CHECK(zero_copies([] { return threadIdx.x ? 0 : 16; }) == "");
}

#ifndef CPU_DEVICE_ASAN  // whose words are others
TEST_CASE("a copy from behind an allocation is named when it is issued, zero filling is not") {
  std::byte* memory = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&memory), 100) == cudaSuccess);
  const auto blame = [&](int offset, uint32_t source_bytes) {
    return failure(kShape, {}, [&] {
      auto* slot = reinterpret_cast<std::byte*>(ladder::shared_storage<Ring>().tiles);
      copy_async(slot + threadIdx.x * 16, memory + offset, 16, source_bytes, Location::current());
      copy_commit(Location::current());
      copy_wait(0, "wait", Location::current());
    });
  };
  CHECK(blame(80, 16) == "");
  CHECK(blame(96, 4) == "");
  CHECK(blame(4096, 0) == "");
  CHECK_THAT(blame(96, 16),
             ContainsSubstring("cp.async: its source of 16 bytes reaches 12 bytes beyond the end of "
                               "the buffer of 100 bytes of cudaMalloc"));
  REQUIRE(cudaFree(memory) == cudaSuccess);
}
#endif

TEST_CASE("memcpy_async without a promised alignment is an ordinary copy, complete at once") {
  alignas(16) static const char input[32] = "twenty-one bytes of text";
  int landed = 0;
  cuda::async_contract_fulfillment kept{};
  run({.block = 1, .shared_bytes = 64}, {Order::round_robin, Landing::late}, [&] {
    auto& text = ladder::shared_storage<char[64]>();
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    kept = cuda::memcpy_async(text, input, 21, pipe);
    landed = text[0] == 't' && text[20] == 't' && text[21] == static_cast<char>(0xff);
    pipe.producer_commit();
    pipe.consumer_wait();
    pipe.consumer_release();
  });
  CHECK(landed == 1);
  CHECK(kept == cuda::async_contract_fulfillment::none);
}

TEST_CASE("consumer_wait waits for the oldest batch only") {
  alignas(16) static const float input[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  bool second_is_late = false, second_is_there = false;
  run({.block = 1, .shared_bytes = 64}, {Order::round_robin, Landing::late}, [&] {
    auto& values = ladder::shared_storage<float[8]>();
    auto pipe = cuda::make_pipeline();
    for (int batch = 0; batch < 2; ++batch) {
      pipe.producer_acquire();
      cuda::memcpy_async(values + 4 * batch, input + 4 * batch, cuda::aligned_size_t<16>(16), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    if (values[3] != 4) __trap();
    second_is_late = std::isnan(values[4]);
    pipe.consumer_wait();
    second_is_there = values[7] == 8;
    pipe.consumer_wait();  // nothing is left: returns
  });
  CHECK(second_is_late);
  CHECK(second_is_there);
}

TEST_CASE("a group copies together, and cooperative_groups waits for all of it") {
  const CheckRaces checked;
  const std::vector<float> input = numbers(100);
  for (const Schedule& schedule : all_schedules()) {
    int wrong = 0;
    run({.block = 64, .shared_bytes = 800}, schedule, [&] {
      auto& values = ladder::shared_storage<float[200]>();
      const auto block = cg::this_thread_block();
      const auto check = [&](size_t count) {
        for (size_t i = threadIdx.x; i < count; i += 64) {
          if (values[count - 1 - i] != input[count - 1 - i]) ++wrong;
        }
        block.sync();
      };
      cg::memcpy_async(block, values, input.data(), sizeof(float) * 100);
      cg::wait(block);
      check(100);
      cg::memcpy_async(block, values, size_t{50}, input.data(), size_t{100});
      cg::wait(block);
      check(50);
      cg::memcpy_async(block, values, input.data(), cuda::aligned_size_t<16>(sizeof(float) * 64));
      cg::memcpy_async(block, values + 100, input.data(), cuda::aligned_size_t<16>(sizeof(float) * 64));
      cg::wait_prior<1>(block);
      check(64);
      cg::wait(block);
      const auto warp = cg::tiled_partition<32>(block);
      if (warp.meta_group_rank() == 0) {
        cg::memcpy_async(warp, values, input.data(), sizeof(float) * 99);
        cg::wait(warp);
        if (values[98] != input[98]) ++wrong;
      }
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("cooperative_groups copies what has no common alignment plainly") {
  const CheckRaces checked;
  static const char input[101] =
      "Neither end of this text is aligned to anything, but its middle can be copied asynchronously";
  for (int offset = 0; offset < 5; ++offset) {
    int wrong = 0;
    run({.block = 32, .shared_bytes = 256}, {}, [&] {
      auto& text = ladder::shared_storage<char[256]>();
      cg::memcpy_async(cg::this_thread_block(), text + offset, input + 1, 89);
      cg::wait(cg::this_thread_block());
      for (int i = 0; i < 89; ++i) wrong += text[offset + i] != input[1 + i];
      wrong += text[offset + 89] != static_cast<char>(0xff);
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("copies are counted with their bytes and sectors") {
  const std::vector<float> input(1024);
  alignas(128) static float aligned[1024];
  run({.block = 32, .shared_bytes = 4096}, {}, [&] {
    auto& values = ladder::shared_storage<float[1024]>();
    for (unsigned i = threadIdx.x * 4; i < 1024; i += 128)
      __pipeline_memcpy_async(&values[i], &aligned[i], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
  });
  CHECK(last_launch().async_copies == 256);
  CHECK(last_launch().global_bytes_read == 4096);
  CHECK(last_launch().global_read_sectors == 128);
  CHECK(last_launch().shared_bytes_written == 4096);
  CHECK(last_launch().shared_wavefronts == 32);
  CHECK(last_launch().bank_conflicts == 0);
}

}  // namespace async_copies_test
