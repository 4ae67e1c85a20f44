/// @file
/// wgmma: the asynchronous tensor-core instruction of a warpgroup.
///
/// From issue to wait_group the tensor cores own the accumulator registers. Meanwhile they hold NaN here, so
/// that whoever reads them too early computes NaN, and whoever writes them is found out.
#include "common/cpu_device/kernel/engine_wgmma.hpp"

#include <algorithm>
#include <cstring>

#include "common/cpu_device/base/bfloat16.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_reports.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"

namespace cpu_device {
namespace {

constexpr int kTileM = 64, kTileK = 16, kMaxTileN = 256;
constexpr uint32_t kChunkBytes = 16;  ///< the unit that the swizzle moves: 8 elements
constexpr int kChunk = 8;
constexpr uint64_t kSwizzle128 = 1;  ///< in bits 62-63 of a descriptor

Warpgroup& warpgroup_of(Thread& thread) {
  return thread.block->warpgroups[thread.ids.rank / kWarpgroupThreads];
}

unsigned first_thread(const Block& block, const Warpgroup& warpgroup) {
  const auto index = static_cast<unsigned>(&warpgroup - block.warpgroups.data());
  return block.ids.rank_in_cluster * block.ids.threads + index * kWarpgroupThreads;
}

// --- operands -----------------------------------------------------------------------------------------

/// A matrix descriptor, taken apart (PTX ISA, "Matrix Descriptor Format"). All in bytes.
struct Descriptor {
  uint32_t start, leading, stride;
  uint64_t swizzle;

  explicit Descriptor(uint64_t bits)
      : start(static_cast<uint32_t>(bits & 0x3fff) << 4),
        leading(static_cast<uint32_t>(bits >> 16 & 0x3fff) << 4),
        stride(static_cast<uint32_t>(bits >> 32 & 0x3fff) << 4),
        swizzle(bits >> 62) {}
};

/// Reads operands of one operation from the async view of its block.
class OperandReader {
 public:
  OperandReader(Cluster& cluster, Block& block, const WgmmaOperation& operation)
      : cluster_(cluster), block_(block), operation_(operation), memory_(block.shared.read_async_view()) {}

  /// Eight elements at a logical address; the swizzle exchanges 16-byte chunks within 1024 bytes.
  /// @return false, and a failure is recorded, if they lie outside.
  bool read(uint32_t address, float (&values)[kChunk]) {
    const uint32_t swizzled = address ^ (address >> 3 & 0x70);
    const uint32_t offset = swizzled - kSharedWindowBase;
    if (swizzled < kSharedWindowBase || offset + kChunkBytes > block_.shared.bytes()) {
      cluster_.record_failure(
          current_thread,
          print("wgmma: a descriptor reaches outside of the block's shared memory (0x%x)", address),
          operation_.where);
      return false;
    }
    uint16_t bits[kChunk];
    std::memcpy(bits, memory_ + offset, sizeof bits);
    cluster_.unwritten_reads().note(block_, offset, memory_, "wgmma", operation_.where);
    for (int i = 0; i < kChunk; ++i) values[i] = bfloat16_to_float(bits[i]);
    if (RaceChecker* races = cluster_.races()) {
      races->access(operation_.race_operation, block_.ids.rank_in_cluster, offset, kChunkBytes,
                    /*write=*/false);
    }
    return true;
  }

