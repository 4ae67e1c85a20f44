/// @file
/// Blocks of a cluster that reach into each other's shared memory: multicasts, arrivals, stores that count
/// their bytes, mapped addresses, cluster.sync; and every rule of theirs broken once.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_bf16.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/cpu_device/tests/tensor_map.cuh"
#include "common/cuda/residency.hpp"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tma.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace cluster_test {
namespace {

constexpr int kRows = 16, kColumns = 64;  // of a box
constexpr int kThreads = 64, kInboxFloats = 4 * kThreads;
using Tile = ladder::SwizzledTile<kRows, kColumns>;
constexpr uint32_t kTileBytes = sizeof(Tile), kInboxBytes = kInboxFloats * sizeof(float);

struct Storage {
  Tile tile;
  alignas(16) float inbox[kInboxFloats];
  ptx::Mbarrier full, empty, never_initialised;
};

Shape cluster_of(unsigned blocks) {
  return {.block = kThreads, .shared_bytes = sizeof(Storage), .grid = blocks, .cluster = blocks};
}

/// A matrix of one box, and its map.
struct Box {
  std::vector<__nv_bfloat16> elements = values();
  CUtensorMap map = map_of(elements.data(), kRows, kColumns, kRows);

  static std::vector<__nv_bfloat16> values() {
    std::vector<__nv_bfloat16> all;
    for (int i = 0; i < kRows * kColumns; ++i) all.emplace_back(value(i));
    return all;
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
    ptx::mbarrier_init(&shared.empty, arrivals);
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

/// A fixed schedule shows it, and the race checker names it on all of them.
template <class Body>
void check_race(const std::string& shown, const std::string& raced, Body&& body) {
  std::string texts;
  for (const Schedule& schedule : fixed_schedules()) texts += blame(schedule, body) + "\n";
  CHECK_THAT(texts, ContainsSubstring(shown));
  if (!instrumented()) return;
  const CheckRaces checked;
  check_named_always(raced, body);
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

TEST_CASE("masks that name no block, or one that does not exist, are named") {
  const Box box;
  check_named_always("TMA multicast to no block: the mask is 0", [&](Storage& shared) {
    if (is_thread(0)) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, 0);
  });
  check_named_always("TMA multicast: there is no block 2 in a cluster of 2 blocks", [&](Storage& shared) {
    if (is_thread(0)) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, 0b101);
  });
}

TEST_CASE("a receiving block's barrier must be initialised and fenced") {
  const Box box;
  check_named_always(" of block (1,0,0) was never initialised", [&](Storage& shared) {
    if (is_thread(0)) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.never_initialised, 0b10);
  });
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure(cluster_of(2), schedule, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      if (threadIdx.x == 0) ptx::mbarrier_init(&shared.full, 1);
      if (is_thread(0)) ptx::fence_mbarrier_init();
      ptx::cluster_sync();
      if (is_thread(0)) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, 0b11);
    });
    CHECK_THAT(text,
               ContainsSubstring("no fence.mbarrier_init after the initialisation of full of block (1,0,0)"));
    CHECK_THAT(text, ContainsSubstring(" of block (1,0,0) (initialised at test_cluster.cu:"));
  }
}

TEST_CASE("bytes of a multicast that a receiving block does not expect, or expects too few of, are named") {
  const Box box;
  for (const uint32_t expected : {0u, kTileBytes / 2}) {
    check_named_always("full of block (1,0,0)", [&](Storage& shared) {
      if (is_thread(1)) ptx::mbarrier_arrive_expect_bytes(&shared.full, expected);
      if (is_thread(0)) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, 0b10);
      if (is_thread(1)) ptx::mbarrier_wait(&shared.full, 0);
      ptx::cluster_sync();
    });
  }
}

TEST_CASE("bytes of a multicast that come after their phase has ended are named") {
  const Box box;
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.landing != Landing::late) continue;
    const std::string text = blame(schedule, [&](Storage& shared) {
      if (is_thread(0)) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, 0b10);
      ptx::cluster_sync();
      if (is_thread(1)) ptx::mbarrier_arrive(&shared.full);
      if (is_thread(1)) ptx::mbarrier_wait(&shared.full, 1);
    });
    CHECK_THAT(text, ContainsSubstring("TMA multicast: the phase in which it was issued has ended before its "
                                       "bytes came: too few bytes were expected at full of block (1,0,0)"));
    CHECK_THAT(text,
               ContainsSubstring(", or a mask names a wrong block: this one, of block (0,0,0), leaves out "
                                 "the block that sends\n"));
  }
}

TEST_CASE("where a mask is wrong, it is said whom it names and who brought the bytes") {
  const Box box;
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.landing != Landing::late) continue;
    const std::string text = blame(schedule, [&](Storage& shared) {
      if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full, kTileBytes);
      const uint16_t mask = ptx::cluster_block_rank() == 0 ? 0b11 : 0b10;  // 0b01 would be right
      if (threadIdx.x == 0) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, mask);
      if (threadIdx.x == 0) ptx::mbarrier_wait(&shared.full, 0);
      if (threadIdx.x == 0) ptx::mbarrier_wait(&shared.full, 1);
    });
    CHECK_THAT(
        text,
        ContainsSubstring("TMA multicast: does the mask 0b11 of block (0,0,0) (test_cluster.cu:") &&
            ContainsSubstring(" name a wrong block? It sends to block (0,0,0) and block (1,0,0)\n") &&
            ContainsSubstring("more bytes are sent to full of block (1,0,0) (") &&
            ContainsSubstring(") than the 2048 that its phase 0 expected: that line also sends to block "
                              "(1,0,0) with the mask 0b10\n") &&
            ContainsSubstring(" warp 0 (2048 bytes of a TMA multicast of a box of 16 rows with mask 0b1"));
    CHECK_THAT(text, !ContainsSubstring("sender is ahead"));
  }
}

