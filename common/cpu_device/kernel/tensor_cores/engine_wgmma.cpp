/// @file
/// wgmma: the asynchronous tensor-core instruction of a warpgroup.
///
/// From issue to wait_group the tensor cores own the accumulator registers. Meanwhile they hold NaN here, so
/// that whoever reads them too early computes NaN, and whoever writes them is found out.
#include "common/cpu_device/kernel/engine_wgmma.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>

#include "common/cpu_device/base/float16.hpp"
#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"
#include "common/cpu_device/kernel/reports/launch_shape.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"

namespace cpu_device {
namespace {

constexpr size_t kRegisterBytes = sizeof(uint32_t);
constexpr int kTileM = 64, kTileK = 16, kMaxTileN = 256;
constexpr uint32_t kChunkBytes = 16;  ///< the unit that the swizzle moves: 8 elements
constexpr int kChunk = 8;

Warpgroup& warpgroup_of(Thread& thread) {
  return thread.block->warpgroups[thread.ids.rank / kWarpgroupThreads];
}

unsigned first_thread(const Block& block, const Warpgroup& warpgroup) {
  const auto index = static_cast<unsigned>(&warpgroup - block.warpgroups.data());
  return block.ids.rank_in_cluster * block.ids.threads + index * kWarpgroupThreads;
}

// --- operands -----------------------------------------------------------------------------------------

/// Layouts of operands: how far the swizzle moves chunks, as bits 62-63 of a descriptor say it. In bytes.
constexpr uint32_t kSwizzledRow[] = {kChunkBytes, 128, 64, 32};
constexpr uint32_t kSwizzleBits[] = {0, 0x70, 0x30, 0x10};

/// A matrix descriptor, taken apart (PTX ISA, "Matrix Descriptor Format"). All in bytes.
struct Descriptor {
  uint32_t start, leading, stride;
  uint32_t swizzle;  ///< index into kSwizzledRow

  explicit Descriptor(uint64_t bits)
      : start(static_cast<uint32_t>(bits & 0x3fff) << 4),
        leading(static_cast<uint32_t>(bits >> 16 & 0x3fff) << 4),
        stride(static_cast<uint32_t>(bits >> 32 & 0x3fff) << 4),
        swizzle(static_cast<uint32_t>(bits >> 62)) {}

  /// Of 8 elements with k contiguous, chunk `half` of the 16 k of a row: in rows of the swizzle, 8 of which
  /// are followed after `stride`; without one each half has rows of its own.
  uint32_t address_along_k(uint32_t row, uint32_t half) const {
    return start + row / 8 * stride + row % 8 * kSwizzledRow[swizzle] +
           half * (swizzle ? kChunkBytes : leading);
  }
  /// Of 8 elements of one k: panels as wide as the swizzle, `leading` apart, with `stride` between groups of
  /// 8 k; without one the two change places.
  uint32_t address_across_k(uint32_t k, uint32_t column) const {
    if (!swizzle) return start + column / kChunk * stride + k / 8 * leading + k % 8 * kChunkBytes;
    const uint32_t panel = kSwizzledRow[swizzle] / 2;
    return start + column / panel * leading + k / 8 * stride + k % 8 * kSwizzledRow[swizzle] +
           column % panel * 2;
  }
  /// Leading and stride offset with the 128-byte swizzle; ~0u where nothing reads it.
  std::array<unsigned, 2> offsets_read(bool across, uint32_t rows) const {
    if (kSwizzledRow[swizzle] != 128) return {~0u, ~0u};
    return {across && rows > kSwizzledRow[swizzle] / 2 ? leading : ~0u, stride};
  }
};

float to_float(MmaInput type, uint16_t bits) {
  return type == MmaInput::f16 ? float16_to_float(bits) : bfloat16_to_float(bits);
}

/// Reads operands of one operation from the async view of its block.
class OperandReader {
 public:
  OperandReader(Cluster& cluster, Block& block, Warpgroup& warpgroup, const WgmmaOperation& operation)
      : cluster_(cluster),
        block_(block),
        warpgroup_(warpgroup),
        operation_(operation),
        memory_(block.shared.read_async_view()) {}

