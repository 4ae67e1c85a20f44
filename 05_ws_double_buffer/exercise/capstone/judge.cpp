/// @file
/// The requirements of the capstone's stages, which their checks test.
#include "05_ws_double_buffer/exercise/capstone/judge.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/exercise/check.hpp"
#include "common/exercise/evidence.hpp"
#include "common/host/verify/explanation.hpp"

namespace capstone {
namespace {
using namespace ladder::exercise;
using ladder::LaunchCounters, ladder::LaunchRecord;
using Matrix = std::vector<__nv_bfloat16>;

constexpr int kTileM = 128, kTileN = 256, kTileK = 64, kWarpsPerWarpgroup = 4;
constexpr int kPanel = 64;  ///< columns of a box of B, and of C
constexpr int kManySteps = 16;
constexpr int kSlots = 4;   ///< from stage 7 on
constexpr int kPieces = 2;  ///< staging tiles of stage 8
constexpr unsigned kThreads = 384, kMoverRegisters = 40, kComputeRegisters = 232;  ///< of stage 8

int tiles_over(int extent, int tile) { return (extent + tile - 1) / tile; }

struct Shape {
  int m, n, k;

  std::string name() const { return fmt::format("{}x{}x{}", m, n, k); }
  int tiles() const { return tiles_over(m, kTileM) * tiles_over(n, kTileN); }
  int steps() const { return tiles_over(k, kTileK); }
};

/// A known wrong result, and its message.
struct Slip {
  std::function<bool(const Output<__nv_bfloat16>&)> fits;
  std::string sentence;
};

/// Where the boxes of a step begin: at the right coordinates, with row and column swapped, or along K at the
/// number of the step, not at its first column.
enum class Boxes { right, exchanged, at_step };

/// One product, with its inputs in device memory.
class Problem {
 public:
  explicit Problem(const Shape& shape)
      : shape_(shape),
        a_(small_integers<float>(size_t(shape.m) * shape.k, 1)),
        b_(small_integers<float>(size_t(shape.k) * shape.n, 2)),
        a_device_(Matrix(a_.begin(), a_.end())),
        b_device_(Matrix(b_.begin(), b_.end())) {}

  Matrix zeros() const { return Matrix(size_t(shape_.m) * shape_.n, ladder::to_bf16(0)); }

  /// The first columns of A, repeated; 0 for columns that A lacks. With `as_it_lies`, the elements at these
  /// places of the swizzled tile.
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

  /// columns_of_a() if row and column of the box of A are swapped.
  Matrix columns_of_a_exchanged() const {
    Matrix c;
    for (int row = 0; row < shape_.m; ++row)
      for (int column = 0; column < shape_.n; ++column)
        c.push_back(ladder::to_bf16(a_at(row % kTileM, row / kTileM * kTileM + column % kTileK)));
    return c;
  }

  /// The first `steps` steps of the product.
  Matrix product_of(Boxes boxes_of_a, Boxes boxes_of_b, int steps) const {
    Matrix c;
    std::vector<float> sums(shape_.n);
    for (int row = 0; row < shape_.m; ++row) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int step = 0; step < steps; ++step)
        for (int k = 0; k < kTileK; ++k) {
          const float a = of_box_of_a(boxes_of_a, step, row, k);
          if (a == 0) continue;
          for (int column = 0; column < shape_.n; ++column)
            sums[column] += a * of_box_of_b(boxes_of_b, step, k, column);
        }
      for (const float sum : sums) c.push_back(ladder::to_bf16(sum));
    }
    return c;
  }

  /// Whether C is written exactly where boxes of 128 x 64 lie if they are stored with row and column swapped.
  bool is_stored_exchanged(const Output<__nv_bfloat16>& c, const Matrix& expected) const {
    std::vector<bool> written(expected.size());
    for (int tile_row = 0; tile_row < shape_.m; tile_row += kTileM)
      for (int panel = 0; panel < shape_.n; panel += kPanel)
        for (int row = panel; row < std::min(panel + kTileM, shape_.m); ++row)
          for (int column = tile_row; column < std::min(tile_row + kPanel, shape_.n); ++column)
            written[row * shape_.n + column] = true;
    // The first row's first columns are also the first box's.
    const Matrix got = c.values();
    bool begins_right = true;
    for (int column = 0; column < std::min(kPanel, shape_.n); ++column)
      begins_right = begins_right && to_float(got[column]) == to_float(expected[column]);
    return begins_right && c.written_places() == written;
  }