TEST_CASE("a block that leaves while a multicast is in flight to it is named") {
  const Box box;
  check_race("block 1 of the cluster left while this TMA multicast of block 0 was in flight to it",
             "block 1 of the cluster", [&](Storage& shared) {
               if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full, kTileBytes);
               if (is_thread(0)) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, 0b11);
               if (ptx::cluster_block_rank() == 0) ptx::mbarrier_wait(&shared.full, 0);
             });
}

// --- arrivals ---------------------------------------------------------------------------------------------

TEST_CASE("arrivals that a cluster.sync follows have taken effect when the blocks leave") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    REQUIRE(blame(schedule, [](Storage& shared) {
              if (threadIdx.x == 0) {
                ptx::mbarrier_arrive_remote(&shared.empty, 0);
                ptx::mbarrier_arrive_remote(&shared.empty, 1);
              }
              ptx::cluster_sync();
            }) == "");
  }
}

TEST_CASE("an arrival at a block that does not exist is named") {
  check_named_always("mbarrier_arrive_remote: there is no block 2 in a cluster of 2 blocks",
                     [](Storage& shared) {
                       if (is_thread(0)) ptx::mbarrier_arrive_remote(&shared.empty, 2);
                     });
}

TEST_CASE("arrivals beyond the count of another block's barrier are named") {
  check_named_always("more arrivals than expected at full of block (1,0,0)", [](Storage& shared) {
    if (is_thread(1)) ptx::mbarrier_arrive_expect_bytes(&shared.full, 64);
    ptx::cluster_sync();
    if (is_thread(0)) ptx::mbarrier_arrive_remote(&shared.full, 1);
    ptx::cluster_sync();
  });
}

TEST_CASE("without a cluster.sync after the initialisation another block's barrier may not exist yet") {
  const auto kernel = [] {
    auto& shared = ladder::shared_storage<Storage>();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&shared.empty, 1);
      ptx::fence_mbarrier_init();
      ptx::mbarrier_arrive_remote(&shared.empty, ptx::cluster_block_rank() ^ 1);
      ptx::mbarrier_wait(&shared.empty, 0);
    }
    ptx::cluster_sync();
  };
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.order == Order::round_robin) continue;
    CHECK_THAT(
        failure(cluster_of(2), schedule, kernel),
        ContainsSubstring("was never initialised, or was overwritten; a cluster_sync must come between "
                          "its initialisation and its use by other blocks"));
  }
  if (!instrumented()) return;
  const CheckRaces checked;
  for (const Schedule& schedule : fixed_schedules()) CHECK(failure(cluster_of(2), schedule, kernel) != "");
}

TEST_CASE("an arrival at a block that leaves, or has left, is named") {
  const auto kernel = [](Storage& shared) {
    if (ptx::cluster_block_rank() == 0) __syncthreads();
    if (is_thread(0)) ptx::mbarrier_arrive_remote(&shared.empty, 1);
  };
  check_race(
      "block 1 of the cluster left while this mbarrier_arrive_remote of block 0 was in flight to it: "
      "block 1 must reach a last cluster_sync",
      "block 1 of the cluster", kernel);
  check_race(
      "mbarrier_arrive_remote: block 1 of the cluster has left while block 0 still reaches into its "
      "shared memory; block 1 must reach a last cluster_sync",
      "block 1 of the cluster", kernel);
}

TEST_CASE("a block may leave without a cluster.sync once it has waited for the arrivals that it gets") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    REQUIRE(blame(schedule, [](Storage& shared) {
              if (is_thread(0)) ptx::mbarrier_arrive_remote(&shared.empty, 1);
              if (is_thread(1, 40)) ptx::mbarrier_wait(&shared.empty, 0);
            }) == "");
  }
}

TEST_CASE("a deadlock names the blocks of those who wait, who arrived and who never did") {
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure(cluster_of(3), schedule, [] {
      Storage& shared = prepare(/*arrivals=*/3);
      if (threadIdx.x == 32 && ptx::cluster_block_rank() != 1) ptx::mbarrier_arrive_remote(&shared.empty, 2);
      if (is_thread(2)) ptx::mbarrier_wait(&shared.empty, 0);
    });
    CHECK_THAT(text, ContainsSubstring("block (2,0,0) warp 0 lane 0 waits at test_cluster.cu:"));
    CHECK_THAT(text, ContainsSubstring("in mbarrier_wait for empty, phase of parity 0"));
    CHECK_THAT(text, ContainsSubstring("empty of block (2,0,0) (initialised at test_cluster.cu:"));
    CHECK_THAT(text, ContainsSubstring("1 of 3 arrivals missing; arrived: block (0,0,0) warp 1") ||
                         ContainsSubstring("1 of 3 arrivals missing; arrived: warp 1"));
    CHECK_THAT(text, ContainsSubstring("; no arrival from block (1,0,0)"));
  }
}

TEST_CASE("a deadlock of a cluster names blocks that wait alike once, and leaves out lines where it may") {
  const auto kernel = [] {
    Storage& shared = prepare(/*arrivals=*/64);
    if (threadIdx.x < 32) ptx::mbarrier_wait(&shared.empty, 0);
    if (threadIdx.x >= 32 && threadIdx.x % 2) ptx::mbarrier_wait(&shared.full, 0);
    ptx::cluster_sync();
  };
  Options options;
  std::string texts[2];
  for (const size_t limit : {0, 12}) {
    options.report_lines = limit;
    set_options(options);
    try {
      launch({"test", 8, 64, 8, sizeof(Storage)}, kernel);
    } catch (const Failure& report) {
      texts[limit != 0] = report.what();
    }
  }
  set_options({});
  CHECK_THAT(texts[0], ContainsSubstring("\n  likewise blocks (1,0,0) to (7,0,0)\n") &&
                           ContainsSubstring("; likewise blocks (1,0,0) to (7,0,0)") &&
                           !ContainsSubstring("block (5,0,0) warp") && !ContainsSubstring("with --all"));
  CHECK_THAT(texts[1], ContainsSubstring(" lines more with --all\n"));
  CHECK(std::count(texts[1].begin(), texts[1].end(), '\n') == 11);
}