  /// For reports: the operand may reach into another array. Noted before it is read, and a report made.
  template <class AddressOf>
  void note_operand(const Descriptor& at, uint32_t rows, uint32_t columns, const AddressOf& address_of) {
    if (!cluster_.races()) return;
    constexpr size_t kMostKept = 256;
    Warpgroup::OperandBytes bytes{
        at.start - kSharedWindowBase, ~0u, 0, operation_.race_operation.issue_epoch(), at.leading, at.stride};
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t column = 0; column < columns; ++column) {
        const uint32_t address = address_of(row, column);
        const uint32_t offset = (address ^ (address >> 3 & kSwizzleBits[at.swizzle])) - kSharedWindowBase;
        bytes.begin = std::min(bytes.begin, offset);
        bytes.end = std::max(bytes.end, offset + kChunkBytes);
      }
    auto& known = warpgroup_.operands_read;
    if (known.size() == kMostKept) known.erase(known.begin());
    if (std::find(known.begin(), known.end(), bytes) == known.end()) known.push_back(bytes);
  }

  /// Eight elements at a logical address of this operand; the swizzle exchanges 16-byte chunks within 1024
  /// bytes.
  /// @param row of A, or column of B, to which they belong: the first of them
  /// @return false, and a failure is recorded, if they lie outside.
  bool read(const Descriptor& at, uint32_t address, uint32_t row, float (&values)[kChunk]) {
    const uint32_t swizzled = address ^ (address >> 3 & kSwizzleBits[at.swizzle]);
    const uint32_t offset = swizzled - kSharedWindowBase;
    if (swizzled < kSharedWindowBase || offset + kChunkBytes > block_.shared.bytes()) {
      cluster_.record_failure(
          current_thread,
          print("wgmma: a descriptor reaches outside of the block's shared memory (0x%x): it begins at 0x%x, "
                "with a leading offset of %u and a stride offset of %u bytes",
                address, at.start, at.leading, at.stride),
          operation_.where);
      return false;
    }
    uint16_t bits[kChunk];
    std::memcpy(bits, memory_ + offset, sizeof bits);
    cluster_.unwritten_reads().note(block_, offset, memory_, "wgmma", operation_.where,
                                    row == 0 && &warpgroup_ == &block_.warpgroups.front());
    const MmaInput type = operation_.what.input;
    for (int i = 0; i < kChunk; ++i) values[i] = to_float(type, bits[i]);
    if (RaceChecker* races = cluster_.races()) {
      races->access(operation_.race_operation, block_.ids.rank_in_cluster, offset, kChunkBytes,
                    /*write=*/false);
    }
    return true;
  }

  /// Of 16 k the second 8 are read where rows of the first 8 are.
  void note_overlap(uint32_t leading) {
    const Unobserved unobserved;
    cluster_.unwritten_reads().note_overlap(
        "wgmma at " + to_string(operation_.where) +
        print(
            " reads the same bytes for several elements: a descriptor says no swizzle (bits 62-63) and a "
            "leading offset of "
            "%u bytes, which is less than the %u of 8 rows: does the operand lie in shared memory swizzled?",
            leading, kChunk * kChunkBytes));
  }

 private:
  Cluster& cluster_;
  Block& block_;
  Warpgroup& warpgroup_;
  const WgmmaOperation& operation_;
  const std::byte* memory_;
};

void note_operand(OperandReader& reader, const Descriptor& at, bool across, uint32_t rows) {
  if (across)
    reader.note_operand(at, kTileK, rows / kChunk,
                        [&](uint32_t k, uint32_t chunk) { return at.address_across_k(k, chunk * kChunk); });
  else
    reader.note_operand(at, rows, 2,
                        [&](uint32_t row, uint32_t half) { return at.address_along_k(row, half); });
}

/// A row or column of an operand for each of 16 k; `across` where k is not the contiguous direction.
/// `element(i, k)` is where it goes.
template <class Element>
bool read_operand(OperandReader& reader, const Descriptor& at, bool across, uint32_t rows,
                  const Element& element) {
  float values[kChunk];
  if (across) {
    for (uint32_t k = 0; k < kTileK; ++k) {
      for (uint32_t row = 0; row < rows; row += kChunk) {
        if (!reader.read(at, at.address_across_k(k, row), row, values)) return false;
        for (uint32_t i = 0; i < kChunk; ++i) element(row + i, k) = values[i];
      }
    }
    return true;
  }
  if (!at.swizzle && at.leading < kChunk * kChunkBytes) reader.note_overlap(at.leading);
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t half = 0; half < 2; ++half) {
      if (!reader.read(at, at.address_along_k(row, half), row, values)) return false;
      for (uint32_t i = 0; i < kChunk; ++i) element(row, half * kChunk + i) = values[i];
    }
  }
  return true;
}