  /// @param steps steps that the kernel multiplies; 0 if C is no product
  /// @throws NotYet unless C is as expected, with the sentence of the slip that explains it, or with the
  /// explanation of the lessons' verifier
  void run(Launch launch, const Matrix& expected, int steps, const std::vector<Slip>& slips = {}) const {
    Output<__nv_bfloat16> c("C", expected.size(), shape_.n);
    launch({a_device_.data(), b_device_.data(), c.data(), shape_.m, shape_.n, shape_.k}, nullptr);
    try {
      c.expect_equal(expected);
    } catch (const NotYet& not_yet) {
      for (const Slip& slip : slips)
        if (slip.fits(c)) throw NotYet(slip.sentence);
      const std::string explanation = explain(c, expected, steps);
      throw NotYet(not_yet.what() + (explanation.empty() ? "" : "\n  " + explanation));
    }
  }

 private:
  float a_at(int row, int k) const { return row < shape_.m && k < shape_.k ? a_[row * shape_.k + k] : 0; }
  float b_at(int k, int column) const {
    return k < shape_.k && column < shape_.n ? b_[k * shape_.n + column] : 0;
  }

  /// The element in column k of the step's box, in the row of C.
  float of_box_of_a(Boxes boxes, int step, int row, int k) const {
    const int first_row = row / kTileM * kTileM;
    if (boxes == Boxes::exchanged) return a_at(step * kTileK + row - first_row, first_row + k);
    return a_at(row, (boxes == Boxes::at_step ? step : step * kTileK) + k);
  }
  float of_box_of_b(Boxes boxes, int step, int k, int column) const {
    const int first_column = column / kPanel * kPanel;
    if (boxes == Boxes::exchanged) return b_at(first_column + k, step * kTileK + column - first_column);
    return b_at((boxes == Boxes::at_step ? step : step * kTileK) + k, column);
  }

  /// The explanation of the lessons' verifier; empty if it has none.
  std::string explain(const Output<__nv_bfloat16>& c, const Matrix& expected, int steps) const {
    const std::vector<bool> written = c.written_places();
    if (!steps || std::find(written.begin(), written.end(), false) != written.end()) return "";
    const int k = std::min(shape_.k, steps * kTileK);
    ladder::Reference reference{{shape_.m, shape_.n, k}, {}, {}};
    Matrix a;
    for (int row = 0; row < shape_.m; ++row) {
      reference.rows.push_back(row);
      for (int i = 0; i < k; ++i) a.push_back(ladder::to_bf16(a_at(row, i)));
    }
    for (const __nv_bfloat16 value : expected) reference.values.push_back(to_float(value));
    const Matrix got = c.values();
    ladder::WrongElements wrong(reference);
    for (size_t i = 0; i < got.size(); ++i)
      if (!(to_float(got[i]) == to_float(expected[i])))
        wrong.add(static_cast<int64_t>(i) / shape_.n, static_cast<int64_t>(i) % shape_.n,
                  to_float(expected[i]), got[i]);
    if (wrong.nan_count() || wrong.examples().empty()) return "";
    const std::string text =
        ladder::explain(wrong, reference, /*is_exact=*/true, a, Matrix(b_.begin(), b_.end()));
    // The verifier suggests a race, but the device would have reported one.
    const size_t cause = text.find(": a slot was ");
    return cause == text.npos ? text
                              : text.substr(0, cause) + ": which box is loaded, and which slot is read?";
  }

  Shape shape_;
  std::vector<float> a_, b_;
  ladder::DeviceBuffer<__nv_bfloat16> a_device_, b_device_;
};