// --- store_async ------------------------------------------------------------------------------------------

namespace {

/// What a thread sends.
float4 parcel(unsigned thread) {
  const auto first = static_cast<float>(4 * thread);
  return make_float4(first, first + 1, first + 2, first + 3);
}

}  // namespace

TEST_CASE("places that a store_async cannot reach are named") {
  check_named_always("store_async: there is no block 7 in a cluster of 2 blocks", [](Storage& shared) {
    ptx::store_async(reinterpret_cast<float4*>(shared.inbox), 7, parcel(0), &shared.full);
  });
  check_named_always("is not aligned to 16 bytes", [](Storage& shared) {
    auto* to = reinterpret_cast<char*>(shared.inbox) + 8;
    cpu_device::store_async(to, 1, shared.inbox, &shared.full, Location::current());
  });
  check_named_always("store_async reaches over the end of the block's", [](Storage& shared) {
    auto* to = reinterpret_cast<char*>(&shared + 1) - 8;
    cpu_device::store_async(to, 1, shared.inbox, &shared.full, Location::current());
  });
  check_named_always("store_async: the mbarrier at shared memory +", [](Storage& shared) {
    ptx::store_async(reinterpret_cast<float4*>(shared.inbox), 1, parcel(0), &shared.never_initialised);
  });
}

TEST_CASE("what store_async sends is not there before it lands") {
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.landing != Landing::late) continue;
    bool was_nan = false;
    float found = 0;
    run(cluster_of(2), schedule, [&] {
      Storage& shared = prepare();
      if (is_thread(1)) ptx::store_async(reinterpret_cast<float4*>(shared.inbox), 0, parcel(0), &shared.full);
      ptx::cluster_sync();  // orders nothing of a store_async
      if (!is_thread(0)) return;
      was_nan = std::isnan(shared.inbox[0]);
      ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
      ptx::mbarrier_wait(&shared.full, 0);
      found = shared.inbox[0];
    });
    CHECK(was_nan);
    CHECK(found == parcel(0).x);
  }
}

TEST_CASE("a block that leaves while a store_async is in flight to it is named") {
  check_race("block 0 of the cluster left while this store_async of block 1 was in flight to it",
             "kernel 'test': ", [](Storage& shared) {
               if (is_thread(0)) ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
               if (is_thread(1))
                 ptx::store_async(reinterpret_cast<float4*>(shared.inbox), 0, parcel(0), &shared.full);
             });
}

TEST_CASE("a block that waits for fewer bytes than are sent to it, and leaves, is told how many") {
  check_race("in flight to it: phase 0 of full of block (0,0,0)", "kernel 'test': ", [](Storage& shared) {
    if (is_thread(0)) {
      ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
      ptx::mbarrier_wait(&shared.full, 0);
    }
    if (ptx::cluster_block_rank() == 1 && threadIdx.x < 2)
      ptx::store_async(reinterpret_cast<float4*>(shared.inbox) + threadIdx.x, 0, parcel(0), &shared.full);
  });
}

TEST_CASE("two blocks that send to one place are asked whether each should store elements of its own") {
  const auto send = [](unsigned step) {
    return [step] {
      Storage& shared = prepare();
      const unsigned rank = ptx::cluster_block_rank();
      if (rank > 0 && threadIdx.x == 0)
        ptx::store_async(reinterpret_cast<float4*>(shared.inbox) + (rank - 1) * step, 0, parcel(0),
                         &shared.full);
      if (rank == 0 && threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_bytes(&shared.full, 32);
        ptx::mbarrier_wait_cluster(&shared.full, 0);
      }
      ptx::cluster_sync();
    };
  };
  if (!instrumented()) return;
  const CheckRaces checked;
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK(failure(cluster_of(3), schedule, send(1)) == "");
    const std::string text = failure(cluster_of(3), schedule, send(0));
    CHECK_THAT(text, ContainsSubstring("two writes that no barrier or wait orders\n") &&
                         ContainsSubstring(" writes (store_async)") &&
                         ContainsSubstring(": should each store elements of its own?\n"));
  }
}

TEST_CASE("of a block's barrier that nobody has come to, it is said at which other blocks' they arrived") {
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure(cluster_of(3), schedule, [] {
      Storage& shared = prepare(/*arrivals=*/1);
      if (is_thread(0)) {  // the same block twice, instead of both
        for (int i = 0; i < 2; ++i) ptx::mbarrier_arrive_remote(&shared.empty, 1);
      }
      if (is_thread(2)) ptx::mbarrier_wait(&shared.empty, 0);
      ptx::cluster_sync();
    });
    CHECK_THAT(text, ContainsSubstring("1 of 1 arrivals missing\n  nobody has ever arrived there; block "
                                       "(0,0,0) warp 0 lane 0 arrived twice at empty of block (1,0,0) "
                                       "(test_cluster.cu:"));
  }
}

TEST_CASE(
    "bytes that came at other blocks, where nobody expects any, are told to the block that lacks them") {
  // Blocks 0 and 1 expect what blocks 2 and 3 send, with the wrong rank, or with the right one.
  const auto send = [](unsigned distance) {
    return [distance] {
      Storage& shared = prepare();
      const unsigned rank = ptx::cluster_block_rank();
      if (threadIdx.x == 0 && rank < 2) {
        ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
        ptx::mbarrier_wait_cluster(&shared.full, 0);
      }
      if (threadIdx.x == 0 && rank >= 2)
        ptx::store_async(reinterpret_cast<float4*>(shared.inbox), rank ^ distance, parcel(0), &shared.full);
      ptx::cluster_sync();
    };
  };
  for (const Schedule& schedule : all_schedules()) {
    CHECK(failure(cluster_of(4), schedule, send(2)) == "");
    const std::string text = failure(cluster_of(4), schedule, send(1));
    CHECK_THAT(text,
               ContainsSubstring(" for full, phase 0: 16 of 16 bytes missing\n  16 bytes were expected (") &&
                   ContainsSubstring("); block (3,0,0) sent 16 bytes by store_async (test_cluster.cu:") &&
                   ContainsSubstring(") to full of block (2,0,0), and block (2,0,0) to that of block "
                                     "(3,0,0), where nobody expects bytes: is the rank of the "
                                     "receiver wrong?\n"));
  }
}

