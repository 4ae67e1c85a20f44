/// @file
/// Blocks of a cluster that reach into each other's shared memory: multicasts, arrivals, stores that count
/// their bytes, mapped addresses, cluster.sync; and every rule of theirs broken once.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/host/residency.hpp"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tma.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int kRows = 16, kColumns = 64;  // of a box
constexpr int kThreads = 64, kInboxFloats = 4 * kThreads;
using Tile = ladder::SwizzledTile<kRows, kColumns>;
constexpr uint32_t kTileBytes = sizeof(Tile), kInboxBytes = kInboxFloats * sizeof(float);

struct Storage {
  Tile tile;
  alignas(16) float inbox[kInboxFloats];
  ptx::Mbarrier full, free, never_initialised;
};

Shape cluster_of(unsigned blocks) {
  return {.block = kThreads, .shared_bytes = sizeof(Storage), .grid = blocks, .cluster = blocks};
}

/// A matrix of one box, and its map.
struct Box {
  std::vector<__nv_bfloat16> elements;
  CUtensorMap map;

  Box() {
    for (int i = 0; i < kRows * kColumns; ++i) elements.emplace_back(value(i));
    const cuuint64_t extents[] = {kColumns, kRows}, strides[] = {kColumns * sizeof(__nv_bfloat16)};
    const cuuint32_t box[] = {kColumns, kRows}, steps[] = {1, 1};
    REQUIRE(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, elements.data(), extents,
                                   strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                   CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  }
  static float value(int i) { return static_cast<float>(i % 251 + 1); }
  static bool is_in(const Tile& tile) {
    for (int i = 0; i < kRows * kColumns; ++i)
      if (float(tile.at(i / kColumns, i % kColumns)) != value(i)) return false;
    return true;
  }
};

/// Thread 0 of every block prepares its barriers; then the blocks meet.
Storage& prepare(uint32_t arrivals = 1) {
  auto& shared = ladder::shared_storage<Storage>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, arrivals);
    ptx::mbarrier_init(&shared.free, arrivals);
    ptx::mbarrier_name(&shared.full, "full", -1);
    ptx::mbarrier_name(&shared.free, "free", -1);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();
  return shared;
}

bool is_thread(unsigned block, unsigned thread = 0) {
  return ptx::cluster_block_rank() == block && threadIdx.x == thread;
}

/// What two blocks are blamed for of which each thread runs `body` after the barriers are prepared.
template <class Body>
std::string blame(const Schedule& schedule, Body&& body, unsigned blocks = 2) {
  return failure(cluster_of(blocks), schedule, [&] { body(prepare()); });
}

template <class Body>
void check_named_always(const std::string& words, Body&& body) {
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK_THAT(blame(schedule, body), ContainsSubstring(words));
  }
}

/// The race checker names it on all fixed schedules.
template <class Body>
void check_race_named_always(const std::string& words, Body&& body) {
  if (!instrumented()) return;
  const CheckRaces checked;
  check_named_always(words, body);
}

}  // namespace

// --- multicast --------------------------------------------------------------------------------------------

TEST_CASE("a multicast reaches every block of its mask, and no other") {
  const CheckRaces checked;
  const Box box;
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    std::atomic<int> received{0}, untouched{0};
    run(cluster_of(4), schedule, [&] {
      Storage& shared = prepare();
      const bool receives = ptx::cluster_block_rank() != 1;
      if (receives && threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full, kTileBytes);
      if (is_thread(3, 32)) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, 0b1101);
      if (receives) {
        ptx::mbarrier_wait(&shared.full, 0);
        if (threadIdx.x == 0) received += Box::is_in(shared.tile);
      } else if (threadIdx.x == 0) {
        untouched += std::isnan(float(shared.tile.at(3, 3)));
      }
      ptx::cluster_sync();
    });
    REQUIRE(received == 3);
    REQUIRE(untouched == 1);
  }
}

TEST_CASE("bytes of a multicast may come before the receiving block expects them") {
  const CheckRaces checked;
  const Box box;
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    std::atomic<int> received{0};
    run(cluster_of(2), schedule, [&] {
      Storage& shared = prepare();
      if (is_thread(0)) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, 0b11);
      ptx::cluster_sync();
      if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_bytes(&shared.full, kTileBytes);
        ptx::mbarrier_wait(&shared.full, 0);
        received += Box::is_in(shared.tile);
      }
      ptx::cluster_sync();
    });
    REQUIRE(received == 2);
  }
}

// --- store_async ------------------------------------------------------------------------------------------

namespace {

/// What thread t of block b sends in a round.
float4 parcel(unsigned block, unsigned thread, int round) {
  const auto first = static_cast<float>(round * 1000 + static_cast<int>(block * kThreads + thread) * 4);
  return make_float4(first, first + 1, first + 2, first + 3);
}

/// Block 1 sends its inbox's worth to block 0, three times; block 0 says each time when it has read it.
/// @return how many floats arrived as they were sent
int exchange(const Schedule& schedule) {
  std::atomic<int> right{0};
  run(cluster_of(2), schedule, [&] {
    auto& shared = ladder::shared_storage<Storage>();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&shared.full, 1);
      ptx::mbarrier_init(&shared.free, kThreads);
      ptx::fence_mbarrier_init();
    }
    ptx::cluster_sync();
    for (int round = 0; round < 3; ++round) {
      const auto parity = static_cast<uint32_t>(round & 1);
      if (ptx::cluster_block_rank() == 1) {
        ptx::mbarrier_wait(&shared.free, parity ^ 1);
        ptx::store_async(reinterpret_cast<float4*>(&shared.inbox[4 * threadIdx.x]), 0,
                         parcel(1, threadIdx.x, round), &shared.full);
      } else {
        if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full, kInboxBytes);
        ptx::mbarrier_wait(&shared.full, parity);
        // Another thread's parcel, so that the wait matters.
        const unsigned other = (threadIdx.x + 7) % kThreads;
        const float4 sent = parcel(1, other, round);
        const float* found = &shared.inbox[4 * other];
        right += (found[0] == sent.x) + (found[1] == sent.y) + (found[2] == sent.z) + (found[3] == sent.w);
        ptx::mbarrier_arrive_remote(&shared.free, 1);
      }
    }
    ptx::cluster_sync();
  });
  return right;
}

}  // namespace

TEST_CASE("stores that count their bytes fill an inbox, and remote arrivals say that it is free") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    REQUIRE(exchange(schedule) == 3 * kInboxFloats);
  }
}

// --- mapped addresses -------------------------------------------------------------------------------------

TEST_CASE("blocks load and store through mapped addresses between two cluster.syncs") {
  const CheckRaces checked;
  const auto cluster = cooperative_groups::this_cluster();
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    std::atomic<int> right{0};
    run(cluster_of(4), schedule, [&] {
      Storage& shared = prepare();
      const unsigned next = (ptx::cluster_block_rank() + 1) % 4;
      float* of_next = cluster.map_shared_rank(shared.inbox, static_cast<int>(next));
      of_next[threadIdx.x] = static_cast<float>(ptx::cluster_block_rank() * 100 + threadIdx.x);
      ptx::cluster_sync();
      const unsigned opposite = (ptx::cluster_block_rank() + 2) % 4, writer = (opposite + 3) % 4;
      const float found = ptx::map_shared(shared.inbox, opposite)[threadIdx.x ^ 1];
      right += found == static_cast<float>(writer * 100 + (threadIdx.x ^ 1));
      ptx::cluster_sync();
    });
    REQUIRE(right == 4 * kThreads);
  }
}
