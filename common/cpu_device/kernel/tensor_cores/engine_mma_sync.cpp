/// @file
/// The tensor-core instructions of a warp: ldmatrix, stmatrix and mma.sync.
#include <algorithm>
#include <cstring>

#include "common/cpu_device/base/float16.hpp"
#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/kernel/synchronisation/engine_warp.hpp"
#include "common/cpu_device/observe/hooks.hpp"

namespace cpu_device {
namespace {

constexpr int kMatrixSize = 8;  ///< rows, and columns of 16 bits
constexpr uint32_t kRowBytes = 16;

const std::byte* row_address(const Thread& lane) { return reinterpret_cast<const std::byte*>(lane.slots[0]); }
uint32_t* registers_of(const Thread& lane) { return reinterpret_cast<uint32_t*>(lane.slots[1]); }

/// The lane's row, if it is one of 8 `matrices`, and its registers, for ldmatrix and stmatrix.
void pass_row(Thread& thread, const void* row, const uint32_t* registers, int matrices, const char* what,
              Location where) {
  thread.slots[1] = reinterpret_cast<uintptr_t>(registers);
  if (thread.lane >= static_cast<unsigned>(matrices * kMatrixSize)) return;
  shared_offset(thread, row, kRowBytes, what, where);
  if (reinterpret_cast<uintptr_t>(row) % kRowBytes) {
    thread.cluster.fail(thread, std::string(what) + " of a row that is not 16-byte aligned", where);
  }
  thread.slots[0] = reinterpret_cast<uintptr_t>(row);
}

/// Counts and checks the access to one 8x8 matrix, whose rows eight lanes point to.
void observe_matrix(Cluster& cluster, Warp& warp, int matrix, bool write, Location where) {
  LaneAccess rows[kMatrixSize];
  for (int i = 0; i < kMatrixSize; ++i) {
    const Thread& lane = *warp.lanes[matrix * kMatrixSize + i];
    const auto offset = static_cast<uint64_t>(row_address(lane) - warp.block->shared.generic());
    rows[i] = {offset, kRowBytes};
    if (RaceChecker* races = cluster.races()) {
      if (!where.outer_call) where.outer_call = outer_call(*current_thread, where.call);
      races->access(lane.number, warp.block->ids.rank_in_cluster, offset, kRowBytes, write,
                    write ? "stmatrix" : "ldmatrix", cluster.site(where));
    }
  }
  cluster.accesses().warp_access(Space::shared, rows, kMatrixSize, write);
}

/// Accumulators hold this NaN until they are written; no arithmetic makes it of numbers.
bool holds_what_was_never_written(const MmaSync& operands) {
  return std::any_of(operands.c, operands.c + (operands.half_sums ? 2 : 4),
                     [](uint32_t bits) { return bits == kUnwrittenLocal; });
}
/// Were accumulators computed from a local variable, or taken from memory, that nobody has written?
bool holds_what_was_computed_from_that(const MmaSync& operands) {
  return std::any_of(operands.c, operands.c + (operands.half_sums ? 2 : 4), [](uint32_t bits) {
    return bits == kComputedFromUnwrittenLocal || bits == kOfUnwrittenMemory;
  });
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
uint32_t register_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// A of m16n8k16, or of k8: a register holds two neighbours, or with tf32 one element.
struct Tiles {
  float a[16][16], b[16][8], d[16][8];
};

/// Register q of A holds rows 8 * (q % 2) and columns 8 * (q / 2) on; of B rows 8 * q on.
void take_pairs(Tiles& tiles, const MmaSync& from, int lane) {
  const auto element = [&](uint32_t bits) {
    const auto half = static_cast<uint16_t>(bits);
    return from.input == MmaInput::f16 ? float16_to_float(half) : bfloat16_to_float(half);
  };
  const int i = lane / 4, j = lane % 4 * 2;
  for (int q = 0; q < from.depth / 4; ++q) {
    tiles.a[i + 8 * (q % 2)][j + 8 * (q / 2)] = element(from.a[q]);
    tiles.a[i + 8 * (q % 2)][j + 8 * (q / 2) + 1] = element(from.a[q] >> 16);
  }
  for (int q = 0; q < from.depth / 8; ++q) {
    tiles.b[j + 8 * q][i] = element(from.b[q]);
    tiles.b[j + 8 * q + 1][i] = element(from.b[q] >> 16);
  }
}

/// tf32 is a float of which the last 13 bits are not looked at; a register holds one, for each 4 of k.
void take_tf32(Tiles& tiles, const MmaSync& from, int lane) {
  const auto element = [](uint32_t bits) { return float_of(bits & ~uint32_t{0x1fff}); };
  const int i = lane / 4, j = lane % 4;
  for (int q = 0; q < from.depth / 2; ++q) tiles.a[i + 8 * (q % 2)][j + 4 * (q / 2)] = element(from.a[q]);
  for (int q = 0; q < from.depth / 4; ++q) tiles.b[j + 4 * q][i] = element(from.b[q]);
}

void take_sums(Tiles& tiles, const MmaSync& from, int lane) {
  const int i = lane / 4, j = lane % 4 * 2;
  for (int q = 0; q < 4; ++q) {
    float& to = tiles.d[i + 8 * (q / 2)][j + q % 2];
    to = from.half_sums ? float16_to_float(static_cast<uint16_t>(from.c[q / 2] >> 16 * (q % 2)))
                        : float_of(from.c[q]);
  }
}

void give_sums(const Tiles& tiles, MmaSync& to, int lane) {
  const int i = lane / 4, j = lane % 4 * 2;
  for (int half = 0; half < 2; ++half) {
    const float* const d = &tiles.d[i + 8 * half][j];
    if (to.half_sums) {
      to.d[half] = float_to_float16(d[0]) | uint32_t{float_to_float16(d[1])} << 16;
    } else {
      to.d[2 * half] = register_of(d[0]);
      to.d[2 * half + 1] = register_of(d[1]);
    }
  }
}

}  // namespace

void ldmatrix_x4(uint32_t* registers, const void* row, bool transposed, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  ldmatrix(registers, 4, row, transposed, where);
}

void ldmatrix(uint32_t* registers, int matrices, const void* row, bool transposed, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  pass_row(thread, row, registers, matrices, "ldmatrix", where);
  execute_together(thread, ~0u, Meeting::aligned, "ldmatrix", where, [&](Warp& warp, uint32_t) {
    for (int matrix = 0; matrix < matrices; ++matrix) {
      uint16_t m[kMatrixSize][kMatrixSize];
      for (int i = 0; i < kMatrixSize; ++i) {
        const std::byte* const address = row_address(*warp.lanes[matrix * kMatrixSize + i]);
        std::memcpy(m[i], address, kRowBytes);
        const std::byte* const memory = warp.block->shared.generic();
        cluster.unwritten_reads().note(*warp.block, static_cast<size_t>(address - memory), memory, "ldmatrix",
                                       where);
      }
      for (int lane = 0; lane < 32; ++lane) {
        const int i = lane / 4, j = lane % 4 * 2;
        const uint32_t low = transposed ? m[j][i] : m[i][j];
        const uint32_t high = transposed ? m[j + 1][i] : m[i][j + 1];
        registers_of(*warp.lanes[lane])[matrix] = low | high << 16;
      }
      observe_matrix(cluster, warp, matrix, /*write=*/false, where);
    }
  });
}

void stmatrix_x4(void* row, const uint32_t* registers, bool transposed, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  stmatrix(row, registers, 4, transposed, where);
}

void stmatrix(void* row, const uint32_t* registers, int matrices, bool transposed, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  pass_row(thread, row, registers, matrices, "stmatrix", where);
  if (thread.lane == 0) {
    const Unobserved unobserved;
    cluster.moved_tiles().note_staging(where, thread.warp->index);
  }
  execute_together(thread, ~0u, Meeting::aligned, "stmatrix", where, [&](Warp& warp, uint32_t) {
    std::vector<uint8_t>& staged_by = warp.block->staged_by;
    staged_by.resize(warp.block->shared.bytes() / kRowBytes + 1);
    for (int matrix = 0; matrix < matrices; ++matrix) {
      uint16_t m[kMatrixSize][kMatrixSize];
      for (int lane = 0; lane < 32; ++lane) {
        const int i = lane / 4, j = lane % 4 * 2;
        const uint32_t pair = registers_of(*warp.lanes[lane])[matrix];
        (transposed ? m[j][i] : m[i][j]) = static_cast<uint16_t>(pair);
        (transposed ? m[j + 1][i] : m[i][j + 1]) = static_cast<uint16_t>(pair >> 16);
      }
      for (int i = 0; i < kMatrixSize; ++i) {
        const auto offset = row_address(*warp.lanes[matrix * kMatrixSize + i]) - warp.block->shared.generic();
        std::memcpy(warp.block->shared.generic() + offset, m[i], kRowBytes);
        staged_by[static_cast<size_t>(offset) / kRowBytes] = static_cast<uint8_t>(warp.index + 1);
      }
      observe_matrix(cluster, warp, matrix, /*write=*/true, where);
    }
  });
}

void mma_m16n8k16(float* d, const uint32_t* a, uint32_t b0, uint32_t b1, Location where) {
  MmaSync operands;
  std::copy(a, a + 4, operands.a);
  operands.b[0] = b0;
  operands.b[1] = b1;
  std::memcpy(operands.c, d, sizeof operands.c);
  mma_sync(operands, where);
  std::memcpy(d, operands.d, sizeof operands.d);
}

void mma_sync(MmaSync& operands, Location where) {
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  if (holds_what_was_never_written(operands)) {
    cluster.fail(thread,
                 "mma.sync: the product is added to accumulators that were never written: clear them before",
                 where);
  }
  if (holds_what_was_computed_from_that(operands)) {
    cluster.fail(thread,
                 "mma.sync: the product is added to accumulators that hold NaN, taken or computed from what "
                 "nobody has written",
                 where);
  }
  thread.slots[0] = reinterpret_cast<uintptr_t>(&operands);
  execute_together(thread, ~0u, Meeting::aligned, "mma.sync", where, [&](Warp& warp, uint32_t) {
    const auto of = [&](int lane) -> MmaSync& {
      return *reinterpret_cast<MmaSync*>(warp.lanes[lane]->slots[0]);
    };
    Tiles tiles;
    for (int lane = 0; lane < 32; ++lane) {
      of(lane).input == MmaInput::tf32 ? take_tf32(tiles, of(lane), lane) : take_pairs(tiles, of(lane), lane);
      take_sums(tiles, of(lane), lane);
    }
    for (int i = 0; i < 16; ++i) {
      for (int k = 0; k < operands.depth; ++k) {
        for (int j = 0; j < 8; ++j) tiles.d[i][j] += tiles.a[i][k] * tiles.b[k][j];
      }
    }
    for (int lane = 0; lane < 32; ++lane) give_sums(tiles, of(lane), lane);
    const uint64_t flops = uint64_t{2} * 16 * 8 * static_cast<uint64_t>(operands.depth);
    cluster.totals().mma_flops += flops;
    cluster.count_work();
    if (VirtualClock* clock = cluster.clock()) clock->mma_sync(thread.number, static_cast<double>(flops));
  });
}

void execute_as_warp(const char* what, void* own, const std::function<void(void* const (&)[32])>& work,
                     Location where, uint64_t flops) {
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  thread.slots[0] = reinterpret_cast<uintptr_t>(own);
  execute_together(thread, ~0u, Meeting::aligned, what, where, [&](Warp& warp, uint32_t) {
    void* lanes[kWarpLanes] = {};
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      if (warp.lanes[lane]) lanes[lane] = reinterpret_cast<void*>(warp.lanes[lane]->slots[0]);
    }
    {
      const Unobserved nobody;  // `work` is of a header, and reads what lies on the stacks of other lanes
      work(lanes);
    }
    if (!flops) return;
    cluster.totals().mma_flops += flops;
    cluster.count_work();
    if (VirtualClock* clock = cluster.clock()) clock->mma_sync(thread.number, static_cast<double>(flops));
  });
}

}  // namespace cpu_device