TEST_CASE("a multicast that leaves out the block which expects its bytes is asked about") {
  const Box box;
  for (const uint16_t mask : {0b01, 0b10})
    for (const Schedule& schedule : all_schedules()) {
      const std::string text = failure(cluster_of(2), schedule, [&] {
        Storage& shared = prepare();
        if (is_thread(0)) {
          ptx::mbarrier_arrive_expect_bytes(&shared.full, kTileBytes);
          ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, mask);
          ptx::mbarrier_wait(&shared.full, 0);
        }
        ptx::cluster_sync();
      });
      if (mask == 0b01)
        CHECK(text == "");
      else
        CHECK_THAT(text,
                   ContainsSubstring("; block (0,0,0) sent 2048 bytes by TMA multicast (test_cluster.cu:") &&
                       ContainsSubstring(") to full of block (1,0,0), where nobody expects bytes: does "
                                         "the mask name a wrong block?\n"));
    }
}

TEST_CASE("bytes for a block that has not expected them yet are not called sent to the wrong block") {
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = failure(cluster_of(2), schedule, [] {  // they swap, but block 1 forgets to
      Storage& shared = prepare();
      const unsigned rank = ptx::cluster_block_rank();
      if (threadIdx.x == 0 && rank == 0) {
        ptx::store_async(reinterpret_cast<float4*>(shared.inbox), 1, parcel(0), &shared.full);
        ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
        ptx::mbarrier_wait_cluster(&shared.full, 0);
      }
      ptx::cluster_sync();
    });
    CHECK_THAT(text, ContainsSubstring(", and none came: bytes have never come to block (0,0,0), but only to "
                                       "block (1,0,0): does this block receive any, or has their sender left "
                                       "it out?\n") &&
                         !ContainsSubstring("wrong?"));
  }
}

TEST_CASE("a block to which bytes have come in an earlier phase is not called one that never receives") {
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = failure(cluster_of(2), schedule, [] {  // block 0 sends to both, and then to 0
      Storage& shared = prepare();
      if (threadIdx.x == 0) {
        auto* const inbox = reinterpret_cast<float4*>(shared.inbox);
        const unsigned rank = ptx::cluster_block_rank();
        ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
        if (rank == 0)
          for (const unsigned to : {0, 1}) ptx::store_async(inbox, to, parcel(0), &shared.full);
        ptx::mbarrier_wait_cluster(&shared.full, 0);
        ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
        if (rank == 0) ptx::store_async(inbox, 0, parcel(1), &shared.full);
        ptx::mbarrier_wait_cluster(&shared.full, 1);
      }
      ptx::cluster_sync();
    });
    CHECK_THAT(text, ContainsSubstring(", and none came\n") && !ContainsSubstring("have never come"));
  }
}

TEST_CASE(
    "of a block that waits where none of it arrives, it is said that others' warps do in their blocks") {
  // Warp 0 fills in block 0 alone, and warp 1 waits in both; or it fills in both.
  for (const bool fills : {false, true})
    for (const bool leaves : {false, true})
      for (const Schedule& schedule : all_schedules()) {
        const std::string text = failure(cluster_of(2), schedule, [=] {
          Storage& shared = prepare(/*arrivals=*/32);
          if (threadIdx.x < 32 && (fills || ptx::cluster_block_rank() == 0))
            ptx::mbarrier_arrive(&shared.empty);
          if (threadIdx.x >= 32) ptx::mbarrier_wait(&shared.empty, 0);
          if (!leaves || threadIdx.x >= 32) ptx::cluster_sync();
        });
        if (fills) {
          CHECK(text == "");
          continue;
        }
        CHECK_THAT(
            text,
            ContainsSubstring("32 of 32 arrivals missing\n  nobody has ever arrived there; warp 0 of "
                              "block (0,0,0) arrived at its own (test_cluster.cu:") &&
                ContainsSubstring(leaves ? "), and those of block (1,0,0) have exited: "
                                         : "), and those of block (1,0,0) now wait at test_cluster.cu:") &&
                ContainsSubstring(": does this block need this wait, or should they arrive here, too?\n"));
      }
}

TEST_CASE("of a block whose threads may still arrive, nothing is said of those of others") {
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = failure(cluster_of(2), schedule, [] {
      Storage& shared = prepare(/*arrivals=*/32);
      if (threadIdx.x < 32 && ptx::cluster_block_rank() == 1) ptx::mbarrier_wait(&shared.full, 0);
      if (threadIdx.x < 32) ptx::mbarrier_arrive(&shared.empty);
      if (threadIdx.x >= 32) ptx::mbarrier_wait(&shared.empty, 0);
      ptx::cluster_sync();
    });
    CHECK_THAT(text, ContainsSubstring("deadlock: ") && !ContainsSubstring("need this wait"));
  }
}

