/// @file
/// A small warp-specialised GEMM: one thread loads slots of a ring by TMA, a warpgroup multiplies them with
/// wgmma, one thread stores finished tiles by TMA. Every rule of their handshake is broken once and named;
/// the right kernel raises no alarm.
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
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/wgmma.cuh"

using namespace cpu_device;
using namespace cpu_device::test;

namespace ring_test {
namespace {

constexpr int kTile = 64;                                    // of M, N and K
constexpr int kLoader = 128, kStorer = 160, kThreads = 192;  // threads 0 to 127 compute
using Tile = ladder::SwizzledTile<kTile, kTile>;

template <int kSlots>
struct Storage {
  Tile a[kSlots], b[kSlots], c;
  ptx::Mbarrier full[kSlots], empty[kSlots], staged_full, staged_empty;
};

/// What one role leaves out, or does at the wrong time.
enum class Mistake {
  none,
  loader_does_not_wait,
  loader_starts_with_wrong_parity,
  loader_expects_nothing,
  loader_expects_too_few_bytes,
  loader_expects_too_many_bytes,
  loader_stores_afterwards,
  compute_does_not_wait,
  compute_forgets_to_flip_parity,
  compute_does_not_release,
  compute_releases_before_wgmma_has_read,
  compute_releases_the_next_slot_early,
  compute_does_not_fence_its_tile,
  compute_fences_before_it_stages,
  empty_counts_one_more,
  compute_does_not_wait_for_storer,
  storer_does_not_wait,
  storer_waits_afterwards,
  storer_does_not_wait_for_its_read,
  storer_does_not_commit,
  storer_waits_before_it_commits,
  storer_commits_before_it_stores,
  storer_exits_early,
  no_initialisation,
  misaligned_slot,
};

/// C [rows, columns] = A [rows, depth] B [depth, columns], in small integers: one row of tiles, of which the
/// last is ragged on every side.
struct Problem {
  int rows = 56, columns, depth;
  std::vector<__nv_bfloat16> a, b, c;
  std::vector<float> expected;

