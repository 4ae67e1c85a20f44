/// @file
/// A small GEMM by clusters of two blocks: each block has rows of its own and loads half of every tile of B,
/// which it multicasts to both. Every rule of their handshake is broken once and named; the right kernel
/// raises no alarm.
#include <cuda.h>
#include <cuda_bf16.h>

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/cpu_device/tests/mistake_checks.hpp"
#include "common/cpu_device/tests/tensor_map.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/wgmma.cuh"

using namespace cpu_device;
using namespace cpu_device::test;

namespace cluster_ring_test {
namespace {

constexpr unsigned kBlocks = 2;
constexpr int kTile = 64;                     // of M, N and K
constexpr int kHalf = kTile / kBlocks;        // rows of B that a block loads
constexpr int kLoader = 128, kThreads = 192;  // threads 0 to 127 compute, the last warp has no role
using Tile = ladder::SwizzledTile<kTile, kTile>;

template <int kSlots>
struct Storage {
  Tile b[kSlots], a[kSlots];
  ptx::Mbarrier full[kSlots], empty[kSlots];
};

/// What both blocks leave out, or do wrong.
enum class Mistake {
  none,
  no_sync_after_initialisation,
  no_sync_at_the_end,
  empty_counts_one_block,
  loader_does_not_wait,
  loader_expects_its_own_half_only,
  loader_sends_to_itself_only,
  loader_sends_to_the_other_only,
  loader_sends_to_one_place,
  releases_a_block_without_its_loads,
  sends_to_the_other_and_releases_its_own,
  loader_sends_the_whole_tile,
  compute_makes_too_few_steps,
  compute_does_not_wait,
  compute_releases_its_own_block_only,
  compute_releases_before_wgmma_has_read,
};

/// C [128, columns] = A [128, depth] B [depth, columns], in small integers: one row of tiles for each block.
struct Problem {
  int rows = static_cast<int>(kBlocks) * kTile, columns, depth;
  std::vector<__nv_bfloat16> a, b;
  std::vector<float> c, expected;

  Problem(int tiles, int k_steps) : columns(tiles * kTile), depth(k_steps * kTile) {
    const auto value = [](int i, int factor) { return static_cast<float>((i * factor + i / 7) % 5 - 2); };
    for (int i = 0; i < rows * depth; ++i) a.emplace_back(value(i, 3));
    for (int i = 0; i < depth * columns; ++i) b.emplace_back(value(i, 7));
    expected.resize(static_cast<size_t>(rows * columns));
    for (int m = 0; m < rows; ++m) {
      for (int k = 0; k < depth; ++k) {
        for (int n = 0; n < columns; ++n) {
          expected[static_cast<size_t>(m * columns + n)] +=
              float(a[static_cast<size_t>(m * depth + k)]) * float(b[static_cast<size_t>(k * columns + n)]);
        }
      }
    }
  }
};

/// The roles of one block; the mistake is made in every round.
template <int kSlots>
class Roles {
 public:
  Roles(Problem& problem, const CUtensorMap& a, const CUtensorMap& b, Mistake mistake)
      : smem_(ladder::shared_storage<Storage<kSlots>>()),
        problem_(problem),
        map_a_(a),
        map_b_(b),
        k_steps_(problem.depth / kTile),
        steps_(problem.columns / kTile * k_steps_),
        rank_(ptx::cluster_block_rank()),
        mistake_(mistake) {}

  void run() {
    if (threadIdx.x == 0) initialise();
    makes(Mistake::no_sync_after_initialisation) ? __syncthreads() : ptx::cluster_sync();
    if (threadIdx.x < kLoader) compute();
    if (threadIdx.x == kLoader) load();
    if (!makes(Mistake::no_sync_at_the_end)) ptx::cluster_sync();
  }

 private:
  bool makes(Mistake mistake) const { return mistake_ == mistake; }

  /// A slot is full when the block's own loader has said what comes, and empty when both blocks have read it.
  void initialise() {
    for (int slot = 0; slot < kSlots; ++slot) {
      ptx::mbarrier_init(&smem_.full[slot], 1);
      const bool counts_one = makes(Mistake::empty_counts_one_block) ||
                              makes(Mistake::releases_a_block_without_its_loads) ||
                              makes(Mistake::sends_to_the_other_and_releases_its_own);
      ptx::mbarrier_init(&smem_.empty[slot], counts_one ? 1 : kBlocks);
    }
    ptx::fence_mbarrier_init();
  }