/// A from the registers of the warpgroup, as they are now.
void read_a_of_registers(const WgmmaOperation& operation, float (&a)[kTileM][kTileK]) {
  for (unsigned thread = 0; thread < kWarpgroupThreads; ++thread) {
    const unsigned row = thread / 32 * 16 + thread % 32 / 4, k = thread % 4 * 2;
    for (unsigned q = 0; q < 4; ++q) {
      const uint32_t* const variables = operation.a_variables[thread];
      const uint32_t pair = variables ? variables[q] : operation.a_registers[thread * 4 + q];
      float* const to = &a[row + 8 * (q % 2)][k + 8 * (q / 2)];
      to[0] = to_float(operation.what.input, static_cast<uint16_t>(pair));
      to[1] = to_float(operation.what.input, static_cast<uint16_t>(pair >> 16));
    }
  }
}

// --- execution ----------------------------------------------------------------------------------------

/// Row r of the tile lives in four threads; thread c of them holds columns 8j + 2c and 8j + 2c + 1.
void load_sums(const WgmmaOperation& operation, int row, float* d) {
  const int half = row % 16 / 8;
  for (int c = 0; c < 4; ++c) {
    const uint32_t* const value = operation.accumulators[row / 16 * 32 + row % 8 * 4 + c]->value;
    for (int j = 0; j < operation.what.columns / 8; ++j) {
      float* const to = d + 8 * j + 2 * c;
      if (operation.what.half_sums) {
        to[0] = float16_to_float(static_cast<uint16_t>(value[2 * j + half]));
        to[1] = float16_to_float(static_cast<uint16_t>(value[2 * j + half] >> 16));
      } else {
        std::memcpy(to, value + 4 * j + 2 * half, 2 * sizeof(float));
      }
    }
  }
}

void store_sums(WgmmaOperation& operation, int row, const float* d) {
  const int half = row % 16 / 8;
  for (int c = 0; c < 4; ++c) {
    uint32_t* const value = operation.accumulators[row / 16 * 32 + row % 8 * 4 + c]->value;
    for (int j = 0; j < operation.what.columns / 8; ++j) {
      const float* const from = d + 8 * j + 2 * c;
      if (operation.what.half_sums) {
        value[2 * j + half] = float_to_float16(from[0]) | uint32_t{float_to_float16(from[1])} << 16;
      } else {
        std::memcpy(value + 4 * j + 2 * half, from, 2 * sizeof(float));
      }
    }
  }
}

/// So many sums stay in registers while k goes on.
constexpr int kInRegisters = 16;

/// d += a * b, for kInRegisters columns of b.
void add_products(const float (&a)[kTileK], const float* b, float* d) {
  float sums[kInRegisters];
  std::copy(d, d + kInRegisters, sums);
  for (int k = 0; k < kTileK; ++k) {
#pragma GCC unroll kInRegisters
    for (int i = 0; i < kInRegisters; ++i) sums[i] += a[k] * b[k * kMaxTileN + i];
  }
  std::copy(sums, sums + kInRegisters, d);
}

void execute(Cluster& cluster, Block& block, Warpgroup& warpgroup, WgmmaOperation& operation) {
  const Wgmma& what = operation.what;
  float a[kTileM][kTileK], b[kTileK][kMaxTileN];
  OperandReader reader(cluster, block, warpgroup, operation);
  const auto columns = static_cast<uint32_t>(what.columns);
  if (!what.a_in_registers) note_operand(reader, Descriptor(what.a), what.a_column_major, kTileM);
  note_operand(reader, Descriptor(what.b), what.b_row_major, columns);
  if (what.a_in_registers) {
    read_a_of_registers(operation, a);
  } else if (!read_operand(reader, Descriptor(what.a), what.a_column_major, kTileM,
                           [&](uint32_t row, uint32_t k) -> float& { return a[row][k]; })) {
    return;
  }
  if (!read_operand(reader, Descriptor(what.b), what.b_row_major, columns,
                    [&](uint32_t column, uint32_t k) -> float& { return b[k][column]; })) {
    return;
  }
  if (what.columns % kInRegisters) {
    for (auto& row : b) std::fill(row + columns, row + columns + kChunk, 0.0f);
  }
  if (what.negate_a != what.negate_b) {
    for (auto& row : a)
      for (float& element : row) element = -element;
  }
  for (int row = 0; row < kTileM; ++row) {
    float d[kMaxTileN];
    if (!what.accumulate || what.columns % kInRegisters) std::fill(d, d + kMaxTileN, 0.0f);
    if (what.accumulate) load_sums(operation, row, d);
    for (int column = 0; column < what.columns; column += kInRegisters)
      add_products(a[row], &b[0][column], &d[column]);
    store_sums(operation, row, d);
  }
  cluster.totals().mma_flops += uint64_t{2} * kTileM * columns * kTileK;
  {
    const Unobserved unobserved;
    MovedTiles& moved = cluster.moved_tiles();
    moved.note_product(operation.where);
    if (!what.a_in_registers)
      moved.note_offsets(!what.a_column_major, Descriptor(what.a).offsets_read(what.a_column_major, kTileM));
    moved.note_offsets(!what.b_row_major, Descriptor(what.b).offsets_read(what.b_row_major, columns));
    constexpr size_t kMostPlaces = 256;  // a ring has fewer steps of K
    if (!what.a_in_registers) {
      std::set<std::pair<uint64_t, uint64_t>>& places = block.operands[&warpgroup];
      if (places.size() < kMostPlaces) places.insert({what.a, what.b});
    }
  }
  if (!what.a_in_registers)
    cluster.accesses().bulk_access(Space::shared, 0, sizeof(uint16_t) * kTileM * kTileK, /*write=*/false);
  cluster.accesses().bulk_access(Space::shared, 0, sizeof(uint16_t) * columns * kTileK, /*write=*/false);
}

