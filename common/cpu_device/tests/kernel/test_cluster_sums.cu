/// @file
/// Two blocks that split a sum: each has a part of it for every tile, block 1 sends its part with
/// store_async, and block 0 adds the two. Every rule of their handshake is broken once and named.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/cpu_device/tests/mistake_checks.hpp"
#include "common/device/shared_storage.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace cluster_sums_test {
namespace {

constexpr unsigned kReader = 0, kSender = 1;  // blocks
constexpr int kThreads = 64, kTiles = 3;
constexpr int kVectors = 2;  // of each thread and tile
constexpr int kParts = kVectors * kThreads;

struct Storage {
  float4 inbox[kParts];
  ptx::Mbarrier full, empty, sent;
};
constexpr uint32_t kInboxBytes = sizeof(Storage::inbox);

enum class Mistake {
  none,
  reader_does_not_wait,
  reader_waits_for_an_arrival,
  reader_expects_nothing,
  reader_expects_too_few_bytes,
  reader_expects_too_many_bytes,
  reader_does_not_release,
  reader_releases_before_it_has_read,
  reader_releases_relaxed,
  empty_counts_a_warp,
  empty_counts_three,
  sender_does_not_wait,
  sender_waits_with_the_wrong_parity,
  sender_sends_half,
  no_sync_after_initialisation,
  no_sync_at_the_end,
};

/// What a block has of the sum of a place.
float part(unsigned block, int tile, int place) {
  return static_cast<float>(block * 1000 + static_cast<unsigned>(tile) * 5000 + static_cast<unsigned>(place));
}

class Roles {
 public:
  Roles(std::vector<float>& sums, Mistake mistake)
      : smem_(ladder::shared_storage<Storage>()), sums_(sums), mistake_(mistake) {}

  void run() {
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&smem_.full, 1);
      ptx::mbarrier_init(&smem_.empty, makes(Mistake::empty_counts_a_warp)  ? 32
                                       : makes(Mistake::empty_counts_three) ? 3
                                                                            : kThreads);
      ptx::mbarrier_init(&smem_.sent, kThreads);
      ptx::fence_mbarrier_init();
    }
    makes(Mistake::no_sync_after_initialisation) ? __syncthreads() : ptx::cluster_sync();
    for (int tile = 0; tile < kTiles; ++tile) ptx::cluster_block_rank() == kSender ? send(tile) : add(tile);
    if (!makes(Mistake::no_sync_at_the_end)) ptx::cluster_sync();
  }

 private:
  bool makes(Mistake mistake) const { return mistake_ == mistake; }

  void send(int tile) {
    if (!makes(Mistake::sender_does_not_wait))
      ptx::mbarrier_wait_cluster(&smem_.empty, static_cast<uint32_t>(tile & 1) ^
                                                   !makes(Mistake::sender_waits_with_the_wrong_parity));
    for (int v = 0; v < (makes(Mistake::sender_sends_half) ? 1 : kVectors); ++v) {
      const int i = v * kThreads + static_cast<int>(threadIdx.x);
      const float first = part(kSender, tile, 4 * i);
      ptx::store_async(&smem_.inbox[i], kReader, make_float4(first, first + 1, first + 2, first + 3),
                       &smem_.full);
    }
    if (makes(Mistake::reader_waits_for_an_arrival))
      ptx::mbarrier_arrive_remote_release(&smem_.sent, kReader);
  }

  void add(int tile) {
    uint32_t bytes = kInboxBytes;
    if (makes(Mistake::reader_expects_nothing)) bytes = 0;
    if (makes(Mistake::reader_expects_too_few_bytes)) bytes -= 16;
    if (makes(Mistake::reader_expects_too_many_bytes)) bytes += 16;
    if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&smem_.full, bytes);
    if (!makes(Mistake::reader_does_not_wait))
      ptx::mbarrier_wait_cluster(makes(Mistake::reader_waits_for_an_arrival) ? &smem_.sent : &smem_.full,
                                 static_cast<uint32_t>(tile & 1));
    if (makes(Mistake::reader_releases_before_it_has_read)) {
      release();
      __syncthreads();  // a thread can be stopped only where it calls the device
    }
    for (int v = 0; v < kVectors; ++v) {
      // A neighbour's vectors, so that nothing is ordered by chance.
      const int i = v * kThreads + static_cast<int>((threadIdx.x + 1) % kThreads);
      const float4 sent = smem_.inbox[i];
      const float parts[] = {sent.x, sent.y, sent.z, sent.w};
      for (int e = 0; e < 4; ++e)
        sums_[static_cast<size_t>((tile * kParts + i) * 4 + e)] = part(kReader, tile, 4 * i + e) + parts[e];
    }
    if (!makes(Mistake::reader_releases_before_it_has_read) && !makes(Mistake::reader_does_not_release))
      release();
  }

  void release() {
    makes(Mistake::reader_releases_relaxed) ? ptx::mbarrier_arrive_remote(&smem_.empty, kSender)
                                            : ptx::mbarrier_arrive_remote_release(&smem_.empty, kSender);
  }

  Storage& smem_;
  std::vector<float>& sums_;
  const Mistake mistake_;
};