/// The steps of a stage's product.
int steps_of(int stage, const Shape& shape) { return stage <= 3 ? 0 : stage == 4 ? 1 : shape.steps(); }

/// The right C after a stage.
Matrix expected_after(int stage, const Shape& shape, const Problem& problem) {
  if (stage <= 2) return problem.zeros();
  if (stage == 3) return problem.columns_of_a();
  return problem.product(0, stage == 4 ? kTileK : shape.k);
}

/// The slip whose C is this.
Slip slip(const std::function<Matrix()>& make, const std::string& sentence) {
  return {[make](const Output<__nv_bfloat16>& c) {
            const Matrix instead = make(), got = c.values();
            return std::equal(got.begin(), got.end(), instead.begin(),
                              [](auto one, auto other) { return to_float(one) == to_float(other); });
          },
          sentence};
}

std::string exchanged(const std::string& what, const std::string& copy) {
  return fmt::format("{}: are row and column swapped? {} takes the column first", what, copy);
}

/// C made of boxes from other places.
std::vector<Slip> slips_of_boxes(const Problem& problem, int steps) {
  std::vector<Slip> slips;
  for (const Boxes boxes : {Boxes::exchanged, Boxes::at_step})
    for (const auto& [of_a, of_b, what] :
         {std::tuple{boxes, Boxes::right, "A"}, {Boxes::right, boxes, "B"}, {boxes, boxes, "A and B"}}) {
      const std::string text = fmt::format("C is made of boxes of {} from other places", what);
      slips.push_back(slip([&problem, steps, a = of_a, b = of_b] { return problem.product_of(a, b, steps); },
                           boxes == Boxes::exchanged
                               ? exchanged(text, "tma_load")
                               : text + ": where along K does a step begin? A step is 64 long"));
    }
  return slips;
}

/// @param problem, expected must live as long as the slips
std::vector<Slip> slips_of(int stage, const Shape& shape, const Problem& problem, const Matrix& expected) {
  if (stage == 3)
    return {slip([&] { return problem.columns_of_a(true); },
                 "C is A, but chunks of 8 columns are in other places, as the 128-byte swizzle leaves them: "
                 "read the tile with at()"),
            slip([&] { return problem.columns_of_a_exchanged(); },
                 exchanged("C is made of boxes of A from other places", "tma_load"))};
  if (stage < 4) return {};
  std::vector<Slip> slips;
  const int steps = steps_of(stage, shape);
  if (stage >= 5 && shape.k < kTileK)
    slips.push_back({[](const Output<__nv_bfloat16>& c) {
                       const Matrix got = c.values();
                       return std::all_of(got.begin(), got.end(), [](auto value) {
                         return to_float(value) == 0 || std::isnan(to_float(value));
                       });
                     },
                     fmt::format("C holds no sums for a K of {}: does the loop round K / 64 up?", shape.k)});
  if (stage >= 5 && shape.steps() > 1) {
    const int last = (shape.steps() - 1) * kTileK, whole = shape.k / kTileK * kTileK;
    slips.push_back(
        slip([&] { return problem.product(0, kTileK); },
             "C is the product of the first 64 columns of A alone: does the loop cover all of K?"));
    slips.push_back(slip([&, last] { return problem.product(last, shape.k); },
                         "C is the product of the last step alone: which product may overwrite the sums?"));
    slips.push_back(slip([&, whole] { return problem.product(0, whole); },
                         fmt::format("C lacks the last {} columns of A: how many steps does a K of {} take?",
                                     shape.k - whole, shape.k)));
  }
  for (Slip& one : slips_of_boxes(problem, steps)) slips.push_back(std::move(one));
  if (stage >= 8)
    slips.push_back({[&](const Output<__nv_bfloat16>& c) { return problem.is_stored_exchanged(c, expected); },
                     exchanged("boxes of C are stored to other places", "tma_store")});
  return slips;
}