/// Everything before operation number `end` takes effect.
void execute_until(Cluster& cluster, Block& block, Warpgroup& warpgroup, uint64_t end) {
  while (warpgroup.executed < end && !cluster.failed()) {
    WgmmaOperation& operation = warpgroup.operations.front();
    execute(cluster, block, warpgroup, operation);
    cluster.count_work();
    warpgroup.operations.pop_front();
    ++warpgroup.executed;
  }
}

// --- accumulators -------------------------------------------------------------------------------------

Accumulator& accumulator_at(Thread& thread, void* const* registers, int count) {
  const auto has_these = [&](const Accumulator& known) {
    if (known.count != count || known.at(0) != registers[0]) return false;
    for (int i = 1; i < count; ++i)
      if (known.at(i) != registers[i]) return false;
    return true;
  };
  for (Accumulator& known : thread.accumulators) {
    if (has_these(known)) return known;
  }
  Accumulator& added = thread.accumulators.emplace_back();
  added.first = static_cast<std::byte*>(registers[0]);
  added.count = count;
  if (!has_these(added)) {
    for (int i = 0; i < count; ++i) added.scattered.push_back(static_cast<std::byte*>(registers[i]));
  }
  return added;
}

std::atomic<bool> asks_for_keep = true;

/// "; before it the wgmma_wait_group<1> at gemm.cuh:66 ended none: ...", or nothing.
std::string explain_idle_wait(const IdleWait& idle) {
  if (!idle.where.line) return "";
  return print("; before it the wgmma_wait_group<%u> at ", idle.groups_left) + place_and_caller(idle.where) +
         " ended none: does it leave too many groups in flight?";
}

/// Sums that nobody adds to any more are read by ordinary code, which a compiler may move. `where` is the end
/// of the time in which they can be read.
void check_kept(Thread& thread, const Accumulator& accumulator, Location where) {
  if (accumulator.kept || !asks_for_keep) return;
  // What is kept of the same wait is what the program waited for, and these sums may lack a wait of their
  // own.
  const bool other_is_kept =
      std::any_of(thread.accumulators.begin(), thread.accumulators.end(), [&](const Accumulator& other) {
        return &other != &accumulator && other.asks_for_keep && other.kept &&
               other.delivered_with == accumulator.delivered_with;
      });
  const std::string place = place_and_caller(accumulator.delivered_at);
  const std::string before = explain_idle_wait(accumulator.idle_wait);
  thread.cluster.fail(
      thread,
      other_is_kept
          ? "the wait at " + place +
                " ended two products, and keep_in_registers followed for the sums of one" +
                (before.empty() ? ": a wait is missing before those of the other are read, or "
                                  "keep_in_registers of them behind this one"
                                : before)
          : "the sums of a wgmma were waited for at " + place +
                ", and no keep_in_registers followed: the compiler may read the registers before that wait",
      where);
}

uint32_t bits_of(const void* a_register) {
  uint32_t bits;
  std::memcpy(&bits, a_register, sizeof bits);
  return bits;
}

bool holds(const Accumulator& accumulator, const uint32_t* values) {
  for (int i = 0; i < accumulator.count; ++i)
    if (bits_of(accumulator.at(i)) != values[i]) return false;
  return true;
}