  void load() {
    const int k_of_half = static_cast<int>(rank_) * kHalf;
    uint32_t bytes = 2 * sizeof(Tile);
    if (makes(Mistake::loader_expects_its_own_half_only)) bytes -= sizeof(Tile) / kBlocks;
    uint16_t blocks = (1u << kBlocks) - 1;
    if (makes(Mistake::loader_sends_to_itself_only)) blocks = static_cast<uint16_t>(1u << rank_);
    if (makes(Mistake::loader_sends_to_the_other_only)) blocks = static_cast<uint16_t>(1u << (rank_ ^ 1));
    for (int step = 0; step < steps_; ++step) {
      const int slot = step % kSlots, k = step % k_steps_ * kTile;
      const auto lap = static_cast<uint32_t>(step / kSlots);
      if (!makes(Mistake::loader_does_not_wait)) ptx::mbarrier_wait(&smem_.empty[slot], (lap & 1) ^ 1);
      ptx::mbarrier_arrive_expect_bytes(&smem_.full[slot], bytes);
      if (!makes(Mistake::empty_counts_one_block))
        ptx::tma_load(&smem_.a[slot], &map_a_, k, static_cast<int>(rank_) * kTile, &smem_.full[slot]);
      auto* half = reinterpret_cast<__nv_bfloat16*>(&smem_.b[slot]);
      const bool crosses = makes(Mistake::sends_to_the_other_and_releases_its_own);
      if (crosses || makes(Mistake::releases_a_block_without_its_loads)) {  // both halves, for one block
        for (int part = 0; part < 2; ++part)
          ptx::tma_load_multicast(half + part * kHalf * kTile, &map_b_, step / k_steps_ * kTile,
                                  k + part * kHalf, &smem_.full[slot],
                                  static_cast<uint16_t>(1u << (crosses ? rank_ ^ 1 : rank_)));
        continue;
      }
      if (!makes(Mistake::loader_sends_to_one_place)) half += k_of_half * kTile;
      ptx::tma_load_multicast(half, &map_b_, step / k_steps_ * kTile, k + k_of_half, &smem_.full[slot],
                              blocks);
      if (makes(Mistake::empty_counts_one_block)) load_a_last(slot, k);
    }
  }

  /// As a multicast to this block alone, whose mask is another than that of B.
  void load_a_last(int slot, int k) {
    ptx::tma_load_multicast(&smem_.a[slot], &map_a_, k, static_cast<int>(rank_) * kTile, &smem_.full[slot],
                            static_cast<uint16_t>(1u << rank_));
  }

  void compute() {
    float d[kTile / 2];
    const int steps = makes(Mistake::compute_makes_too_few_steps) ? steps_ - kSlots - 1 : steps_;
    for (int step = 0; step < steps; ++step) {
      const int slot = step % kSlots, k_step = step % k_steps_;
      const auto lap = static_cast<uint32_t>(step / kSlots);
      if (!makes(Mistake::compute_does_not_wait)) ptx::mbarrier_wait(&smem_.full[slot], lap & 1);
      multiply(d, slot, k_step == 0);
      if (makes(Mistake::compute_releases_before_wgmma_has_read)) release(slot);
      ptx::wgmma_wait_group<0>();
      ptx::keep_in_registers(d);
      if (!makes(Mistake::compute_releases_before_wgmma_has_read)) release(slot);
      if (k_step == k_steps_ - 1) store(d, step / k_steps_);
    }
  }

  void multiply(float (&d)[kTile / 2], int slot, bool first) {
    const uint64_t a = ptx::matrix_descriptor(&smem_.a[slot], 16, 1024);
    const uint64_t b = ptx::matrix_descriptor(&smem_.b[slot], 8192, 1024);
    ptx::wgmma_fence();
    for (int k = 0; k < kTile; k += 16) {
      ptx::wgmma_m64n64k16<true>(d, a + static_cast<uint64_t>(k / 8), b + static_cast<uint64_t>(k * 8),
                                 !first || k > 0);
    }
    ptx::wgmma_commit_group();
  }

  /// Both loaders write to this slot, so both must know.
  void release(int slot) {
    if (threadIdx.x) return;
    for (uint32_t block = 0; block < kBlocks; ++block) {
      if (block != rank_ && (makes(Mistake::compute_releases_its_own_block_only) ||
                             makes(Mistake::sends_to_the_other_and_releases_its_own)))
        continue;
      if (block == rank_ && makes(Mistake::releases_a_block_without_its_loads)) continue;
      ptx::mbarrier_arrive_remote(&smem_.empty[slot], block);
    }
  }