TEST_CASE("multicasts of two blocks to one place are named where more bytes come than are expected") {
  const Box box;
  for (const uint16_t own : {0, 1})  // only the pair, or all four
    for (const Schedule& schedule : fixed_schedules()) {
      const std::string text = failure(cluster_of(4), schedule, [&] {
        Storage& shared = prepare();
        const unsigned rank = ptx::cluster_block_rank();
        if (threadIdx.x == 0) {
          ptx::mbarrier_arrive_expect_bytes(&shared.full, kTileBytes);
          const auto pair = static_cast<uint16_t>(0b11 << (rank & 2));
          if (rank % 2 == 0)
            ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, own ? pair : 0b1111);
          ptx::mbarrier_wait(&shared.full, 0);
          if (!own) ptx::mbarrier_wait(&shared.full, 1);
        }
        ptx::cluster_sync();
      });
      if (own)
        CHECK(text == "");
      else if (schedule.landing == Landing::late)
        CHECK_THAT(text, ContainsSubstring(" than the 2048 that its phase 0 expected\n  block (0,0,0) ("
                                           "test_cluster.cu:") &&
                             ContainsSubstring(", mask 0b1111) and block (2,0,0) (test_cluster.cu:") &&
                             ContainsSubstring(", mask 0b1111) send to the same place: does a mask name a "
                                               "wrong block?\n"));
    }
}

TEST_CASE("a race of two blocks' multicasts to one place is asked for the masks, unless each has its turn") {
  if (!instrumented()) return;
  const Box box;
  const CheckRaces checked;
  for (const bool in_turn : {false, true})
    for (const Schedule& schedule : fixed_schedules()) {
      CAPTURE(schedule.name(), in_turn);
      const std::string text = failure(cluster_of(2), schedule, [&] {
        Storage& shared = prepare();
        for (unsigned round = 0; round < 2; ++round) {
          const bool is_mine = !in_turn || ptx::cluster_block_rank() == round;
          if (threadIdx.x == 0) {
            ptx::mbarrier_arrive_expect_bytes(&shared.full, in_turn ? kTileBytes : 2 * kTileBytes);
            if (is_mine) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, 0b11);
            ptx::mbarrier_wait(&shared.full, round);
          }
          ptx::cluster_sync();
        }
      });
      if (in_turn)
        CHECK(text == "");
      else
        CHECK_THAT(text, ContainsSubstring(": both bring 2048 bytes to the same place, with the masks 0b11 "
                                           "and 0b11: does a mask name a wrong block, or should each block "
                                           "load its own?\n"));
    }
}

TEST_CASE("halves that each of four blocks keeps for itself are told to the others") {
  Box box;
  // Pairs share a tile: each loads a half of its rows. Or all four share, each a quarter.
  for (const unsigned parts : {2u, 4u})
    for (const Schedule& schedule : all_schedules()) {
      const CUtensorMap map =
          map_of(box.elements.data(), kRows, kColumns, kRows / parts, CU_TENSOR_MAP_SWIZZLE_NONE);
      const std::string text = failure(cluster_of(4), schedule, [&] {
        Storage& shared = prepare();
        const unsigned rank = ptx::cluster_block_rank(), row = rank % parts * kRows / parts;
        if (threadIdx.x == 0) {
          ptx::mbarrier_arrive_expect_bytes(&shared.full, kTileBytes);
          ptx::tma_load_multicast(reinterpret_cast<__nv_bfloat16*>(&shared.tile) + row * kColumns, &map, 0,
                                  static_cast<int>(row), &shared.full, static_cast<uint16_t>(1 << rank));
          ptx::mbarrier_wait(&shared.full, 0);
        }
        ptx::cluster_sync();
      });
      CHECK_THAT(text, ContainsSubstring(parts == 2 ? "; blocks (1,0,0), (3,0,0) have each loaded as many "
                                                      "bytes as are missing, at test_cluster.cu:"
                                                    : "; blocks (1,0,0) to (3,0,0) have together loaded as "
                                                      "many bytes as are missing, at test_cluster.cu:") &&
                           ContainsSubstring(parts == 2 ? "fills: should one of them multicast these"
                                                        : "fills: should they multicast these"));
    }
}

TEST_CASE("multicasts that leave out the block which lacks their bytes are named with their mask") {
  Box box;
  const CUtensorMap map = map_of(box.elements.data(), kRows, kColumns, kRows / 2, CU_TENSOR_MAP_SWIZZLE_NONE);
  for (const bool to_other : {false, true})
    for (const Schedule& schedule : all_schedules()) {
      const std::string text = failure(cluster_of(4), schedule, [&] {  // pairs share a tile
        Storage& shared = prepare();
        const unsigned rank = ptx::cluster_block_rank(), row = rank % 2 * kRows / 2;
        if (threadIdx.x == 0) {
          ptx::mbarrier_arrive_expect_bytes(&shared.full, kTileBytes);
          ptx::tma_load_multicast(reinterpret_cast<__nv_bfloat16*>(&shared.tile) + row * kColumns, &map, 0,
                                  static_cast<int>(row), &shared.full,
                                  static_cast<uint16_t>(to_other ? 1 << (rank ^ 1) : 0b10 << (rank & 2)));
          ptx::mbarrier_wait(&shared.full, 0);
        }
        ptx::cluster_sync();
      });
      CHECK_THAT(text,
                 ContainsSubstring(to_other ? "; the multicasts of block (0,0,0) at test_cluster.cu:"
                                            : "; the multicasts of blocks (0,0,0), (1,0,0) at ") &&
                     ContainsSubstring(to_other ? ", with the mask 0b0010, leave out their own block: "
                                                : ", with the mask 0b0010, leave out block (0,0,0): ") &&
                     ContainsSubstring(": they bring as many bytes as are missing\n"));
    }
}

TEST_CASE("bytes that no block has loaded are not called those of another") {
  const Box box;
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = failure(cluster_of(2), schedule, [&] {  // each its own, and expects two
      Storage& shared = prepare();
      if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_bytes(&shared.full, 2 * kTileBytes);
        ptx::tma_load(&shared.tile, &box.map, 0, 0, &shared.full);
        ptx::mbarrier_wait(&shared.full, 0);
      }
      ptx::cluster_sync();
    });
    CHECK_THAT(text, ContainsSubstring(", and these came: block (0,0,0) warp 0 (2048 bytes of a TMA load"));
  }
}