/// What registers hold while the tensor cores own them: a signalling NaN, which arithmetic makes a quiet one.
/// Thus sums that a thread multiplies in place are found to be written, too.
constexpr uint32_t kInFlight = 0xffbffffd, kComputedFromInFlight = 0xfffffffd;

/// Names registers that a product is added to and that nobody has written, or that were computed from what
/// nobody has written.
void check_written(Thread& thread, const Accumulator& accumulator, Location where) {
  int first = 0, count = 0;
  uint32_t held = 0;
  for (const uint32_t value :
       {kUnwrittenLocal, kComputedFromUnwrittenLocal, kOfUnwrittenMemory, kComputedFromInFlight}) {
    for (int i = accumulator.count; i-- > 0;)
      if (bits_of(accumulator.at(i)) == value) first = i, ++count;
    held = value;
    if (count) break;
  }
  if (!count) return;
  // A stack keeps what calls before have left there, which looks like what somebody has written.
  const std::string others = count == accumulator.count ? print(" and %d more", count - 1)
                             : count > 1 ? print(" and at least %d more of %d", count - 1, accumulator.count)
                                         : "";
  thread.cluster.fail(
      thread,
      print(
          held == kUnwrittenLocal
              ? "wgmma: the product is added to accumulators that were never written (register %d%s): "
                "clear them before the wgmma.fence, or let the first product overwrite them"
          : held == kComputedFromUnwrittenLocal
              ? "wgmma: the product is added to accumulators that were computed from a variable that "
                "nobody has written (register %d%s hold NaN): which variable was multiplied with them, or "
                "added to them, before it got a value?"
          : held != kOfUnwrittenMemory
              ? "wgmma: the product is added to accumulators that were computed from the sums of a "
                "product in flight (register %d%s): which sums were read before their product was waited for?"
              : "wgmma: the product is added to accumulators that hold the NaN of memory that nobody has "
                "written (register %d%s): what was loaded into them, multiplied with them or added to them "
                "before it was written?",
          first, others.c_str()),
      where);
}

/// Names a register that was written between the last fence and the product that is added to it.
void check_untouched_since_fence(Thread& thread, const Accumulator& accumulator, bool half_sums,
                                 Location where) {
  for (int i = 0; i < accumulator.count; ++i) {
    const std::byte* const held = thread.registers_at_fence.find(accumulator.at(i), kRegisterBytes);
    if (!held || bits_of(held) == bits_of(accumulator.at(i))) continue;
    const auto text = [&](const std::byte* a_register) {
      if (half_sums) return print("0x%08x", bits_of(a_register));
      float value;
      std::memcpy(&value, a_register, sizeof value);
      return print("%g", static_cast<double>(value));
    };
    thread.cluster.fail(
        thread,
        print("wgmma: accumulator register %d was written after the wgmma.fence at ", i) +
            to_string(thread.registers_at_fence.where()) + ": there it " +
            (bits_of(held) == kUnwrittenLocal ? "had never been written" : "held " + text(held)) +
            ", now it holds " + text(accumulator.at(i)) +
            ". Only what is written before the fence is sure to reach the product",
        where);
  }
}

/// Names a register of A that was written between the last fence and the product.
void check_a_untouched_since_fence(Thread& thread, const uint32_t* variables, Location where) {
  for (int i = 0; i < 4; ++i) {
    const std::byte* const held = thread.registers_at_fence.find(&variables[i], kRegisterBytes);
    if (thread.wgmma_fences && (!held || bits_of(held) == variables[i])) continue;
    thread.cluster.fail(
        thread,
        print("wgmma: register %d of operand A was written ", i) +
            (thread.wgmma_fences ? "after the wgmma.fence at " + to_string(thread.registers_at_fence.where())
                                 : "without a wgmma.fence") +
            ". Only what is written before the fence is sure to reach the product",
        where);
  }
}

/// Names a register of A that was written while the tensor cores could still read it.
void check_a_untouched(Thread& thread, const RegistersOfA& a, Location where) {
  if (!a.variables) return;
  for (int i = 0; i < 4; ++i) {
    if (a.variables[i] == a.held[i]) continue;
    thread.cluster.fail(thread,
                        print("wgmma: register %d of operand A was written while the product at ", i) +
                            place_and_caller(a.where) +
                            " was in flight: the tensor cores may read it at any time until the wait at " +
                            place_and_caller(where),
                        where);
  }
}