  void store(const float (&d)[kTile / 2], int tile) {
    const int t = static_cast<int>(threadIdx.x);
    for (int i = 0; i < kTile / 2; ++i) {
      const int row = static_cast<int>(rank_) * kTile + t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8;
      const int column = tile * kTile + i / 4 * 8 + t % 4 * 2 + i % 2;
      problem_.c[static_cast<size_t>(row * problem_.columns + column)] = d[i];
    }
  }

  Storage<kSlots>& smem_;
  Problem& problem_;
  const CUtensorMap &map_a_, &map_b_;
  const int k_steps_, steps_;
  const uint32_t rank_;
  const Mistake mistake_;
};

/// @return the failure, "wrong result", or "".
template <int kSlots>
std::string gemm(Problem& problem, const Schedule& schedule, Mistake mistake = Mistake::none) {
  problem.c.assign(problem.expected.size(), 1e9f);
  const CUtensorMap a = map_of(problem.a.data(), problem.rows, problem.depth, kTile);
  const CUtensorMap b = map_of(problem.b.data(), problem.depth, problem.columns,
                               mistake == Mistake::loader_sends_the_whole_tile ? kTile : kHalf);
  const Shape shape{
      .block = kThreads, .shared_bytes = sizeof(Storage<kSlots>), .grid = kBlocks, .cluster = kBlocks};
  const std::string text = failure(shape, schedule, [&] { Roles<kSlots>(problem, a, b, mistake).run(); });
  if (!text.empty()) return text;
  return problem.c == problem.expected ? "" : "wrong result";
}

/// The right kernel, with as many steps along K as slots, one fewer, one more, three rounds and one, and one.
template <int kSlots>
void check_silent(const std::vector<Schedule>& schedules) {
  const CheckRaces checked;
  for (const int k_steps : {1, kSlots - 1, kSlots, kSlots + 1, 3 * kSlots + 1}) {
    if (k_steps < 1) continue;
    Problem problem(2, k_steps);
    for (const Schedule& schedule : schedules) {
      CAPTURE(kSlots, k_steps, schedule.name());
      REQUIRE(gemm<kSlots>(problem, schedule) == "");
    }
  }
}

/// A kernel with two slots and two tiles.
RunOfMistake with(Mistake mistake) {
  return [mistake](const Schedule& schedule) {
    static Problem problem(2, 4);
    return gemm<2>(problem, schedule, mistake);
  };
}

}  // namespace

TEST_CASE("the right ring of two blocks raises no alarm on any fixed schedule") {
  check_silent<1>(fixed_schedules());
  check_silent<2>(fixed_schedules());
  check_silent<3>(fixed_schedules());
}

TEST_CASE("the right ring of two blocks and one slot raises no alarm on random schedules") {
  check_silent<1>(random_schedules());
}
TEST_CASE("the right ring of two blocks and two slots raises no alarm on random schedules") {
  check_silent<2>(random_schedules());
}
TEST_CASE("the right ring of two blocks and three slots raises no alarm on random schedules") {
  check_silent<3>(random_schedules());
}

TEST_CASE("a slot that is released to its own block only is a deadlock that names who did not arrive") {
  check_named_always(with(Mistake::compute_releases_its_own_block_only), "for empty[0], phase of parity 0");
  check_named_always(with(Mistake::compute_releases_its_own_block_only), "; no arrival from block (1,0,0)");
}
TEST_CASE("a role that makes too few steps is named, not the cluster.sync at which all meet behind theirs") {
  check_named_always(with(Mistake::compute_makes_too_few_steps),
                     "deadlock: block (0,0,0) warp 4 lane 0 waits at test_cluster_ring.cu:");
  check_named_always(with(Mistake::compute_makes_too_few_steps),
                     " arrived in the phase before (test_cluster_ring.cu:");
  check_named_always(with(Mistake::compute_makes_too_few_steps), ": do they make too few steps, or block ");
}
TEST_CASE("blocks that do not meet after the initialisation of their barriers are found") {
  check_race(with(Mistake::no_sync_after_initialisation),
             {"a cluster_sync must come between its initialisation and its use by other blocks",
              "a cluster_sync must come between the initialisation and the use by other blocks"});
}
TEST_CASE("a block that leaves before its neighbour's last release is found") {
  check_race(with(Mistake::no_sync_at_the_end),
             {"was in flight to it: block", "still reaches into its shared memory; block",
              "may still be reached from another block: no cluster_sync or wait orders the two"});
}
TEST_CASE("a block that expects its own half only is found") {
  check_named_always(
      with(Mistake::loader_expects_its_own_half_only),
      {"TMA multicast: the phase in which it was issued has ended before its bytes came: too few "
       "bytes were expected at full[0]",
       "TMA load: brings 4096 bytes more than expected: a box of 64 rows of 128 bytes, where 4096 are left "
       "of "
       "the 12288 that are expected: the box is too large, or too few bytes were expected at full[0]"});
  check_race(
      with(Mistake::loader_expects_its_own_half_only),
      {": too few bytes were expected at full[0] of block (0,0,0)", "TMA multicast (a write) issued by"});
  if (!instrumented()) return;
  const std::vector<std::string> texts =
      blames(with(Mistake::loader_expects_its_own_half_only), /*check_races=*/false);
  CHECK(std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.find("\n  phase 0 expected 12288 bytes (test_cluster_ring.cu:") != text.npos &&
           text.find(
               "), and loads of 16384 were started for it, each to a place of its own: block (0,0,0) ") !=
               text.npos &&
           text.find("), block (1,0,0) 4096 (test_cluster_ring.cu:") != text.npos &&
           text.find("box is too large") == text.npos && text.find("wrong block") == text.npos;
  }));
}
TEST_CASE("a box as high as the tile is named where it stands for a half") {
  if (!instrumented()) return;
  check_named_always(with(Mistake::loader_sends_the_whole_tile),
                     {"b[0].panels[0] has 64 rows: is the box of the tensor map too large?\n  the copy came "
                      "after its phase at ",
                      "TMA load: brings 8192 bytes more than expected: a box of 64 rows of 128 bytes"});
}
TEST_CASE("a half that does not reach both blocks leaves the other waiting for its bytes") {
  check_named_always(with(Mistake::loader_sends_to_itself_only), "4096 bytes missing");
  check_named_always(with(Mistake::loader_sends_to_itself_only),
                     "); block (1,0,0) has loaded as many bytes as are missing, at test_cluster_ring.cu:");
  check_named_always(with(Mistake::loader_sends_to_itself_only),
                     ", for itself alone, to places that no load for this block fills: should it multicast "
                     "these to this block, too?\n");
  check_named_always(with(Mistake::loader_sends_to_the_other_only), "4096 bytes missing");
}
TEST_CASE("halves that both blocks send to one place are named, and so is the place that gets none") {
  check_race(with(Mistake::loader_sends_to_one_place),
             "both bring 4096 bytes to the same place of block (0,0,0), and nobody brings anything to ");
  check_race(
      with(Mistake::loader_sends_to_one_place),
      "b[0].panels[0][32][0] to [63][63]: does the place in shared memory lack the offset of the block's own "
      "part?\n");
}
TEST_CASE("a loader that does not wait overwrites what its neighbour still reads") {
  check_race(with(Mistake::loader_does_not_wait), "more arrivals than expected at full[0] of block");
}
TEST_CASE("a block that does not wait reads what has not landed, of its own half or of the other") {
  check_race(with(Mistake::compute_does_not_wait),
             {"more arrivals than expected at full[0] of block", "wgmma (a read) issued by the warpgroup"});
}
TEST_CASE("a count that forgets the other block is named with the block that need not arrive") {
  if (!instrumented()) return;
  const std::vector<std::string> texts = blames(with(Mistake::empty_counts_one_block), /*check_races=*/true);
  CHECK(std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.find(" writes, with the mask 0b11, and waited last for empty[") != text.npos &&
           text.find(" had ended without an arrival of block (") != text.npos &&
           text.find(", which reads: its count is 1 (test_cluster_ring.cu:") != text.npos;
  }));
}
TEST_CASE("blocks that release a slot whose multicasts do not go to them are named") {
  if (!instrumented()) return;
  const std::vector<std::string> texts =
      blames(with(Mistake::releases_a_block_without_its_loads), /*check_races=*/true);
  CHECK(std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.find("; the multicasts that fill the slot do not go to block (") != text.npos &&
           text.find(": should it release the slot of another block?\n") != text.npos;
  }));
}
TEST_CASE("a mask without any of the blocks that release the sender's slot is named") {
  if (!instrumented()) return;
  const std::vector<std::string> texts =
      blames(with(Mistake::sends_to_the_other_and_releases_its_own), /*check_races=*/true);
  CHECK(std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.find(", which leaves out its own block, and waited last for empty[") != text.npos &&
           text.find(
               "; the multicast goes to none of these blocks: does its mask name wrong ones, or "
               "should these release a slot of another block?\n") != text.npos;
  }));
}
TEST_CASE("a slot that is released to both blocks before wgmma has read it is a race") {
  check_race(with(Mistake::compute_releases_before_wgmma_has_read), "TMA load (a write) issued by");
  check_race(with(Mistake::compute_releases_before_wgmma_has_read), "wgmma (a read) issued by the warpgroup");
}

}  // namespace cluster_ring_test