/// @return the failure, "wrong result", or "".
std::string add_parts(const Schedule& schedule, Mistake mistake = Mistake::none) {
  std::vector<float> sums(kTiles * kParts * 4, -1.f);
  const Shape shape{.block = kThreads, .shared_bytes = sizeof(Storage), .grid = 2, .cluster = 2};
  const std::string text = failure(shape, schedule, [&] { Roles(sums, mistake).run(); });
  if (!text.empty()) return text;
  for (int i = 0; i < kTiles * kParts * 4; ++i) {
    const int tile = i / (kParts * 4), place = i % (kParts * 4);
    if (!(sums[static_cast<size_t>(i)] == part(0, tile, place) + part(1, tile, place))) return "wrong result";
  }
  return "";
}

RunOfMistake with(Mistake mistake) {
  return [mistake](const Schedule& schedule) { return add_parts(schedule, mistake); };
}

}  // namespace

TEST_CASE("sums that meet in one block's inbox are right, without an alarm, on all schedules") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    REQUIRE(add_parts(schedule) == "");
  }
}

TEST_CASE("a reader that does not wait adds what has not landed") {
  check_race(with(Mistake::reader_does_not_wait), "test_cluster_sums.cu:");
}
TEST_CASE("an arrival after a store_async does not say that it has landed") {
  const RunOfMistake run = with(Mistake::reader_waits_for_an_arrival);
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.landing == Landing::late) {
      CHECK(run(schedule) != "");  // the arrival comes first
    } else if (instrumented()) {
      const CheckRaces checked;
      CHECK_THAT(run(schedule), ContainsSubstring("store_async (a write) issued by block (1,0,0)"));
    }
  }
}
TEST_CASE("a sender that does not wait for the inbox to be empty overwrites what is still read") {
  check_race(with(Mistake::sender_does_not_wait), "test_cluster_sums.cu:");
}
TEST_CASE("an inbox that is released before it was read is overwritten") {
  check_race(with(Mistake::reader_releases_before_it_has_read), "test_cluster_sums.cu:");
  for (const std::string& text : blames(with(Mistake::reader_releases_before_it_has_read), true))
    CHECK_THAT(text, !ContainsSubstring("between them"));
}
TEST_CASE("a relaxed release orders no loads: a race, though the result is right here") {
  for (const std::string& text : blames(with(Mistake::reader_releases_relaxed), false)) CHECK(text == "");
  if (!instrumented()) return;
  for (const std::string& text : blames(with(Mistake::reader_releases_relaxed), true))
    CHECK_THAT(text, ContainsSubstring("overwritten while it may still be read") &&
                         ContainsSubstring("between them: mbarrier_arrive_remote at ") &&
                         ContainsSubstring(": it is relaxed"));
}
TEST_CASE("a count of empty that leaves out readers is named") {
  if (!instrumented()) return;
  const auto is_said = [](Mistake mistake, const char* words) {
    const std::vector<std::string> texts = blames(with(mistake), true);
    for (const std::string& text : texts) UNSCOPED_INFO(text);
    CHECK(std::any_of(texts.begin(), texts.end(),
                      [&](const std::string& text) { return text.find(words) != text.npos; }));
  };
  is_said(Mistake::empty_counts_three,
          "before it writes, is too small; different threads ended the last two: "
          "more arrive than the count of 3 at test_cluster_sums.cu:");
  is_said(Mistake::empty_counts_a_warp, ", as its count of 32 says (test_cluster_sums.cu:");
  is_said(Mistake::empty_counts_a_warp,
          ", which reads, is not among them: should it arrive, too, and the count include it?\n");
}
TEST_CASE("a count that leaves out one of two blocks which read is named with this block") {
  if (!instrumented()) return;
  struct Inbox {
    float4 pieces[2][32];
    ptx::Mbarrier full, others_empty;
  };
  const auto exchange = [](unsigned count) {  // each of three blocks sends to the two others, twice
    auto& smem = ladder::shared_storage<Inbox>();
    const unsigned me = ptx::cluster_block_rank(), lane = threadIdx.x;
    if (lane == 0) {
      ptx::mbarrier_init(&smem.full, 1);
      ptx::mbarrier_init(&smem.others_empty, count);
      ptx::fence_mbarrier_init();
    }
    ptx::cluster_sync();
    for (uint32_t parity : {0u, 1u}) {
      if (lane == 0) ptx::mbarrier_arrive_expect_bytes(&smem.full, sizeof smem.pieces);
      ptx::mbarrier_wait_cluster(&smem.others_empty, parity ^ 1);
      for (unsigned to = 0; to < 3; ++to)
        if (to != me)
          ptx::store_async(&smem.pieces[me < to ? me : me - 1][lane], to, make_float4(1, 1, 1, 1),
                           &smem.full);
      ptx::mbarrier_wait_cluster(&smem.full, parity);
      volatile float sum = smem.pieces[0][lane].x + smem.pieces[1][lane].x;
      static_cast<void>(sum);
      __syncwarp();
      if (lane < 3 && lane != me) ptx::mbarrier_arrive_remote_release(&smem.others_empty, lane);
    }
    ptx::cluster_sync();
  };
  const Shape shape{.block = 32, .shared_bytes = sizeof(Inbox), .grid = 3, .cluster = 3};
  const auto run = [&](unsigned count) {
    return [&shape, &exchange, count](const Schedule& schedule) {
      return failure(shape, schedule, [&] { exchange(count); });
    };
  };
  const auto is_clean = [](const std::string& text) { return text.empty(); };
  const std::vector<std::string> right = blames(run(2), true), wrong = blames(run(1), true);
  CHECK(std::all_of(right.begin(), right.end(), is_clean));
  for (const std::string& text : wrong) UNSCOPED_INFO(text);
  CHECK(std::any_of(wrong.begin(), wrong.end(), [](const std::string& text) {
    return text.find(
               " waited last for others_empty, whose phase 0 had ended without an arrival of block (") !=
               text.npos &&
           text.find(", which reads: its count is 1 (test_cluster_sums.cu:") != text.npos;
  }));
}
TEST_CASE("where another block ends the next phase, its arrivals are asked for beside the count") {
  const auto expect_twice = [](bool from_other_block) {
    auto& smem = ladder::shared_storage<Storage>();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&smem.full, 1);
      ptx::mbarrier_init(&smem.empty, 1);
      ptx::fence_mbarrier_init();
    }
    ptx::cluster_sync();
    const bool is_filler = ptx::cluster_block_rank() == 0 && threadIdx.x == 0;
    const auto fill = [&] {
      if (!is_filler) return;
      ptx::mbarrier_wait(&smem.empty, 1);
      ptx::mbarrier_arrive_expect_bytes(&smem.full, 16);
    };
    fill();
    ptx::cluster_sync();
    if (ptx::cluster_block_rank() == 0 && threadIdx.x == 32) ptx::mbarrier_arrive_remote(&smem.empty, 0);
    ptx::cluster_sync();
    if (ptx::cluster_block_rank() == from_other_block && threadIdx.x == 33)
      ptx::mbarrier_arrive_remote(&smem.empty, 0);
    ptx::cluster_sync();
    fill();
  };
  const Shape shape{.block = kThreads, .shared_bytes = sizeof(Storage), .grid = 2, .cluster = 2};
  const auto said = [&](bool from_other_block) {
    return failure(shape, fixed_schedules().front(), [&] { expect_twice(from_other_block); });
  };
  CHECK_THAT(said(true), ContainsSubstring("for which the thread waited last, is too small, or arrivals of "
                                           "block (0,0,0), or those of block (1,0,0), are meant for another "
                                           "barrier; different threads ended the last two"));
  CHECK_THAT(said(false), ContainsSubstring("for which the thread waited last, is too small; different "));
}
TEST_CASE("an inbox that expects nothing, or too few bytes, is found") {
  check_race(with(Mistake::reader_expects_nothing), "test_cluster_sums.cu:");
  check_race(with(Mistake::reader_expects_too_few_bytes), "test_cluster_sums.cu:");
}
TEST_CASE("an inbox that expects more bytes than come waits for ever, and the rest is said") {
  check_named_always(with(Mistake::reader_expects_too_many_bytes), "16 bytes missing");
  check_named_always(with(Mistake::sender_sends_half), "1024 bytes missing");
}
TEST_CASE(
    "a sender that waits first for the release of what it has not sent is named, and asked for its parity") {
  check_named_always(with(Mistake::sender_waits_with_the_wrong_parity),
                     "deadlock: block (1,0,0) warps 0-1 wait at test_cluster_sums.cu:");
  check_named_always(with(Mistake::sender_waits_with_the_wrong_parity),
                     " for empty, phase 0: 64 of 64 arrivals missing\n  nobody has ever arrived there; block "
                     "(0,0,0) warps 0-1 wait for 2048 bytes at full (test_cluster_sums.cu:");
  check_named_always(with(Mistake::sender_waits_with_the_wrong_parity),
                     "), which nobody has sent: if they are sent only behind this wait, must the first wait "
                     "have parity 1, which passes at once, or is an arrival before them missing?\n");
  for (const std::string& text : blames(with(Mistake::reader_does_not_release), false))
    CHECK_THAT(text, ContainsSubstring("\n  nobody has ever arrived there\n"));
}
TEST_CASE("an inbox that nobody releases is a deadlock that names both blocks") {
  check_named_always(with(Mistake::reader_does_not_release),
                     "block (1,0,0) warps 0-1 wait at test_cluster_sums.cu:");
  check_named_always(with(Mistake::reader_does_not_release),
                     "in phase 0 (parity 0), 64 of 64 arrivals missing; nobody arrived in this phase");
}
TEST_CASE("blocks that do not meet after initialisation, or before they leave, are found") {
  check_race(with(Mistake::no_sync_after_initialisation), "test_cluster_sums.cu:");
  check_race(with(Mistake::no_sync_at_the_end), "of the cluster");
}

}  // namespace cluster_sums_test