/// The tensor cores take the registers over: the first product is `what`.
void take(Thread& thread, Accumulator& accumulator, const Wgmma& what, Location where) {
  if (!what.accumulate) check_kept(thread, accumulator, where);
  const bool fenced = accumulator.ever_delivered ? thread.wgmma_fences != accumulator.fences_at_delivery
                                                 : thread.wgmma_fences > 0;
  const bool untouched = accumulator.ever_delivered && holds(accumulator, accumulator.value);
  if (!fenced && !untouched) {
    thread.cluster.fail(
        thread, "wgmma: the accumulator registers were written, or first used, without a wgmma.fence", where);
  }
  if (what.accumulate && !accumulator.ever_delivered) check_written(thread, accumulator, where);
  if (what.accumulate && fenced) check_untouched_since_fence(thread, accumulator, what.half_sums, where);
  for (int i = 0; i < accumulator.count; ++i) {
    accumulator.value[i] = bits_of(accumulator.at(i));
    std::memcpy(accumulator.at(i), &kInFlight, kRegisterBytes);
  }
}

/// The thread has waited for the last operation on these registers.
void deliver(Thread& thread, Accumulator& accumulator, Location where) {
  for (int i = 0; i < accumulator.count; ++i) {
    if (bits_of(accumulator.at(i)) != kInFlight) {
      thread.cluster.fail(thread,
                          print("wgmma: accumulator register %d was written while the product at ", i) +
                              place_and_caller(accumulator.issued_at) +
                              " was in flight: the sums belong to the tensor cores until the wait at " +
                              place_and_caller(where) + explain_idle_wait(accumulator.idle_wait),
                          where);
    }
  }
  for (int i = 0; i < accumulator.count; ++i)
    std::memcpy(accumulator.at(i), &accumulator.value[i], kRegisterBytes);
  accumulator.ever_delivered = true;
  accumulator.kept = !accumulator.asks_for_keep;
  accumulator.delivered_at = where;
  accumulator.fences_at_delivery = thread.wgmma_fences;
}

}  // namespace

void check_accumulators_at_exit(Thread& thread) {
  for (const Accumulator& accumulator : thread.accumulators) check_kept(thread, accumulator, {});
}

// --- what a fence covers ------------------------------------------------------------------------------

/// AddressSanitizer would stop memcpy at the guards between variables.
#ifdef CPU_DEVICE_ASAN
__attribute__((no_sanitize("address")))
#endif
void RegistersAtFence::remember(const std::byte* begin, const std::byte* end, Location where) {
  where_ = where;
  begin_ = begin;
  const auto words = static_cast<size_t>(end - begin) / sizeof(uint64_t);
  held_.resize(words * sizeof(uint64_t));
#ifndef CPU_DEVICE_ASAN
  std::memcpy(held_.data(), begin, held_.size());
#else
  const auto* from = reinterpret_cast<const uint64_t*>(begin);
  auto* to = reinterpret_cast<uint64_t*>(held_.data());
  for (size_t i = 0; i < words; ++i) {
    to[i] = from[i];
    asm volatile("" ::: "memory");  // or the compiler would make a memcpy of the loop
  }
#endif
}

const std::byte* RegistersAtFence::find(const void* variable, size_t bytes) const {
  const auto* const first = static_cast<const std::byte*>(variable);
  if (held_.empty() || first < begin_ || first + bytes > begin_ + held_.size()) return nullptr;
  return held_.data() + (first - begin_);
}

// --- the instructions ---------------------------------------------------------------------------------

void wgmma_fence(Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  execute_aligned(thread, "wgmma.fence", where);
  ++thread.wgmma_fences;
  // Above the frame of this function lie those of the kernel.
  const auto* const frame = static_cast<const std::byte*>(__builtin_frame_address(0));
  thread.registers_at_fence.remember(frame, thread.observed.stack_end, where);
}

void wgmma(float* d, int columns, uint64_t a, uint64_t b, bool accumulate, bool b_row_major, Location where,
           bool a_column_major) {
  CPU_DEVICE_NOTE_CALL(where);
  void* sums[kMaxTileN / 2];
  for (int i = 0; i < columns / 2; ++i) sums[i] = d + i;
  Wgmma what;
  what.columns = columns;
  what.a = a;
  what.b = b;
  what.accumulate = accumulate;
  what.a_column_major = a_column_major;
  what.b_row_major = b_row_major;
  wgmma(what, sums, /*is_kept=*/false, where);
}