 private:
  Cluster& cluster_;
  Block& block_;
  const WgmmaOperation& operation_;
  const std::byte* memory_;
};

/// A [64, 16], k contiguous: rows of 128 bytes, `stride` bytes from one group of 8 rows to the next.
bool read_a(OperandReader& reader, const Descriptor& at, float (&a)[kTileM][kTileK]) {
  for (uint32_t row = 0; row < kTileM; ++row) {
    for (uint32_t half = 0; half < 2; ++half) {
      float values[kChunk];
      const uint32_t address =
          at.start + row / 8 * at.stride + row % 8 * kSwizzleRowBytes + half * kChunkBytes;
      if (!reader.read(address, values)) return false;
      std::copy(values, values + kChunk, &a[row][half * kChunk]);
    }
  }
  return true;
}

/// B [16, columns] with k contiguous: stored like A, one row for each column.
template <int kColumns>
bool read_b_column_major(OperandReader& reader, const Descriptor& at, float (&b)[kTileK][kColumns]) {
  for (uint32_t column = 0; column < kColumns; ++column) {
    for (uint32_t half = 0; half < 2; ++half) {
      float values[kChunk];
      const uint32_t address =
          at.start + column / 8 * at.stride + column % 8 * kSwizzleRowBytes + half * kChunkBytes;
      if (!reader.read(address, values)) return false;
      for (uint32_t k = 0; k < kChunk; ++k) b[half * kChunk + k][column] = values[k];
    }
  }
  return true;
}

/// B [16, columns] with columns contiguous: panels of 64 columns, `leading` bytes apart; in a panel a row of
/// k is 128 bytes, and `stride` bytes lie between groups of 8 rows.
template <int kColumns>
bool read_b_row_major(OperandReader& reader, const Descriptor& at, float (&b)[kTileK][kColumns]) {
  constexpr uint32_t kPanel = 64;
  for (uint32_t k = 0; k < kTileK; ++k) {
    for (uint32_t column = 0; column < kColumns; column += kChunk) {
      float values[kChunk];
      const uint32_t address = at.start + column / kPanel * at.leading + k / 8 * at.stride +
                               k % 8 * kSwizzleRowBytes + column % kPanel * 2;
      if (!reader.read(address, values)) return false;
      std::copy(values, values + kChunk, &b[k][column]);
    }
  }
  return true;
}

// --- execution ----------------------------------------------------------------------------------------

/// Row r of the tile lives in four threads; thread c of them holds columns 8j + 2c and 8j + 2c + 1.
template <int kColumns, class Function>
void for_each_fragment(WgmmaOperation& operation, int row, Function&& function) {
  const int upper_or_lower = row % 16 / 8;
  for (int c = 0; c < 4; ++c) {
    float* value = operation.accumulators[row / 16 * 32 + row % 8 * 4 + c]->value;
    for (int j = 0; j < kColumns / 8; ++j) {
      function(value[4 * j + 2 * upper_or_lower], 8 * j + 2 * c);
      function(value[4 * j + 2 * upper_or_lower + 1], 8 * j + 2 * c + 1);
    }
  }
}

/// So many sums stay in registers while k goes on.
constexpr int kInRegisters = 16;

/// d += a * b, for kInRegisters columns of b, whose rows lie `columns` apart.
void add_products(const float (&a)[kTileK], const float* b, int columns, float* d) {
  float sums[kInRegisters];
  std::copy(d, d + kInRegisters, sums);
  for (int k = 0; k < kTileK; ++k) {
#pragma GCC unroll kInRegisters
    for (int i = 0; i < kInRegisters; ++i) sums[i] += a[k] * b[k * columns + i];
  }
  std::copy(sums, sums + kInRegisters, d);
}

template <int kColumns>
void execute(Cluster& cluster, Block& block, WgmmaOperation& operation) {
  float a[kTileM][kTileK], b[kTileK][kColumns];
  const Descriptor a_at(operation.a), b_at(operation.b);
  if (a_at.swizzle != kSwizzle128 || b_at.swizzle != kSwizzle128) {
    cluster.record_failure(current_thread, "wgmma: a descriptor without the 128-byte swizzle",
                           operation.where);
    return;
  }
  OperandReader reader(cluster, block, operation);
  const bool complete =
      read_a(reader, a_at, a) &&
      (operation.b_row_major ? read_b_row_major(reader, b_at, b) : read_b_column_major(reader, b_at, b));
  if (!complete) return;
  for (int row = 0; row < kTileM; ++row) {
    float d[kColumns] = {};
    if (operation.accumulate) {
      for_each_fragment<kColumns>(operation, row, [&](float value, int column) { d[column] = value; });
    }
    for (int column = 0; column < kColumns; column += kInRegisters)
      add_products(a[row], &b[0][column], kColumns, &d[column]);
    for_each_fragment<kColumns>(operation, row, [&](float& value, int column) { value = d[column]; });
  }
  cluster.totals().mma_flops += uint64_t{2} * kTileM * kColumns * kTileK;
  cluster.accesses().bulk_access(Space::shared, 0, sizeof(uint16_t) * kTileM * kTileK, /*write=*/false);
  cluster.accesses().bulk_access(Space::shared, 0, sizeof(uint16_t) * kColumns * kTileK, /*write=*/false);
}

/// Everything before operation number `end` takes effect.
void execute_until(Cluster& cluster, Block& block, Warpgroup& warpgroup, uint64_t end) {
  while (warpgroup.executed < end && !cluster.failed()) {
    WgmmaOperation& operation = warpgroup.operations.front();
    switch (operation.columns) {
      case 64:
        execute<64>(cluster, block, operation);
        break;
      case 128:
        execute<128>(cluster, block, operation);
        break;
      case 192:
        execute<192>(cluster, block, operation);
        break;
      case 256:
        execute<256>(cluster, block, operation);
        break;
    }
    cluster.count_work();
    warpgroup.operations.pop_front();
    ++warpgroup.executed;
  }
}

// --- accumulators -------------------------------------------------------------------------------------

Accumulator& accumulator_at(Thread& thread, float* registers, int count) {
  for (Accumulator& known : thread.accumulators) {
    if (known.registers == registers && known.count == count) return known;
  }
  Accumulator& added = thread.accumulators.emplace_back();
  added.registers = registers;
  added.count = count;
  return added;
}

size_t bytes_of(const Accumulator& accumulator) {
  return sizeof(float) * static_cast<size_t>(accumulator.count);
}

/// Sums that nobody adds to any more are read by ordinary code, which a compiler may move. `where` is the end
/// of the time in which they can be read.
void check_kept(Thread& thread, const Accumulator& accumulator, Location where) {
  if (accumulator.kept) return;
  thread.cluster.fail(thread,
                      "the sums of a wgmma were waited for at " + to_string(accumulator.delivered_at) +
                          ", and no keep_in_registers followed: the compiler may read the registers before "
                          "that wait",
                      where);
}

uint32_t bits_at(const void* registers, int i) {
  uint32_t bits;
  std::memcpy(&bits, static_cast<const std::byte*>(registers) + sizeof bits * static_cast<size_t>(i),
              sizeof bits);
  return bits;
}

/// No arithmetic makes this NaN of numbers: local variables hold it until they are written.
constexpr uint32_t kNeverWritten = ~uint32_t{0};
constexpr uint32_t kInFlight = ~uint32_t{0};  ///< what registers hold while the tensor cores own them

/// Names registers that a product is added to and that nobody has written.
void check_written(Thread& thread, const Accumulator& accumulator, Location where) {
  const auto is_written = [&](int i) { return bits_at(accumulator.registers, i) != kNeverWritten; };
  int first = 0, count = 0;
  for (int i = accumulator.count; i-- > 0;) {
    if (!is_written(i)) first = i, ++count;
  }
  if (!count) return;
  const std::string others = count > 1 ? print(" and %d more", count - 1) : "";
  thread.cluster.fail(
      thread,
      print("wgmma: the product is added to accumulators that were never written (register %d%s): "
            "clear them before the wgmma.fence, or let the first product overwrite them",
            first, others.c_str()),
      where);
}

/// Names a register that was written between the last fence and the product that is added to it.
void check_untouched_since_fence(Thread& thread, const Accumulator& accumulator, Location where) {
  const std::byte* const held = thread.registers_at_fence.find(accumulator.registers, bytes_of(accumulator));
  if (!held || std::memcmp(held, accumulator.registers, bytes_of(accumulator)) == 0) return;
  int i = 0;
  while (bits_at(held, i) == bits_at(accumulator.registers, i)) ++i;
  float then;
  std::memcpy(&then, held + sizeof then * static_cast<size_t>(i), sizeof then);
  const std::string before = bits_at(held, i) == kNeverWritten ? "had never been written"
                                                               : print("held %g", static_cast<double>(then));
  thread.cluster.fail(thread,
                      print("wgmma: accumulator register %d was written after the wgmma.fence at %s: there "
                            "it %s, now it holds %g. "
                            "Only what is written before the fence is sure to reach the product",
                            i, to_string(thread.registers_at_fence.where()).c_str(), before.c_str(),
                            static_cast<double>(accumulator.registers[i])),
                      where);
}

/// The tensor cores take the registers over. @param accumulate the first product is added to them
void take(Thread& thread, Accumulator& accumulator, bool accumulate, Location where) {
  if (!accumulate) check_kept(thread, accumulator, where);
  const bool fenced = accumulator.ever_delivered ? thread.wgmma_fences != accumulator.fences_at_delivery
                                                 : thread.wgmma_fences > 0;
  const bool untouched = accumulator.ever_delivered &&
                         std::memcmp(accumulator.value, accumulator.registers, bytes_of(accumulator)) == 0;
  if (!fenced && !untouched) {
    thread.cluster.fail(
        thread, "wgmma: the accumulator registers were written, or first used, without a wgmma.fence", where);
  }
  if (accumulate && !accumulator.ever_delivered) check_written(thread, accumulator, where);
  if (accumulate && fenced) check_untouched_since_fence(thread, accumulator, where);
  std::memcpy(accumulator.value, accumulator.registers, bytes_of(accumulator));
  std::memset(accumulator.registers, 0xff, bytes_of(accumulator));
}

/// The thread has waited for the last operation on these registers.
void deliver(Thread& thread, Accumulator& accumulator, Location where) {
  for (int i = 0; i < accumulator.count; ++i) {
    if (bits_at(accumulator.registers, i) != kInFlight) {
      thread.cluster.fail(
          thread, print("accumulator register %d was written while a wgmma on it was in flight", i), where);
    }
  }
  std::memcpy(accumulator.registers, accumulator.value, bytes_of(accumulator));
  accumulator.ever_delivered = true;
  accumulator.kept = false;
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

void wgmma(float* d, int columns, uint64_t a, uint64_t b, bool accumulate, bool b_row_major, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  Block& block = *thread.block;
  static_assert(sizeof(Accumulator::value) >= sizeof(float) * kMaxTileN / 2);
  if (thread.ids.rank / kWarpgroupThreads * kWarpgroupThreads + kWarpgroupThreads > block.ids.threads) {
    cluster.fail(thread, "wgmma: the warpgroup of this thread has fewer than 128 threads", where);
  }
  Accumulator& accumulator = accumulator_at(thread, d, columns / 2);
  if (!accumulator.in_flight) take(thread, accumulator, accumulate, where);
  ++accumulator.in_flight;
  thread.wgmma_not_waited_for.push_back(&accumulator);
  thread.last_wgmma_at = where;

  Warpgroup& warpgroup = warpgroup_of(thread);
  const uint64_t number = thread.wgmma_issued++;
  thread.has_waited_since_wgmma = false;
  thread.arrival_in_flight = {};
  const uint64_t position = number - warpgroup.executed;
  if (position == warpgroup.operations.size()) {
    WgmmaOperation& first = warpgroup.operations.emplace_back();
    first.a = a;
    first.b = b;
    first.columns = columns;
    first.accumulate = accumulate;
    first.b_row_major = b_row_major;
    first.where = where;
  }
  WgmmaOperation& operation = warpgroup.operations[position];
  if (operation.a != a || operation.b != b || operation.columns != columns ||
      operation.accumulate != accumulate || operation.b_row_major != b_row_major) {
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
  operation.accumulators[thread.ids.rank % kWarpgroupThreads] = &accumulator;
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
    warpgroup.last_done_at =
        clock->wgmma(first_thread(block, warpgroup), operation.issued_at, 2.0 * kTileM * kTileK * columns);
  }
  if (cluster.lands_now()) execute_until(cluster, block, warpgroup, number + 1);
  cluster.leave_if_failed();
}

void keep_in_registers(const float* d, int count, Location where) {
  for (Accumulator& known : this_thread(where).accumulators) {
    if (known.registers == d && known.count == count && !known.in_flight) known.kept = true;
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
  if (thread.wgmma_committed_groups <= in_flight) return;
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
  for (; thread.wgmma_waited_for < group.end; ++thread.wgmma_waited_for) {
    Accumulator& accumulator = *thread.wgmma_not_waited_for.front();
    thread.wgmma_not_waited_for.pop_front();
    if (--accumulator.in_flight == 0) deliver(thread, accumulator, where);
  }
}

void note_arrival_in_flight(Thread& thread, const Mbarrier& barrier, Location where) {
  if (!thread.wgmma_not_waited_for.empty() && !thread.has_waited_since_wgmma)
    thread.arrival_in_flight = {&barrier, where};
}

}  // namespace cpu_device
