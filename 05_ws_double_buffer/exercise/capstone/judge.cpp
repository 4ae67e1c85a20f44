/// @file
/// What the checks of the capstone's stages ask of the learner's kernel.
#include "05_ws_double_buffer/exercise/capstone/judge.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"

namespace capstone {
namespace {
using namespace ladder::exercise;
using ladder::LaunchCounters, ladder::LaunchRecord;
using Matrix = std::vector<__nv_bfloat16>;

constexpr int kTileM = 128, kTileN = 256, kTileK = 64, kWarpsPerWarpgroup = 4;

int tiles_over(int extent, int tile) { return (extent + tile - 1) / tile; }

struct Shape {
  int m, n, k;

  std::string name() const { return fmt::format("{}x{}x{}", m, n, k); }
  int tiles() const { return tiles_over(m, kTileM) * tiles_over(n, kTileN); }
  int steps() const { return tiles_over(k, kTileK); }
};

/// What C may be instead, and what is said of it then.
struct Slip {
  Matrix c;
  std::string sentence;
};

/// One product, its inputs in device memory.
class Problem {
 public:
  explicit Problem(const Shape& shape)
      : shape_(shape),
        a_(small_integers<float>(size_t(shape.m) * shape.k, 1)),
        b_(small_integers<float>(size_t(shape.k) * shape.n, 2)),
        a_device_(Matrix(a_.begin(), a_.end())),
        b_device_(Matrix(b_.begin(), b_.end())) {}

  Matrix zeros() const { return Matrix(size_t(shape_.m) * shape_.n, ladder::to_bf16(0)); }

  /// The first columns of A, again and again; 0 for those that A lacks. Or, `as_it_lies`, what lies in their
  /// place in the swizzled tile.
  Matrix columns_of_a(bool as_it_lies = false) const {
    constexpr int kChunk = 8;
    Matrix c;
    for (int row = 0; row < shape_.m; ++row)
      for (int column = 0; column < shape_.n; ++column) {
        int k = column % kTileK;
        if (as_it_lies) k ^= row % 8 * kChunk;
        c.push_back(ladder::to_bf16(k < shape_.k ? a_[row * shape_.k + k] : 0));
      }
    return c;
  }

  /// Columns first .. last - 1 of A by those rows of B.
  Matrix product(int first, int last) const {
    Matrix c;
    std::vector<float> sums(shape_.n);
    for (int row = 0; row < shape_.m; ++row) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int k = first; k < std::min(last, shape_.k); ++k)
        for (int column = 0; column < shape_.n; ++column)
          sums[column] += a_[row * shape_.k + k] * b_[k * shape_.n + column];
      for (const float sum : sums) c.push_back(ladder::to_bf16(sum));
    }
    return c;
  }

  /// @throws NotYet unless C is as expected, with the sentence of the slip that explains it
  void run(Launch launch, const Matrix& expected, const std::vector<Slip>& slips = {}) const {
    Output<__nv_bfloat16> c("C", expected.size(), shape_.n);
    launch({a_device_.data(), b_device_.data(), c.data(), shape_.m, shape_.n, shape_.k}, nullptr);
    try {
      c.expect_equal(expected);
    } catch (const NotYet&) {
      for (const Slip& slip : slips)
        if (is(c, slip.c)) throw NotYet(slip.sentence);
      throw;
    }
  }

 private:
  static bool is(const Output<__nv_bfloat16>& c, const Matrix& expected) {
    try {
      c.expect_equal(expected);
      return true;
    } catch (const NotYet&) {
      return false;
    }
  }

  Shape shape_;
  std::vector<float> a_, b_;
  ladder::DeviceBuffer<__nv_bfloat16> a_device_, b_device_;
};

/// What C must be after a stage.
Matrix expected_after(int stage, const Shape& shape, const Problem& problem) {
  if (stage <= 2) return problem.zeros();
  if (stage == 3) return problem.columns_of_a();
  return problem.product(0, stage == 4 ? kTileK : shape.k);
}