void wgmma(float* d, int columns, const uint32_t* a, uint64_t b, bool accumulate, bool b_row_major,
           Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  void* sums[kMaxTileN / 2];
  for (int i = 0; i < columns / 2; ++i) sums[i] = d + i;
  Wgmma what;
  what.columns = columns;
  what.a_in_registers = true;
  std::copy_n(a, 4, what.a_registers);
  what.a_variables = a;
  what.b = b;
  what.accumulate = accumulate;
  what.b_row_major = b_row_major;
  wgmma(what, sums, /*is_kept=*/false, where);
}

/// The sums of one product alone may need more registers than a setmaxnreg has left.
static void check_room_for_sums(Thread& thread, unsigned sums, Location where) {
  const Warp& warp = *thread.warp;
  if (!warp.register_changes || sums <= warp.registers) return;
  thread.cluster.fail(
      thread,
      print("wgmma: its sums take %u registers of each thread, which has %u since the setmaxnreg at ", sums,
            warp.registers) +
          own_place(warpgroup_of(thread).register_changes[warp.register_changes - 1].where) +
          ": should this warpgroup ask for more?",
      where);
}

/// Do the threads of a warpgroup ask for the same product? Each has registers of its own.
static bool is_same_product(Wgmma one, const Wgmma& other) {
  std::copy(std::begin(other.a_registers), std::end(other.a_registers), one.a_registers);
  one.a_variables = other.a_variables;
  return one == other;
}

void wgmma(const Wgmma& what, void* const* sums, bool is_kept, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  Block& block = *thread.block;
  if (thread.ids.rank / kWarpgroupThreads * kWarpgroupThreads + kWarpgroupThreads > block.ids.threads) {
    cluster.fail(
        thread,
        with_few_threads(cluster.kernel(), "wgmma: the warpgroup of this thread has fewer than 128 threads"),
        where);
  }
  const int count = what.columns / (what.half_sums ? 4 : 2);
  check_room_for_sums(thread, static_cast<unsigned>(count), where);
  Accumulator& accumulator = accumulator_at(thread, sums, count);
  if (!accumulator.in_flight) take(thread, accumulator, what, where);
  accumulator.asks_for_keep = !is_kept;
  accumulator.issued_at = where;
  ++accumulator.in_flight;
  thread.wgmma_not_waited_for.push_back(&accumulator);
  RegistersOfA& registers_of_a = thread.wgmma_registers_of_a.emplace_back();
  if (what.a_variables) {
    check_a_untouched_since_fence(thread, what.a_variables, where);
    registers_of_a.variables = what.a_variables;
    registers_of_a.where = where;
    std::copy_n(what.a_registers, 4, registers_of_a.held);
  }
  thread.last_wgmma_at = where;

  Warpgroup& warpgroup = warpgroup_of(thread);
  const uint64_t number = thread.wgmma_issued++;
  thread.has_waited_since_wgmma = false;
  thread.arrival_in_flight = {};
  const uint64_t position = number - warpgroup.executed;
  if (position == warpgroup.operations.size()) {
    WgmmaOperation& first = warpgroup.operations.emplace_back();
    first.what = what;
    first.where = where;
    if (what.a_in_registers) {
      first.a_registers.resize(std::size_t{4} * kWarpgroupThreads);
      first.a_variables.resize(kWarpgroupThreads);
    }
  }
  WgmmaOperation& operation = warpgroup.operations[position];
  if (!is_same_product(operation.what, what)) {
    cluster.fail(thread,
                 "wgmma: the threads of one warpgroup pass different descriptors or flags; others were at " +
                     to_string(operation.where),
                 where);
  }
  if (!(operation.where == where)) {
    cluster.fail(thread,
                 "wgmma: the threads of one warpgroup are at different instructions; others were at " +
                     to_string(operation.where),
                 where);
  }
  execute_aligned(thread, "wgmma", where);
  const unsigned rank = thread.ids.rank % kWarpgroupThreads;
  operation.accumulators[rank] = &accumulator;
  if (what.a_in_registers) {
    std::copy_n(what.a_registers, 4, &operation.a_registers[std::size_t{4} * rank]);
    operation.a_variables[rank] = what.a_variables;
  }
  if (RaceChecker* races = cluster.races()) {
    where.outer_call = outer_call(thread, where.call);
    races->issue(operation.race_operation, thread.number, RaceChecker::Queue::warpgroup, Proxy::async,
                 "wgmma", cluster.site(where));
  }
  VirtualClock* const clock = cluster.clock();
  if (clock) operation.issued_at = std::max(operation.issued_at, clock->issue_wgmma(thread.number));
  if (++operation.issued_by < kWarpgroupThreads) return;

  warpgroup.last_race_operation = operation.race_operation;
  if (clock) {
    warpgroup.last_done_at = clock->wgmma(first_thread(block, warpgroup), operation.issued_at,
                                          2.0 * kTileM * kTileK * what.columns);
  }
  if (cluster.lands_now()) execute_until(cluster, block, warpgroup, number + 1);
  cluster.leave_if_failed();
}