TEST_CASE("a first wait of those who send is named only where they may be the ones that are waited for") {
  const Box box;
  enum class Mistake { parity, no_load };
  for (const Mistake mistake : {Mistake::parity, Mistake::no_load})
    for (const Schedule& schedule : all_schedules()) {
      const std::string text = failure(cluster_of(1), schedule, [&] {
        Storage& shared = prepare();
        if (threadIdx.x == 0) ptx::mbarrier_init(&shared.never_initialised, 1);  // but here
        __syncthreads();
        // Warp 0 reads what it expects itself, or what thread 32 expects; thread 33 waits for what it read.
        const bool is_reader = threadIdx.x == 0, is_loader = threadIdx.x == 32;
        if (mistake == Mistake::parity ? is_reader : is_loader)
          ptx::mbarrier_arrive_expect_bytes(&shared.full, kTileBytes);
        if (is_reader) ptx::mbarrier_wait(&shared.full, 0);
        if (is_loader) ptx::mbarrier_wait(&shared.empty, mistake == Mistake::no_load);
        if (is_loader && mistake != Mistake::no_load)
          ptx::tma_load(&shared.tile, &box.map, 0, 0, &shared.full);
        if (is_reader) ptx::mbarrier_arrive(&shared.empty);
        if (is_reader) ptx::mbarrier_arrive(&shared.never_initialised);
        if (threadIdx.x == 33) ptx::mbarrier_wait(&shared.never_initialised, 0);
      });
      if (mistake == Mistake::parity)
        CHECK_THAT(text, ContainsSubstring(" for empty, phase 0: 1 of 1 arrivals missing\n  the slot is new, "
                                           "and empty: the first wait for it must have parity 1, and has 0; "
                                           "warp 0 lane 0 waits for full\n"));
      else
        CHECK_THAT(text, ContainsSubstring(" for full, phase 0: 2048 of 2048 bytes missing\n") &&
                             ContainsSubstring(", and none came\n"));
    }
}

TEST_CASE("blocks that all wait for bytes before they send are asked whether the sending comes first") {
  for (const Schedule& schedule : fixed_schedules()) {
    for (const bool all_wait : {true, false}) {
      const std::string text = failure(cluster_of(2), schedule, [&] {
        Storage& shared = prepare();
        const unsigned rank = ptx::cluster_block_rank();
        if (threadIdx.x == 0 && (all_wait || rank == 0)) {
          ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
          ptx::mbarrier_wait_cluster(&shared.full, 0);
          ptx::store_async(reinterpret_cast<float4*>(shared.inbox), 1 - rank, parcel(0), &shared.full);
        }
        ptx::cluster_sync();
      });
      const std::string question =
          ", and none came; all blocks wait likewise, and none has sent: should they send before they wait?";
      CHECK((text.find(question) != text.npos) == all_wait);
    }
  }
}

TEST_CASE("blocks that wait first for what only they send are told that this wait must pass") {
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure(cluster_of(2), schedule, [] {
      Storage& shared = prepare(/*arrivals=*/1);
      if (threadIdx.x == 0) ptx::mbarrier_init(&shared.never_initialised, 1);  // but here
      if (threadIdx.x == 0) ptx::fence_mbarrier_init();
      ptx::cluster_sync();
      if (threadIdx.x == 0) {
        ptx::mbarrier_wait(&shared.never_initialised, 0);
        ptx::mbarrier_arrive_remote(&shared.never_initialised, 1 - ptx::cluster_block_rank());
      }
      ptx::cluster_sync();
    });
    CHECK_THAT(text,
               ContainsSubstring("each of the 2 blocks waits for its own, and if those who wait are the "
                                 "ones who arrive, nobody can before this wait: the first wait must "
                                 "have parity 1, which passes at once"));
  }
}

TEST_CASE("a sender that is ahead by the bytes of a phase is called so before anything else") {
  for (const Schedule& schedule : fixed_schedules()) {
    const bool is_late = schedule.landing == Landing::late;
    const std::string text = blame(schedule, [](Storage& shared) {
      if (is_thread(0)) {
        for (unsigned batch = 0; batch < 2; ++batch)
          ptx::store_async(reinterpret_cast<float4*>(shared.inbox), 1, parcel(batch), &shared.full);
      }
      if (is_thread(1)) {
        ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
        ptx::mbarrier_wait(&shared.full, 0);
        ptx::mbarrier_wait(&shared.full, 1);
      }
    });
    CHECK_THAT(text, is_late
                         ? ContainsSubstring("store_async: the sender is ahead (it sent the 16 bytes of a "
                                             "phase before the phase before had ended")
                         : ContainsSubstring("the sender is ahead"));
  }
}

TEST_CASE("bytes of which an arrival has still to speak do not make the sender one that is ahead") {
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure(cluster_of(2), schedule, [] {
      Storage& shared = prepare(/*arrivals=*/2);
      if (is_thread(0)) {
        for (unsigned i = 0; i < 2; ++i)
          ptx::store_async(reinterpret_cast<float4*>(shared.inbox) + i, 1, parcel(i), &shared.full);
      }
      if (is_thread(1)) {
        ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
        ptx::mbarrier_wait_cluster(&shared.full, 0);
      }
      ptx::cluster_sync();
    });
    CHECK_THAT(text,
               ContainsSubstring("16 bytes more than expected (16 expected, 32 came): who has not arrived "
                                 "has not said yet how many it expects"));
    CHECK_THAT(text, !ContainsSubstring("is ahead"));
  }
}