std::vector<Slip> slips_of(int stage, const Shape& shape, const Problem& problem) {
  if (stage == 3)
    return {
        {problem.columns_of_a(true),
         "C is A, but with chunks of 8 columns in other places, as the 128-byte swizzle leaves them: read "
         "the tile with at()"}};
  if (stage < 5 || shape.steps() == 1) return {};
  const int last = (shape.steps() - 1) * kTileK, whole = shape.k / kTileK * kTileK;
  return {{problem.product(0, kTileK),
           "C is the product of the first 64 columns of A alone: does the loop go over all of K?"},
          {problem.product(last, shape.k),
           "C is the product of the last step alone: which product may overwrite the sums?"},
          {problem.product(0, whole),
           fmt::format("C lacks the last {} columns of A: how many steps does a K of {} take?",
                       shape.k - whole, shape.k)}};
}

/// Calls `body`. What a report means at this place is added to it, where that is known.
void with_advice(const std::function<void()>& body) {
  try {
    body();
  } catch (const NotYet&) {
    throw;
  } catch (const std::exception& report) {
    std::string text = report.what();
    if (text.find("the block exits while this copy") != std::string::npos)
      text +=
          "\n  so no wait ended with its bytes: how many does the barrier expect, and with which parity do "
          "threads wait?";
    if (text.find("wgmma operations that it never waited for") != std::string::npos)
      text += "\n  so no finish() of the core follows its last start()";
    throw std::runtime_error(text);
  }
}

std::vector<Shape> shapes_of(int stage) {
  switch (stage) {
    case 1:
    case 2:
      return {{1, 8, 8}, {128, 256, 64}, {300, 520, 72}};
    case 3:
    case 4:
      return {{128, 256, 64}, {1, 8, 8}, {200, 264, 40}, {130, 264, 200}};
    case 5:
    case 6:
      return {{128, 256, 128}, {1, 8, 8}, {77, 40, 200}, {130, 264, 328}};
    case 7:  // around the number of slots, and on the second and the third lap
      return {{128, 256, 128}, {1, 8, 8}, {77, 40, 200}, {77, 40, 256}, {130, 264, 328}, {64, 72, 712}};
    default:  // no tile, one and several for each block
      return {{128, 256, 128}, {1, 8, 8}, {77, 40, 712}, {300, 520, 200}, {130, 1288, 72}};
  }
}

/// One launch, recorded. Nothing on the GPU.
std::optional<LaunchRecord> record_of(int stage, Launch launch, const Shape& shape) {
  const Problem problem(shape);
  const Matrix expected = expected_after(stage, shape, problem);
  return recorded([&] { problem.run(launch, expected); });
}

std::optional<LaunchCounters> counters_of(int stage, Launch launch, const Shape& shape) {
  const Problem problem(shape);
  const Matrix expected = expected_after(stage, shape, problem);
  return counted([&] { problem.run(launch, expected); });
}

std::string called(const LaunchRecord::Mbarrier& barrier) {
  return fmt::format("{}, initialised at {},", barrier.name, barrier.where);
}

/// Is the warp in a warpgroup that multiplies?
bool multiplies(const LaunchRecord& record, unsigned warp) {
  return std::any_of(record.multiplies.begin(), record.multiplies.end(),
                     [&](unsigned first) { return first / kWarpsPerWarpgroup == warp / kWarpsPerWarpgroup; });
}

void expect_a_block_for_each_tile(const LaunchRecord& record, const Shape& shape) {
  expect(record.blocks == static_cast<uint64_t>(shape.tiles()),
         fmt::format("C is right, but {} blocks wrote its {} tiles of 128x256: how large is the grid?",
                     record.blocks, shape.tiles()));
}

void expect_fenced(const LaunchRecord& record) {
  for (const LaunchRecord::Mbarrier& barrier : record.mbarriers)
    expect(barrier.fenced,
           fmt::format("C is right, but no fence_mbarrier_init follows where {} is initialised, at {}: other "
                       "blocks may not know of it yet",
                       barrier.name, barrier.where));
}