void ask_for_no_keep() { asks_for_keep = false; }

void keep_in_registers(const float* d, int count, Location where) {
  for (Accumulator& known : this_thread(where).accumulators) {
    if (known.at(0) == static_cast<const void*>(d) && known.count == count && !known.in_flight)
      known.kept = true;
  }
}

void wgmma_commit_group(Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  Warpgroup& warpgroup = warpgroup_of(thread);
  const uint64_t number = thread.wgmma_committed_groups++;
  thread.wgmma_committed = thread.wgmma_issued;
  if (number == warpgroup.groups.size()) warpgroup.groups.emplace_back().end = thread.wgmma_issued;
  WgmmaGroup& group = warpgroup.groups[number];
  if (group.end != thread.wgmma_issued) {
    cluster.fail(thread, "wgmma.commit_group: the threads of one warpgroup disagree about the group", where);
  }
  execute_aligned(thread, "wgmma.commit_group", where);
  thread.synchronised = true;
  if (++group.commits < kWarpgroupThreads) return;
  group.race_operation = warpgroup.last_race_operation;
  group.done_at = warpgroup.last_done_at;
  warpgroup.committed_groups = number + 1;
  cluster.count_progress();
  for (Thread* waiting : warpgroup.waiting) cluster.wake(*waiting);
  warpgroup.waiting.clear();
}

void wgmma_wait_group(unsigned in_flight, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  Warpgroup& warpgroup = warpgroup_of(thread);
  execute_aligned(thread, "wgmma.wait_group", where);
  if (const RaceChecker* races = cluster.races()) {
    where.outer_call = outer_call(thread, where.call);
    thread.wgmma_wait_before = thread.last_wgmma_wait;
    thread.wgmma_groups_left_before = thread.wgmma_groups_left;
    thread.last_wgmma_wait = {where, races->epoch(thread.number)};
    thread.wgmma_groups_left = in_flight;
  }
  if (thread.wgmma_committed_groups <= in_flight) {
    if (!thread.wgmma_not_waited_for.empty())
      thread.idle_wgmma_wait = {where, in_flight, thread.wgmma_issued};
    return;
  }
  const uint64_t needed = thread.wgmma_committed_groups - in_flight;
  cluster.jitter(thread);
  while (warpgroup.committed_groups < needed) {
    warpgroup.waiting.push_back(&thread);
    cluster.park(thread, {WaitKind::wgmma, nullptr, needed,
                          "wgmma.wait_group: not all four warps have committed the group", where});
  }
  const WgmmaGroup& group = warpgroup.groups[needed - 1];
  execute_until(cluster, *thread.block, warpgroup, group.end);
  cluster.leave_if_failed();
  thread.synchronised = true;
  thread.has_waited_since_wgmma = true;
  thread.arrival_in_flight = {};
  if (RaceChecker* races = cluster.races()) {
    if (group.race_operation.started()) races->acquire(thread.number, group.race_operation);
  }
  if (VirtualClock* clock = cluster.clock()) clock->wait_until(thread.number, group.done_at, "wgmma");
  const IdleWait last_idle_wait = std::exchange(thread.idle_wgmma_wait, {});
  if (thread.wgmma_waited_for >= group.end && !thread.wgmma_not_waited_for.empty())
    thread.idle_wgmma_wait = {where, in_flight, thread.wgmma_issued};
  for (; thread.wgmma_waited_for < group.end; ++thread.wgmma_waited_for) {
    Accumulator& accumulator = *thread.wgmma_not_waited_for.front();
    thread.wgmma_not_waited_for.pop_front();
    check_a_untouched(thread, thread.wgmma_registers_of_a.front(), where);
    thread.wgmma_registers_of_a.pop_front();
    if (--accumulator.in_flight) continue;
    accumulator.idle_wait = thread.wgmma_waited_for < last_idle_wait.issued ? last_idle_wait : IdleWait{};
    deliver(thread, accumulator, where);
    accumulator.delivered_with = group.end;
  }
}

void note_arrival_in_flight(Thread& thread, const Mbarrier& barrier, Location where) {
  if (!thread.wgmma_not_waited_for.empty() && !thread.has_waited_since_wgmma)
    thread.arrival_in_flight = {&barrier, where};
}

}  // namespace cpu_device