  Problem(int tiles, int k_steps) : columns(tiles * kTile - 24), depth(k_steps * kTile - 8) {
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

struct Maps {
  CUtensorMap a, b, c;
};

/// The roles of one block; the mistake is made in every round.
template <int kSlots>
class Roles {
 public:
  Roles(const Maps& maps, int tiles, int k_steps, Mistake mistake)
      : smem_(ladder::shared_storage<Storage<kSlots>>()),
        maps_(maps),
        tiles_(tiles),
        k_steps_(k_steps),
        mistake_(mistake) {}

  void initialise() {
    if (makes(Mistake::no_initialisation)) return;
    for (int slot = 0; slot < kSlots; ++slot) {
      ptx::mbarrier_init(&smem_.full[slot], 1);
      ptx::mbarrier_init(&smem_.empty[slot], makes(Mistake::empty_counts_one_more) ? 2 : 1);
    }
    ptx::mbarrier_init(&smem_.staged_full, 128);
    ptx::mbarrier_init(&smem_.staged_empty, 1);
  }

  void load() {
    uint32_t bytes = 2 * sizeof(Tile);
    if (makes(Mistake::loader_expects_too_few_bytes)) bytes = sizeof(Tile);
    if (makes(Mistake::loader_expects_too_many_bytes)) bytes += 128;
    const uint32_t first_parity = makes(Mistake::loader_starts_with_wrong_parity) ? 0 : 1;
    for (int step = 0; step < tiles_ * k_steps_; ++step) {
      const int slot = step % kSlots, k = step % k_steps_ * kTile;
      const uint32_t lap = static_cast<uint32_t>(step / kSlots);
      if (!makes(Mistake::loader_does_not_wait))
        ptx::mbarrier_wait(&smem_.empty[slot], (lap + first_parity) & 1);
      if (makes(Mistake::loader_expects_nothing)) {
        ptx::mbarrier_arrive(&smem_.full[slot]);
      } else {
        ptx::mbarrier_arrive_expect_bytes(&smem_.full[slot], bytes);
      }
      auto* a = reinterpret_cast<char*>(&smem_.a[slot]);
      if (makes(Mistake::misaligned_slot)) a += 128;
      ptx::tma_load(a, &maps_.a, k, 0, &smem_.full[slot]);
      ptx::tma_load(&smem_.b[slot], &maps_.b, step / k_steps_ * kTile, k, &smem_.full[slot]);
    }
  }

  void compute() {
    float d[kTile / 2];
    for (int step = 0; step < tiles_ * k_steps_; ++step) {
      const int slot = step % kSlots, k_step = step % k_steps_;
      const uint32_t lap = static_cast<uint32_t>(step / kSlots);
      const uint32_t parity = makes(Mistake::compute_forgets_to_flip_parity) ? 0 : lap & 1;
      if (!makes(Mistake::compute_does_not_wait)) ptx::mbarrier_wait(&smem_.full[slot], parity);
      multiply(d, slot, k_step == 0);
      const bool releases = threadIdx.x == 0 && !makes(Mistake::compute_does_not_release);
      const bool too_early = makes(Mistake::compute_releases_before_wgmma_has_read);
      if (makes(Mistake::compute_releases_the_next_slot_early)) {
        if (step % 2 == 0) continue;  // two products are in flight
        ptx::wgmma_wait_group<1>();
        for (int i = 0; releases && i < 2; ++i) ptx::mbarrier_arrive(&smem_.empty[i]);
      }
      if (releases && too_early) ptx::mbarrier_arrive(&smem_.empty[slot]);
      ptx::wgmma_wait_group<0>();
      ptx::keep_in_registers(d);
      if (releases && !too_early && !makes(Mistake::compute_releases_the_next_slot_early))
        ptx::mbarrier_arrive(&smem_.empty[slot]);
      if (k_step == k_steps_ - 1) hand_over(d, step / k_steps_);
    }
  }

  void store() {
    for (int tile = 0; tile < tiles_; ++tile) {
      const auto wait = [&] { ptx::mbarrier_wait(&smem_.staged_full, tile & 1); };
      if (!makes(Mistake::storer_does_not_wait) && !makes(Mistake::storer_waits_afterwards)) wait();
      if (makes(Mistake::storer_commits_before_it_stores)) ptx::tma_store_commit();
      ptx::tma_store(&maps_.c, &smem_.c, tile * kTile, 0);
      if (makes(Mistake::storer_waits_afterwards)) wait();
      if (makes(Mistake::storer_waits_before_it_commits)) ptx::tma_store_wait_read<0>();
      if (!makes(Mistake::storer_does_not_commit) && !makes(Mistake::storer_commits_before_it_stores))
        ptx::tma_store_commit();
      if (!makes(Mistake::storer_waits_before_it_commits) &&
          !makes(Mistake::storer_does_not_wait_for_its_read) && !makes(Mistake::storer_exits_early))
        ptx::tma_store_wait_read<0>();
      ptx::mbarrier_arrive(&smem_.staged_empty);
    }
    if (!makes(Mistake::storer_exits_early)) ptx::tma_store_wait<0>();
  }

 private:
  bool makes(Mistake mistake) const { return mistake_ == mistake; }

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

  void hand_over(const float (&d)[kTile / 2], int tile) {
    if (!makes(Mistake::compute_does_not_wait_for_storer))
      ptx::mbarrier_wait(&smem_.staged_empty, (tile & 1) ^ 1);
    if (makes(Mistake::compute_fences_before_it_stages)) ptx::fence_proxy_async();
    const int t = static_cast<int>(threadIdx.x);
    for (int i = 0; i < kTile / 2; ++i) {
      smem_.c.at(t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8, i / 4 * 8 + t % 4 * 2 + i % 2) = d[i];
    }
    if (!makes(Mistake::compute_does_not_fence_its_tile) && !makes(Mistake::compute_fences_before_it_stages))
      ptx::fence_proxy_async();
    ptx::mbarrier_arrive(&smem_.staged_full);
  }

  Storage<kSlots>& smem_;
  const Maps& maps_;
  const int tiles_, k_steps_;
  const Mistake mistake_;
};

/// @return the failure, "wrong result", or "".
template <int kSlots>
std::string gemm(Problem& problem, int k_steps, const Schedule& schedule, Mistake mistake = Mistake::none) {
  const int tiles = (problem.columns + kTile - 1) / kTile;
  problem.c.assign(problem.expected.size(), __nv_bfloat16(1e9f));
  const Maps maps = {map_of(problem.a.data(), problem.rows, problem.depth, kTile),
                     map_of(problem.b.data(), problem.depth, problem.columns, kTile),
                     map_of(problem.c.data(), problem.rows, problem.columns, kTile)};
  const Shape shape{.block = kThreads, .shared_bytes = sizeof(Storage<kSlots>)};
  const std::string text = failure(shape, schedule, [&] {
    Roles<kSlots> roles(maps, tiles, k_steps, mistake);
    if (threadIdx.x == 0) roles.initialise();
    __syncthreads();
    if (threadIdx.x < kLoader) roles.compute();
    if (threadIdx.x == kLoader) roles.load();
    const unsigned storer = mistake == Mistake::loader_stores_afterwards ? kLoader : kStorer;
    if (threadIdx.x == storer) roles.store();
  });
  if (!text.empty()) return text;
  int wrong = 0;
  for (size_t i = 0; i < problem.c.size(); ++i)
    wrong += !(float(problem.c[i]) == float(__nv_bfloat16(problem.expected[i])));
  return wrong ? "wrong result" : "";
}

/// The right kernel, with as many steps along K as slots, one fewer, one more, three rounds and one, and one.
template <int kSlots>
void check_silent(const std::vector<Schedule>& schedules) {
  const CheckRaces checked;
  for (const int k_steps : {1, kSlots - 1, kSlots, kSlots + 1, 3 * kSlots + 1}) {
    if (k_steps < 1) continue;
    Problem problem(3, k_steps);
    for (const Schedule& schedule : schedules) {
      CAPTURE(kSlots, k_steps, schedule.name());
      REQUIRE(gemm<kSlots>(problem, k_steps, schedule) == "");
    }
  }
}

constexpr int kStepsOfMistakes = 4;

/// A kernel with two slots and three tiles.
RunOfMistake with(Mistake mistake) {
  return [mistake](const Schedule& schedule) {
    static Problem problem(3, kStepsOfMistakes);
    return gemm<2>(problem, kStepsOfMistakes, schedule, mistake);
  };
}

}  // namespace

TEST_CASE("the right ring raises no alarm on any fixed schedule") {
  check_silent<1>(fixed_schedules());
  check_silent<2>(fixed_schedules());
  check_silent<3>(fixed_schedules());
}

TEST_CASE("the right ring of one slot raises no alarm on random schedules") {
  check_silent<1>(random_schedules());
}
TEST_CASE("the right ring of two slots raises no alarm on random schedules") {
  check_silent<2>(random_schedules());
}
TEST_CASE("the right ring of three slots raises no alarm on random schedules") {
  check_silent<3>(random_schedules());
}

TEST_CASE("a loader that does not wait overwrites what wgmma still reads") {
  check_race(with(Mistake::loader_does_not_wait),
             {"more arrivals than expected at full[0]",
              "two writes that no barrier or wait orders\n  test_ring.cu:"});
}
TEST_CASE("a loader that starts with the wrong parity waits for ever") {
  check_named_always(with(Mistake::loader_starts_with_wrong_parity), "for empty[0], phase of parity 0");
}
TEST_CASE("bytes that nobody expects are named") {
  check_named_always(with(Mistake::loader_expects_nothing), "too few bytes were expected at full[0]");
}
TEST_CASE("a barrier that expects too few bytes is named") {
  check_named_always(with(Mistake::loader_expects_too_few_bytes), "too few bytes were expected at full[0]");
}
TEST_CASE("a barrier that expects too many bytes never completes its phase, and the rest is said") {
  check_named_always(with(Mistake::loader_expects_too_many_bytes), "128 bytes missing");
}
TEST_CASE("a consumer that does not wait reads what has not landed") {
  check_race(with(Mistake::compute_does_not_wait),
             {"more arrivals than expected at full[0]", "wgmma (a read) issued by the warpgroup"});
}
TEST_CASE("a consumer that forgets to flip its parity is found") {
  check_race(with(Mistake::compute_forgets_to_flip_parity),
             {"more arrivals than expected at full[0]", "the barrier went on by",
              "in mbarrier_wait for full[0], phase of parity 0"});
}
TEST_CASE("a dropped release is a deadlock at the slot that was not released") {
  check_named_always(with(Mistake::compute_does_not_release), "for empty[0], phase of parity 0");
  check_named_always(with(Mistake::compute_does_not_release),
                     "deadlock: warp 4 lane 0 waits at test_ring.cu:");
  check_named_always(with(Mistake::compute_does_not_release),
                     "arrivals missing\n  nobody has ever arrived there");
}
TEST_CASE("a slot that is released before wgmma has read it is a race") {
  check_race(with(Mistake::compute_releases_before_wgmma_has_read), "TMA load (a write) issued by");
  check_race(with(Mistake::compute_releases_before_wgmma_has_read), "wgmma (a read) issued by the warpgroup");
  check_race(with(Mistake::compute_releases_before_wgmma_has_read), ") before it has waited for its wgmma\n");
}
TEST_CASE("of two releases the one is named that lets the copy overwrite what is still read") {
  if (!instrumented()) return;  // the results are right on every schedule
  const std::vector<std::string> reports = blames(with(Mistake::compute_releases_the_next_slot_early), true);
  check_words(reports, {"arrives at empty[1] (test_ring.cu:"});
  // Of another thread of the warpgroup than the one that arrives, the order of its wait is not known.
  check_words(reports, {") before it has waited for its wgmma: the wait for wgmma at test_ring.cu:",
                        ") before it has waited for its wgmma\n"});
}
TEST_CASE("a tile that is stored by TMA without a proxy fence before is a race") {
  check_race(with(Mistake::compute_does_not_fence_its_tile),
             "no fence.proxy.async is ordered between the two");
  check_race(with(Mistake::compute_does_not_fence_its_tile),
             "the thread that writes, or one that has met it since, must execute fence.proxy.async after "
             "that, and before it arrives at "
             "staged_full (test_ring.cu:");
}
TEST_CASE("a fence that comes before what it should order, in each round anew, is told so") {
  if (!instrumented()) return;
  const std::vector<std::string> reports = blames(with(Mistake::compute_fences_before_it_stages), true);
  CHECK(std::any_of(reports.begin(), reports.end(), [](const std::string& text) {
    return text.find(" comes before the write") != text.npos;
  }));
  for (const std::string& text : reports) CHECK(text.find("comes too late") == text.npos);
}
TEST_CASE("a loader that stores when it has loaded all is told as the one who could wait for the storer's") {
  check_named_always(with(Mistake::loader_stores_afterwards),
                     "no thread has waited for staged_full, which comes before an arrival here; only warp 4 "
                     "lane 0 still could, and now waits at test_ring.cu:");
  check_named_always(with(Mistake::loader_stores_afterwards),
                     " for empty[0], and so for those who wait here: should another thread wait for "
                     "staged_full? The block has 6 warps\n");
}
TEST_CASE("a count that is larger than the number of those who ever arrive is asked about") {
  check_named_always(with(Mistake::empty_counts_one_more), "\n  only warp 0 lane 0 arrived (test_ring.cu:");
  check_named_always(with(Mistake::empty_counts_one_more),
                     "), and no other thread ever has: is the count of 2 (test_ring.cu:");
}
TEST_CASE("a staging tile that is overwritten while TMA may read it is a race") {
  check_race(with(Mistake::compute_does_not_wait_for_storer),
             {"TMA store (a read) issued by", "in mbarrier_wait for staged_full, phase of parity 1"});
  check_race(with(Mistake::storer_does_not_wait_for_its_read), "TMA store (a read) issued by");
  check_race(with(Mistake::storer_does_not_wait_for_its_read), ") before it has waited for its TMA store\n");
}
TEST_CASE("a load whose thread has heard of no reader is told what must come before it") {
  if (!instrumented()) return;
  const CheckRaces check_races;
  std::vector<__nv_bfloat16> input(3 * kTile * kTile, 1.f);
  const CUtensorMap from = map_of(input.data(), 3 * kTile, kTile, kTile);
  const auto rounds = [&](bool synchronises) {
    return failure({.block = 2 * kTile, .shared_bytes = sizeof(Storage<1>)}, {}, [&] {
      auto& smem = ladder::shared_storage<Storage<1>>();
      if (threadIdx.x == 0) ptx::mbarrier_init(&smem.full[0], 1);
      __syncthreads();
      for (unsigned round = 0; round < 3; ++round) {
        if (threadIdx.x == 0) {
          ptx::mbarrier_arrive_expect_bytes(&smem.full[0], sizeof(Tile));
          ptx::tma_load(&smem.a[0], &from, 0, static_cast<int>(round) * kTile, &smem.full[0]);
        }
        ptx::mbarrier_wait(&smem.full[0], round % 2);
        if (static_cast<float>(smem.a[0].at(static_cast<int>(threadIdx.x) % kTile, 0)) != 1) __trap();
        ptx::fence_proxy_async();
        if (synchronises) __syncthreads();
      }
    });
  };
  CHECK_THAT(rounds(false), ContainsSubstring("overwritten while it may still be read") &&
                                ContainsSubstring(", which tells nothing of those who read: a __syncthreads, "
                                                  "or an arrival of theirs that the writer waits for, must "
                                                  "come before it writes\n"));
  CHECK(rounds(true) == "");
}
TEST_CASE("the next load, which comes before the wait for a TMA store, is not what lets a warp overwrite") {
  std::vector<__nv_bfloat16> input(3 * kTile * kTile, 1.f), output(input.size());
  const CUtensorMap from = map_of(input.data(), 3 * kTile, kTile, kTile),
                    to = map_of(output.data(), 3 * kTile, kTile, kTile);
  constexpr int kSteps = 3;
  const auto without_roles = [&](bool synchronises) {
    return [&, synchronises](const Schedule& schedule) {
      return failure({.block = kTile, .shared_bytes = sizeof(Storage<2>)}, schedule, [&] {
        auto& smem = ladder::shared_storage<Storage<2>>();
        if (threadIdx.x == 0)
          for (int slot = 0; slot < 2; ++slot) {
            ptx::mbarrier_init(&smem.full[slot], 1);
            ptx::mbarrier_init(&smem.empty[slot], kTile);
          }
        __syncthreads();
        const auto load = [&](int step) {
          if (threadIdx.x > 0 || step == 3 * kSteps) return;
          ptx::mbarrier_wait(&smem.empty[step % 2], (step / 2 + 1) % 2);
          ptx::mbarrier_arrive_expect_bytes(&smem.full[step % 2], sizeof(Tile));
          ptx::tma_load(&smem.a[step % 2], &from, 0, step / kSteps * kTile, &smem.full[step % 2]);
        };
        load(0);
        for (int tile = 0; tile < 3; ++tile) {
          __nv_bfloat16 first;
          for (int step = tile * kSteps; step < (tile + 1) * kSteps; ++step) {
            load(step + 1);
            ptx::mbarrier_wait(&smem.full[step % 2], step / 2 % 2);
            first = smem.a[step % 2].at(static_cast<int>(threadIdx.x), 0);
            ptx::fence_proxy_async();
            ptx::mbarrier_arrive(&smem.empty[step % 2]);
          }
          if (threadIdx.x == 0) ptx::tma_store_wait_read<0>();
          __syncwarp();  // for the other lanes of warp 0
          if (synchronises) __syncthreads();
          for (int i = 0; i < kTile; ++i) smem.c.at(static_cast<int>(threadIdx.x), i) = first;
          ptx::fence_proxy_async();
          __syncthreads();
          if (threadIdx.x > 0) continue;
          ptx::tma_store(&to, &smem.c, 0, tile * kTile);
          ptx::tma_store_commit();
        }
        if (threadIdx.x == 0) ptx::tma_store_wait<0>();
      });
    };
  };
  if (!instrumented()) return;  // the results are right on most schedules
  for (const std::string& text : blames(without_roles(true), true)) CHECK(text == "");
  bool is_named = false;
  for (const std::string& text : blames(without_roles(false), true)) {
    CAPTURE(text);
    CHECK(text.find("race in shared memory") != text.npos);
    CHECK(text.find("before it has waited for its TMA store") == text.npos);
    is_named |=
        text.find("block (0,0,0) warp 0 lane 0 waits for its TMA store at test_ring.cu:") != text.npos &&
        text.find(", and nothing orders that before the write of block (0,0,0) warp 1 lane ") != text.npos &&
        text.find(": a __syncthreads must come between\n") != text.npos;
  }
  CHECK(is_named);
}
TEST_CASE("a wgmma whose descriptor reaches from one array into the next is told so") {
  struct Two {
    Tile q, kv;
    ptx::Mbarrier q_full, kv_full;
  };
  std::vector<__nv_bfloat16> input(kTile * kTile, 1.f);
  const CUtensorMap from = map_of(input.data(), kTile, kTile, kTile);
  const auto multiply = [&](uint64_t rows_too_far) {
    return [&, rows_too_far](const Schedule& schedule) {
      return failure({.block = 160, .shared_bytes = sizeof(Two)}, schedule, [&] {
        auto& smem = ladder::shared_storage<Two>();
        if (threadIdx.x == 0) ptx::mbarrier_init(&smem.q_full, 1), ptx::mbarrier_init(&smem.kv_full, 1);
        __syncthreads();
        if (threadIdx.x == 128) {
          ptx::mbarrier_arrive_expect_bytes(&smem.q_full, sizeof(Tile));
          ptx::tma_load(&smem.q, &from, 0, 0, &smem.q_full);
          ptx::mbarrier_arrive_expect_bytes(&smem.kv_full, sizeof(Tile));
          ptx::tma_load(&smem.kv, &from, 0, 0, &smem.kv_full);
        }
        if (threadIdx.x >= 128) return;
        float d[kTile / 2];
        ptx::mbarrier_wait(&smem.q_full, 0);
        ptx::wgmma_fence();
        ptx::wgmma_m64n64k16<true>(d, ptx::matrix_descriptor(&smem.q, 16, 1024) + rows_too_far * 128 / 16,
                                   ptx::matrix_descriptor(&smem.q, 8192, 1024), false);
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<0>();
        ptx::keep_in_registers(d);
        ptx::mbarrier_wait(&smem.kv_full, 0);
      });
    };
  };
  if (!instrumented()) return;
  for (const std::string& text : blames(multiply(0), true)) CHECK(text == "");
  check_words(blames(multiply(8), true),
              {": the wgmma reads byte 0 behind the end of smem.q, in smem.kv: is the start address of its "
               "descriptor too large?\n"});
}
TEST_CASE("a wgmma that takes A and B from different slots, or reads on in another, is told so") {
  std::vector<__nv_bfloat16> input(kTile * kTile, 1.f);
  const CUtensorMap from = map_of(input.data(), kTile, kTile, kTile);
  struct Operands {
    int a, b;
    unsigned leading = 8192, stride = 1024;  // of B
  };
  /// @param operands_of a warpgroup
  const auto multiply = [&](const std::function<Operands(unsigned warpgroup)>& operands_of,
                            bool fills_together = true) {
    return [&, operands_of, fills_together](const Schedule& schedule) {
      return failure({.block = 288, .shared_bytes = sizeof(Storage<2>)}, schedule, [&] {
        auto& smem = ladder::shared_storage<Storage<2>>();
        if (threadIdx.x == 0)
          for (ptx::Mbarrier& full : smem.full) ptx::mbarrier_init(&full, 1);
        __syncthreads();
        for (int slot = 0; slot < 2 && threadIdx.x == 256; ++slot) {
          ptx::mbarrier_arrive_expect_bytes(&smem.full[slot], 2 * sizeof(Tile));
          ptx::tma_load(&smem.a[slot], &from, 0, 0, &smem.full[slot]);
          ptx::tma_load(&smem.b[fills_together ? slot : 1 - slot], &from, 0, 0, &smem.full[slot]);
        }
        if (threadIdx.x >= 256) return;
        float d[kTile / 2];
        const Operands of = operands_of(threadIdx.x / 128);
        ptx::mbarrier_wait(&smem.full[0], 0);
        ptx::wgmma_fence();
        ptx::wgmma_m64n64k16<true>(d, ptx::matrix_descriptor(&smem.a[of.a], 16, 1024),
                                   ptx::matrix_descriptor(&smem.b[of.b], of.leading, of.stride), false);
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<0>();
        ptx::keep_in_registers(d);
        ptx::mbarrier_wait(&smem.full[1], 0);
      });
    };
  };
  if (!instrumented()) return;
  for (const std::string& text : blames(multiply([](unsigned) { return Operands{0, 0}; }), true))
    CHECK(text == "");
  check_words(
      blames(multiply([](unsigned) {
               return Operands{0, 1};
             }),
             true),
      {": the wgmma multiplies smem.b[1] and smem.a[0], of different slots: must both be of one slot?\n"});
  for (const std::string& text : blames(multiply([](unsigned) { return Operands{0, 1}; }, false), true))
    CHECK(text.find("of different slots") == text.npos);
  check_words(
      blames(multiply([](unsigned warpgroup) {
               return Operands{warpgroup ? 1 : 0, 0};
             }),
             true),
      {": the wgmma multiplies smem.a[1] and smem.b[0], of different slots, and warpgroup 0 smem.a[0] and "
       "smem.b[0]: does the part of warpgroup 1 begin behind the end of smem.a[0]?\n",
       // Of warpgroup 0 nothing is known yet.
       ": the wgmma multiplies smem.a[1] and smem.b[0], of different slots: must both be of one slot?\n"});
  check_words(
      blames(multiply([](unsigned) {
               return Operands{0, 0, 1024, 8192};
             }),
             true),
      {": the wgmma begins in smem.b[0], and reads on in smem.b[1]: are the offsets of its descriptor "
       "(leading 1024 bytes, stride 8192) too large, or exchanged?\n"});
}
TEST_CASE("two loads of one slot to one place are asked whether each should fill a part of its own") {
  std::vector<__nv_bfloat16> input(2 * kTile * kTile, 1.f);
  const CUtensorMap from = map_of(input.data(), 2 * kTile, kTile, kTile);
  const auto two_loads = [&](int step) {
    return [&, step](const Schedule& schedule) {
      return failure({.block = 32, .shared_bytes = sizeof(Storage<2>)}, schedule, [&] {
        auto& smem = ladder::shared_storage<Storage<2>>();
        if (threadIdx.x > 0) return;
        ptx::mbarrier_init(&smem.full[0], 1);
        ptx::fence_proxy_async();
        ptx::mbarrier_arrive_expect_bytes(&smem.full[0], 2 * sizeof(Tile));
        for (int i = 0; i < 2; ++i) ptx::tma_load(&smem.a[i * step], &from, 0, i * kTile, &smem.full[0]);
        ptx::mbarrier_wait(&smem.full[0], 0);
      });
    };
  };
  if (!instrumented()) return;
  for (const std::string& text : blames(two_loads(1), true)) CHECK(text == "");
  check_words(blames(two_loads(0), true),
              {": both of block (0,0,0) warp 0 lane 0: should each fill a part of its own?\n"});
  // Of two laps, it is not the place that is wrong.
  for (const std::string& text : blames(with(Mistake::loader_does_not_wait), true))
    CHECK(text.find("a part of its own") == text.npos);
}
TEST_CASE("a wait for TMA stores that comes before the commit is named with both lines") {
  check_race(with(Mistake::storer_waits_before_it_commits),
             ") before it has waited for its TMA store: the wait for TMA stores at test_ring.cu:");
  check_race(
      with(Mistake::storer_waits_before_it_commits),
      ", and so does not cover the TMA store of block (0,0,0) warp 5 lane 0: commit first, and wait then\n");
}
TEST_CASE("a commit that comes before its TMA store closes an empty group, which is named") {
  check_race(
      with(Mistake::storer_commits_before_it_stores),
      {" of the next round, and so does not cover the TMA store of block (0,0,0) warp 5 lane 0: the commit "
       "must come behind the store, and the wait behind the commit\n",
       ": the last commit, at test_ring.cu:"});
}
TEST_CASE("a storer that does not wait stores what is not there") {
  check_race(with(Mistake::storer_does_not_wait),
             {"TMA store (a read) issued by", "in mbarrier_wait for staged_empty, phase of parity 1"});
}
TEST_CASE("of a storer that waits behind its store it is asked whether the wait should come first") {
  if (!instrumented()) return;
  const CheckRaces check_races;
  CHECK_THAT(with(Mistake::storer_waits_afterwards)({}),
             ContainsSubstring("the reader had waited for no mbarrier by then, and waits for staged_full "
                               "(test_ring.cu:") &&
                 ContainsSubstring(") after that: should the wait come first?\n"));
}
TEST_CASE("a first write to a piece is not said to be another one, where a storer sends the wrong piece") {
  if (!instrumented()) return;
  const CheckRaces check_races;
  std::vector<__nv_bfloat16> output(kTile * kTile);
  const CUtensorMap to = map_of(output.data(), kTile, kTile, kTile);
  const std::string text = failure({.block = 2 * kTile, .shared_bytes = sizeof(Storage<2>)}, {}, [&] {
    auto& smem = ladder::shared_storage<Storage<2>>();
    if (threadIdx.x == 0)
      for (int piece = 0; piece < 2; ++piece) {
        ptx::mbarrier_init(&smem.full[piece], kTile);
        ptx::mbarrier_init(&smem.empty[piece], 1);
      }
    __syncthreads();
    const int row = static_cast<int>(threadIdx.x) % kTile;
    for (int piece = 0; piece < 2; ++piece) {
      if (threadIdx.x < kTile) {
        ptx::mbarrier_wait(&smem.empty[piece], 1);
        smem.a[piece].at(row, 0) = 1.f;
        ptx::fence_proxy_async();
        ptx::mbarrier_arrive(&smem.full[piece]);
      } else if (threadIdx.x == kTile) {
        ptx::mbarrier_wait(&smem.full[piece], 0);
        ptx::tma_store(&to, &smem.a[1 - piece], 0, 0);
        ptx::tma_store_commit();
        ptx::tma_store_wait_read<0>();
      }
    }
  });
  CHECK_THAT(text, ContainsSubstring("race in shared memory of block 0 at smem.a[1]"));
  CHECK_THAT(text,
             ContainsSubstring(", and writes this after that: should it write first, or the reader wait "
                               "for the next arrival?\n") &&
                 !ContainsSubstring("writes again"));
}
TEST_CASE("where loads leave a part of their tile empty, as large as what is missing, the tile is named") {
  if (!instrumented()) return;
  struct Wide {
    ladder::SwizzledTile<kTile, 2 * kTile> b[2];
    Tile a[2];
    ptx::Mbarrier full[2];
  };
  std::vector<__nv_bfloat16> input(2 * kTile * kTile);
  const CUtensorMap whole = map_of(input.data(), kTile, 2 * kTile, kTile);
  const CUtensorMap half = map_of(input.data(), kTile, 2 * kTile, kTile / 2);
  // Of b the first panel is left out, or the rows of a; or all are loaded, and more bytes expected.
  const auto load = [&](bool all_panels, bool all_rows, uint32_t more) {
    return failure({.block = 64, .shared_bytes = sizeof(Wide)}, {}, [&] {
      auto& smem = ladder::shared_storage<Wide>();
      if (threadIdx.x == 0) {
        ptx::mbarrier_init(&smem.full[0], 1);
        ptx::fence_mbarrier_init();
        ptx::mbarrier_arrive_expect_bytes(&smem.full[0], sizeof smem.b[0] + sizeof smem.a[0] + more);
        ptx::tma_load(&smem.a[0], all_rows ? &whole : &half, 0, 0, &smem.full[0]);
        for (int panel = all_panels ? 0 : 1; panel < smem.b[0].kPanels; ++panel)
          ptx::tma_load(&smem.b[0].panels[panel], &whole, panel * kTile, 0, &smem.full[0]);
      }
      __syncthreads();
      ptx::mbarrier_wait(&smem.full[0], 0);
    });
  };
  CHECK(load(true, true, 0) == "");
  CHECK_THAT(load(true, true, 8192), ContainsSubstring(", and these came: "));
  CHECK_THAT(load(false, true, 0),
             ContainsSubstring("24576 bytes were expected (test_ring.cu:") &&
                 ContainsSubstring("fills 8192 of the 16384 bytes of smem.b[0].panels; the rest is as many "
                                   "bytes as are missing: is a load missing, or its box too small?\n"));
  CHECK_THAT(load(true, false, 0), ContainsSubstring("fills 4096 of the 8192 bytes of smem.a[0]"));
}
TEST_CASE("stores that are never committed are named") {
  check_race(with(Mistake::storer_does_not_commit),
             {"exits with TMA stores that were never committed", "TMA store (a read) issued by"});
}
TEST_CASE("a storer that exits without having waited is named") {
  check_named_always(with(Mistake::storer_exits_early), "exits with TMA stores that it never waited for");
}
TEST_CASE("a barrier that was never initialised is named") {
  check_named_always(with(Mistake::no_initialisation), "was never initialised");
}
TEST_CASE("a slot that is not aligned to the swizzle is named") {
  check_named_always(with(Mistake::misaligned_slot), "is not aligned to 1024 bytes");
}

}  // namespace ring_test