/// Calls `body`, and adds advice to a report if its cause is known.
void with_advice(const std::function<void()>& body) {
  try {
    body();
  } catch (const NotYet&) {
    throw;
  } catch (const std::exception& report) {
    std::string text = report.what();
    const bool is_explained = text.find("no thread has waited at") != std::string::npos ||
                              text.find("bytes were started") != std::string::npos ||
                              text.find(" were begun, and ") != std::string::npos;
    if (text.find("the block exits while this copy") != std::string::npos && !is_explained)
      text += "\n  so no wait ended with its bytes: with which parity do threads wait?";
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

/// The record of one launch; empty on a GPU.
std::optional<LaunchRecord> record_of(int stage, Launch launch, const Shape& shape) {
  const Problem problem(shape);
  const Matrix expected = expected_after(stage, shape, problem);
  return recorded([&] { problem.run(launch, expected, steps_of(stage, shape)); });
}

std::optional<LaunchCounters> counters_of(int stage, Launch launch, const Shape& shape) {
  const Problem problem(shape);
  const Matrix expected = expected_after(stage, shape, problem);
  return counted([&] { problem.run(launch, expected, steps_of(stage, shape)); });
}

std::string called(const LaunchRecord::Mbarrier& barrier) {
  return fmt::format("{}, initialised at {},", barrier.name, barrier.where);
}

/// Whether the warp is in a warpgroup that multiplies.
bool multiplies(const LaunchRecord& record, unsigned warp) {
  return std::any_of(record.multiplies.begin(), record.multiplies.end(),
                     [&](unsigned first) { return first / kWarpsPerWarpgroup == warp / kWarpsPerWarpgroup; });
}

void expect_a_block_for_each_tile(const LaunchRecord& record, const Shape& shape) {
  expect(record.blocks == static_cast<uint64_t>(shape.tiles()),
         fmt::format("C is right, but {} blocks wrote its {} tiles of 128x256: how large is the grid?",
                     record.blocks, shape.tiles()));
}

void expect_one_barrier(const LaunchRecord& record) {
  expect(record.mbarriers.size() == 1,
         fmt::format("C is right, but a block initialises {} mbarriers, not one", record.mbarriers.size()));
  const LaunchRecord::Mbarrier& barrier = record.mbarriers.front();
  const uint64_t threads = record.threads / record.blocks;
  expect(barrier.arrivals == 1,
         fmt::format("C is right, but {} expects {} arrivals, not one", called(barrier), barrier.arrivals));
  expect(barrier.phases == 1,
         fmt::format("C is right, but {} has completed {} phases, not one: which threads arrive?",
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
                                                  "multiplies: the loader must be a warp after those",
                                                  warp));
  const auto one = counters_of(stage, launch, {128, 256, kTileK}),
             ten = counters_of(stage, launch, {128, 256, 10 * kTileK});
  expect(one->block_barriers == ten->block_barriers,
         fmt::format("C is right, but the block executes {} barriers in one step and {} in ten: roles must "
                     "synchronise only at the slot's mbarriers",
                     one->block_barriers, ten->block_barriers));
}

/// With one slot loads and products alternate. With several slots they overlap.
void expect_overlap(int stage, Launch launch) {
  const auto counters = counters_of(stage, launch, {128, 256, kManySteps * kTileK});
  const double hidden = counters->overlap_cycles / counters->math_cycles;
  expect(hidden > 0.5,
         fmt::format("C is right, but copies are in flight during {:.0f} % of the products only: how many "
                     "slots does the loader fill before compute has released the first?",
                     100 * hidden));
}

/// A loader that waits for the bytes of its copies has one step's loads in flight at a time.
void expect_no_wait_for_own_bytes(const LaunchRecord& record) {
  for (const auto& [barrier, warps] : record.waits) {
    const bool has_compute =
        std::any_of(warps.begin(), warps.end(), [&](unsigned warp) { return multiplies(record, warp); });
    for (const unsigned warp : warps)
      expect(
          !has_compute || record.loads.count(warp) == 0,
          fmt::format(
              "C is right, but warp {} loads, and waits at {} for the bytes of its copies, as compute does: "
              "the loader must wait only for empty slots",
              warp, barrier));
  }
}

/// A pipeline has two mbarriers for each slot. A staging tile is a slot, too.
void expect_slots(int stage, const LaunchRecord& record) {
  const int wanted = 2 * kSlots + (stage >= 8 ? 2 * kPieces : 0);
  expect(record.mbarriers.size() == static_cast<size_t>(wanted),
         fmt::format("C is right, but a block initialises {} mbarriers, not {}: two for each of {} slots{}",
                     record.mbarriers.size(), wanted, kSlots,
                     stage >= 8 ? fmt::format(", and two for each of {} staging tiles", kPieces) : ""));
}

void expect_registers(const LaunchRecord& record) {
  const uint64_t threads = record.threads / record.blocks;
  const std::string wanted =
      fmt::format("{} threads, {} and {}", kThreads, kMoverRegisters, kComputeRegisters);
  expect(threads == kThreads,
         fmt::format("C is right, but a block has {} threads, not {}: setmaxnreg needs whole warpgroups",
                     threads, kThreads));
  const auto has_asked = [](unsigned count) { return count > 0; };
  expect(std::any_of(record.registers.begin(), record.registers.end(), has_asked),
         "C is right, but no warpgroup executes setmaxnreg: " + wanted);
  for (unsigned i = 0; i < record.registers.size(); ++i) {
    const unsigned count = record.registers[i];
    const bool computes = multiplies(record, i * kWarpsPerWarpgroup);
    expect(
        count == (computes ? kComputeRegisters : kMoverRegisters),
        fmt::format("C is right, but warpgroup {}, which {}, {}: {}", i, computes ? "computes" : "moves data",
                    count ? fmt::format("requests {} registers", count) : "executes no setmaxnreg", wanted));
  }
  expect(record.has_launch_bounds,
         "C is right, but the kernel has no __launch_bounds__(threads, blocks of an SM), without which nvcc "
         "ignores setmaxnreg");
}

void expect_storer(const LaunchRecord& record, const Shape& shape) {
  expect(!record.stores.empty(), "C is right, but no tile is stored by TMA (ptx::tma_store)");
  for (const unsigned warp : record.stores)
    expect(!multiplies(record, warp), fmt::format("C is right, but warp {} stores and its warpgroup "
                                                  "multiplies: the storer must be a warp after those",
                                                  warp));
  expect(record.blocks < static_cast<uint64_t>(shape.tiles()),
         fmt::format("C is right, but {} tiles have {} blocks: a persistent grid has at most as many as the "
                     "GPU holds at the same time",
                     shape.tiles(), record.blocks));
}

void look_at_first_block(int stage, Launch launch) {
  const Shape shape = stage >= 8 ? Shape{300, 520, 200} : Shape{130, 264, 72};
  const std::optional<LaunchRecord> record = record_of(stage, launch, shape);
  if (!record) return;
  if (stage <= 7) expect_a_block_for_each_tile(*record, shape);
  if (stage == 2) expect_one_barrier(*record);
  if (stage == 3) expect_copies(*record);
  if (stage == 4 || stage == 5) expect_products(*record);
  if (stage >= 6) expect_roles(stage, launch, *record);
  if (stage >= 7) {
    expect_overlap(stage, launch);
    expect_slots(stage, *record);
    expect_no_wait_for_own_bytes(*record_of(stage, launch, {128, 256, kManySteps * kTileK}));
  }
  if (stage >= 8) {
    expect_storer(*record, shape);
    expect_registers(*record);
  }
}

}  // namespace

void judge(int stage, Launch launch) {
  for (const Shape& shape : shapes_of(stage)) {
    const Problem problem(shape);
    const Matrix expected = expected_after(stage, shape, problem);
    const std::vector<Slip> slips = slips_of(stage, shape, problem, expected);
    const int steps = steps_of(stage, shape);
    in_case(shape.name(), [&] {
      with_advice([&] { on_every_schedule([&] { problem.run(launch, expected, steps, slips); }); });
    });
  }
  look_at_first_block(stage, launch);
}

}  // namespace capstone