TEST_CASE("bytes that come too late and are not those of a phase have two causes") {
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.landing != Landing::late) continue;
    const std::string text = blame(schedule, [](Storage& shared) {
      auto* const inbox = reinterpret_cast<float4*>(shared.inbox);
      if (is_thread(0)) {
        for (unsigned i = 0; i < 3; ++i) ptx::store_async(inbox, 1, parcel(i), &shared.full);
      }
      if (is_thread(1)) {
        ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
        ptx::mbarrier_wait(&shared.full, 0);
        ptx::mbarrier_wait(&shared.full, 1);
      }
    });
    CHECK_THAT(text, ContainsSubstring("too few bytes were expected at full of block (1,0,0)"));
    CHECK_THAT(text,
               ContainsSubstring(", or the sender is ahead and did not wait until the slot was empty\n"));
  }
}

TEST_CASE("a store_async or a load that overwrites a barrier is named, and so is a plain store") {
  const Box box;
  check_named_always("store_async overwrites the mbarrier full of block (1,0,0)", [](Storage& shared) {
    auto* const barriers =
        reinterpret_cast<float4*>(reinterpret_cast<uintptr_t>(&shared.empty) & ~uintptr_t{15});
    if (is_thread(0)) ptx::store_async(barriers, 1, parcel(0), &shared.full);
    if (is_thread(1)) ptx::mbarrier_wait(&shared.full, 0);
    ptx::cluster_sync();
  });
  if (!instrumented()) return;
  const CheckRaces checked;
  check_named_always("was overwritten (the last to write there: store by block (0,0,0) warp 0 lane 0 at ",
                     [](Storage& shared) {
                       if (!is_thread(0)) return;
                       *reinterpret_cast<volatile uint64_t*>(&shared.empty) = 0;
                       ptx::mbarrier_arrive(&shared.empty);
                     });
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

TEST_CASE("a mapped load that no cluster.sync orders after the store is a race") {
  if (!instrumented()) return;
  const CheckRaces checked;
  check_named_always("a cluster_sync must come between, and a __syncthreads is none", [](Storage& shared) {
    if (ptx::cluster_block_rank() == 1) shared.inbox[threadIdx.x] = 1.f;
    __syncthreads();
    if (is_thread(0)) shared.inbox[0] = ptx::map_shared(shared.inbox, 1)[5];
    ptx::cluster_sync();
  });
}

TEST_CASE("of what another block still reads, it is asked whether the next round needs a place of its own") {
  if (!instrumented()) return;
  const CheckRaces checked;
  std::atomic<float> sum{0};
  const auto rounds = [&](int places) {
    return [&, places](Storage& shared) {
      for (int round = 0; round < 3; ++round) {
        const int place = round % places;
        if (threadIdx.x == 0) shared.inbox[place] = static_cast<float>(round);
        ptx::cluster_sync();
        if (threadIdx.x == 0) sum += ptx::map_shared(shared.inbox, ptx::cluster_block_rank() ^ 1)[place];
      }
      ptx::cluster_sync();
    };
  };
  check_named_always(
      "a __syncthreads is none; or the write, if it is of the next round, needs another element", rounds(1));
  for (const Schedule& schedule : all_schedules()) CHECK(blame(schedule, rounds(2)) == "");
}

TEST_CASE("a block that leaves while another has a pointer to its shared memory is named") {
  check_race(
      "block 1 of the cluster left while block 0 may still use the pointer that it has to its shared "
      "memory: block 1 must reach a last cluster_sync",
      "block 1 of the cluster", [](Storage& shared) {
        if (ptx::cluster_block_rank() != 0) return;
        const float* of_other = ptx::map_shared(shared.inbox, 1);
        __syncthreads();
        shared.inbox[threadIdx.x] = of_other[threadIdx.x];
      });
}

TEST_CASE("where a block returned before the cluster.sync of the others, its last call is named") {
  const unsigned line = __LINE__;
  check_named_always(
      "block 1 must reach a last cluster_sync, or wait for what others do there, before it exits "
      "(its last call seen was at test_cluster.cu:" +
          std::to_string(line + 7) + ")",
      [](Storage& shared) {
        if (ptx::cluster_block_rank() == 1) {
          __syncwarp();
          return;
        }
        shared.inbox[threadIdx.x] = ptx::map_shared(shared.inbox, 1)[threadIdx.x];
        ptx::cluster_sync();
      });
}

TEST_CASE("a pointer may be dropped with an arrival instead of a cluster.sync") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    REQUIRE(blame(schedule, [](Storage& shared) {
              if (is_thread(1)) ptx::mbarrier_wait_cluster(&shared.empty, 0);
              if (!is_thread(0)) return;
              shared.inbox[0] = ptx::map_shared(shared.inbox, 1)[0];
              ptx::mbarrier_arrive_remote_release(&shared.empty, 1);
            }) == "");
  }
}

TEST_CASE("what a thread stored before a relaxed arrival, or is waited for at the block's scope, is a race") {
  if (!instrumented()) return;
  const CheckRaces checked;
  for (const bool is_released : {false, true}) {
    const char* const why = is_released ? ": its scope is the block" : ": it is relaxed";
    const auto run = [&](Storage& shared) {
      if (is_thread(0)) {
        ptx::map_shared(shared.inbox, 1)[0] = 1.f;
        is_released ? ptx::mbarrier_arrive_remote_release(&shared.empty, 1)
                    : ptx::mbarrier_arrive_remote(&shared.empty, 1);
      }
      if (is_thread(1)) {
        is_released ? ptx::mbarrier_wait(&shared.empty, 0) : ptx::mbarrier_wait_cluster(&shared.empty, 0);
        shared.inbox[1] = shared.inbox[0];
      }
      ptx::cluster_sync();
    };
    check_named_always("race in shared memory of block 1", run);
    check_named_always(why, run);
  }
}