void expect_one_barrier(const LaunchRecord& record) {
  expect(record.mbarriers.size() == 1,
         fmt::format("C is right, but a block initialises {} mbarriers, not one", record.mbarriers.size()));
  const LaunchRecord::Mbarrier& barrier = record.mbarriers.front();
  const uint64_t threads = record.threads / record.blocks;
  expect(barrier.arrivals == 1, fmt::format("C is right, but {} counts {} arrivals, not that of one thread",
                                            called(barrier), barrier.arrivals));
  expect(barrier.phases == 1, fmt::format("C is right, but {} has completed {} phases, not one: who arrives?",
                                          called(barrier), barrier.phases));
  expect(barrier.witnesses == threads,
         fmt::format("C is right, but of {} threads {} have waited until the phase of {} was completed: with "
                     "which parity?",
                     threads, barrier.witnesses, barrier.name));
}

void expect_copies(const LaunchRecord& record) {
  expect(!record.loads.empty(), "C is right, but no thread started a copy by TMA (ptx::tma_load)");
}

void expect_products(const LaunchRecord& record) {
  expect_copies(record);
  expect(record.mma_flops > 0, "C is right, but the tensor cores did nothing: start and finish a WgmmaCore");
}

void expect_roles(int stage, Launch launch, const LaunchRecord& record) {
  expect_products(record);
  for (const unsigned warp : record.loads)
    expect(!multiplies(record, warp), fmt::format("C is right, but warp {} starts copies and its warpgroup "
                                                  "multiplies: the loader is a warp behind those",
                                                  warp));
  const auto one = counters_of(stage, launch, {128, 256, kTileK}),
             ten = counters_of(stage, launch, {128, 256, 10 * kTileK});
  expect(
      one->block_barriers == ten->block_barriers,
      fmt::format("C is right, but the block meets {} times in one step and {} times in ten: roles meet at "
                  "the slot's mbarriers alone",
                  one->block_barriers, ten->block_barriers));
}

/// With one slot loads and products take turns. Later the loader is ahead.
void expect_overlap(int stage, Launch launch) {
  constexpr int kSteps = 16;
  const auto counters = counters_of(stage, launch, {128, 256, kSteps * kTileK});
  const double hidden = counters->overlap_cycles / counters->math_cycles;
  expect(hidden > 0.5,
         fmt::format("C is right, but copies are in flight during {:.0f} % of the products only: how many "
                     "slots does the loader fill before compute has released the first?",
                     100 * hidden));
}

void expect_storer(const LaunchRecord& record, const Shape& shape) {
  expect(!record.stores.empty(), "C is right, but no tile is stored by TMA (ptx::tma_store)");
  for (const unsigned warp : record.stores)
    expect(!multiplies(record, warp), fmt::format("C is right, but warp {} stores and its warpgroup "
                                                  "multiplies: the storer is a warp behind those",
                                                  warp));
  expect(record.blocks < static_cast<uint64_t>(shape.tiles()),
         fmt::format("C is right, but {} tiles have {} blocks: a persistent grid has no more than the GPU "
                     "holds at a time",
                     shape.tiles(), record.blocks));
}

void look_at_first_block(int stage, Launch launch) {
  const Shape shape = stage >= 8 ? Shape{300, 520, 200} : Shape{130, 264, 72};
  const std::optional<LaunchRecord> record = record_of(stage, launch, shape);
  if (!record) return;
  if (stage <= 7) expect_a_block_for_each_tile(*record, shape);
  expect_fenced(*record);
  if (stage == 2) expect_one_barrier(*record);
  if (stage == 3) expect_copies(*record);
  if (stage == 4 || stage == 5) expect_products(*record);
  if (stage >= 6) expect_roles(stage, launch, *record);
  if (stage >= 7) expect_overlap(stage, launch);
  if (stage >= 8) expect_storer(*record, shape);
}

}  // namespace

void judge(int stage, Launch launch) {
  for (const Shape& shape : shapes_of(stage)) {
    const Problem problem(shape);
    const Matrix expected = expected_after(stage, shape, problem);
    const std::vector<Slip> slips = slips_of(stage, shape, problem);
    in_case(shape.name(),
            [&] { with_advice([&] { on_every_schedule([&] { problem.run(launch, expected, slips); }); }); });
  }
  look_at_first_block(stage, launch);
}

}  // namespace capstone