TEST_CASE("a wait of the block's scope for a store_async of another block is a race, and for its own none") {
  if (!instrumented()) return;
  const CheckRaces checked;
  const auto receive = [](unsigned sender, bool waits_for_cluster) {
    return [=](Storage& shared) {
      if (is_thread(1)) ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
      if (is_thread(sender))
        ptx::store_async(reinterpret_cast<float4*>(shared.inbox), 1, parcel(0), &shared.full);
      if (is_thread(1)) {
        waits_for_cluster ? ptx::mbarrier_wait_cluster(&shared.full, 0) : ptx::mbarrier_wait(&shared.full, 0);
        shared.inbox[4] = shared.inbox[0];
      }
      ptx::cluster_sync();
    };
  };
  check_named_always("may be read before the copy lands", receive(0, false));
  check_named_always("the reader waited last for full, whose phase 0 had ended: the mbarrier_wait at ",
                     receive(0, false));
  check_named_always(
      " has the scope of the block, and for what another block stores (bytes of a store_async at ",
      receive(0, false));
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    CHECK(blame(schedule, receive(0, true)) == "");
    CHECK(blame(schedule, receive(1, false)) == "");
  }
}

TEST_CASE("an access to a block that has left reads NaN, and is named where accesses are seen") {
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.order != Order::highest_first) continue;
    float found = 0;
    const std::string text = failure(cluster_of(2), schedule, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      shared.inbox[threadIdx.x] = 1.f;
      const float* of_other = ptx::map_shared(shared.inbox, ptx::cluster_block_rank() ^ 1);
      ptx::cluster_sync();
      if (ptx::cluster_block_rank() == 0) __syncthreads();
      if (is_thread(0)) found = of_other[3];
    });
    if (!instrumented()) {
      CHECK(std::isnan(found));
      continue;
    }
    CHECK_THAT(text,
               ContainsSubstring("a load from the shared memory of block 1 of the cluster, which has left: "
                                 "block 1 must reach a last cluster_sync"));
    CHECK_THAT(text, ContainsSubstring("\n  at kernel/test_cluster.cu:"));
  }
}

TEST_CASE("pointers into blocks that do not exist, or do not lie in shared memory, are named") {
  check_named_always("map_shared: there is no block 2 in a cluster of 2 blocks",
                     [](Storage& shared) { ptx::map_shared(shared.inbox, 2); });
  float elsewhere = 0;
  check_named_always("map_shared: the address is not in the shared memory of the block",
                     [&](Storage&) { ptx::map_shared(&elsewhere, 1); });
}

// --- cluster.sync -----------------------------------------------------------------------------------------

TEST_CASE("cluster.sync does not wait for threads that have exited, and may be called from different roles") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    std::atomic<int> arrived{0}, wrong{0};
    run(cluster_of(2), schedule, [&] {
      prepare();
      if (threadIdx.x % 4 == 3) return;
      ++arrived;
      if (threadIdx.x < 32) {
        ptx::cluster_sync();
      } else if (threadIdx.x == 32) {
        cooperative_groups::this_cluster().sync();
      } else {
        ptx::cluster_sync();
      }
      if (arrived != 2 * kThreads * 3 / 4) ++wrong;
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("threads that never come to a cluster.sync are named with their block") {
  check_named_always("cluster.sync: 127 of 128 threads arrived", [](Storage& shared) {
    is_thread(1, 37) ? ptx::mbarrier_wait(&shared.empty, 0) : ptx::cluster_sync();
  });
  check_named_always(
      "never arrived at the cluster.sync, of block (1,0,0): warp 1 (1 threads)",
      [](Storage& shared) { is_thread(1, 37) ? ptx::mbarrier_wait(&shared.empty, 0) : ptx::cluster_sync(); });
}

// --- figures ----------------------------------------------------------------------------------------------

TEST_CASE("a multicast reads global memory once, and what comes from other blocks is counted") {
  const Box box;
  Options options;
  options.count = instrumented();
  set_options(options);
  launch({"test", 2, kThreads, 2, sizeof(Storage)}, [&] {
    Storage& shared = prepare();
    if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full, kTileBytes);
    if (is_thread(0)) ptx::tma_load_multicast(&shared.tile, &box.map, 0, 0, &shared.full, 0b11);
    ptx::mbarrier_wait(&shared.full, 0);
    if (ptx::cluster_block_rank() == 1) {
      ptx::store_async(reinterpret_cast<float4*>(&shared.inbox[4 * threadIdx.x]), 0, parcel(threadIdx.x),
                       &shared.empty);
    } else {
      if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.empty, kInboxBytes);
      ptx::mbarrier_wait(&shared.empty, 0);
      ptx::map_shared(shared.inbox, 1)[threadIdx.x] = 1.f;
    }
    ptx::cluster_sync();
  });
  const Counters& counted = last_launch();
  const uint32_t stored = instrumented() ? kThreads * sizeof(float) : 0;
  CHECK(counted.async_copies == 1 + kThreads);
  CHECK(counted.global_bytes_read == kTileBytes);
  CHECK(counted.shared_bytes_written == 2 * kTileBytes + kInboxBytes + stored);
  CHECK(counted.cluster_bytes == kTileBytes + kInboxBytes + stored);
}

TEST_CASE("a GPU full of clusters is small, so that persistent kernels take several tiles") {
  void (*const kernel)(int) = nullptr;
  CHECK(ladder::resident_clusters(kernel, 128, 0, 1) == ladder::blocks_at_once);
  CHECK(ladder::resident_clusters(kernel, 128, 0, 2) == ladder::blocks_at_once / 2);
  CHECK(ladder::resident_clusters(kernel, 128, 0, 16) == 1);
}

namespace {
void does_nothing(int) {}
}  // namespace

TEST_CASE("the grid of a persistent kernel says nothing of its tiles") {
  const auto grid_after_launch = [] {
    (void)take_work_of_kernels();
    KernelLaunch kernel{"test", {2}, {32}, {1}};
    kernel.function = reinterpret_cast<const void*>(does_nothing);
    launch(kernel, [] { does_nothing(0); });
    return take_work_of_kernels().grid[0];
  };
  CHECK(grid_after_launch() == 2);
  (void)ladder::resident_blocks(does_nothing, 32, 0);
  CHECK(grid_after_launch() == 0);
}

}  // namespace cluster_test
