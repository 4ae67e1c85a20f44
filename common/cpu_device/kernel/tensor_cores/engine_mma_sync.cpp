/// @file
/// The tensor-core instructions of a warp: ldmatrix, stmatrix and mma.sync.
#include <algorithm>
#include <cstring>

#include "common/cpu_device/base/bfloat16.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"
#include "common/cpu_device/kernel/synchronisation/engine_warp.hpp"

namespace cpu_device {
namespace {

constexpr int kMatrices = 4;    ///< of ldmatrix.x4 and stmatrix.x4
constexpr int kMatrixSize = 8;  ///< rows, and columns of 16 bits
constexpr uint32_t kRowBytes = 16;
constexpr uint64_t kMmaFlops = 2 * 16 * 8 * 16;

const std::byte* row_address(const Thread& lane) { return reinterpret_cast<const std::byte*>(lane.slots[0]); }
uint32_t* registers_of(const Thread& lane) { return reinterpret_cast<uint32_t*>(lane.slots[1]); }

/// The lane's row, and its four registers, for ldmatrix and stmatrix.
void pass_row(Thread& thread, const void* row, const uint32_t* registers, const char* what, Location where) {
  shared_offset(thread, row, kRowBytes, what, where);
  if (reinterpret_cast<uintptr_t>(row) % kRowBytes) {
    thread.cluster.fail(thread, std::string(what) + " of a row that is not 16-byte aligned", where);
  }
  thread.slots[0] = reinterpret_cast<uintptr_t>(row);
  thread.slots[1] = reinterpret_cast<uintptr_t>(registers);
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
bool holds_what_was_never_written(const float* d) {
  return std::any_of(d, d + 4, [](const float& x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits == ~uint32_t{0};
  });
}

}  // namespace

void ldmatrix_x4(uint32_t* registers, const void* row, bool transposed, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  pass_row(thread, row, registers, "ldmatrix", where);
  execute_together(thread, ~0u, Meeting::aligned, "ldmatrix", where, [&](Warp& warp, uint32_t) {
    for (int matrix = 0; matrix < kMatrices; ++matrix) {
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

void stmatrix_x4(void* row, const uint32_t* registers, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  pass_row(thread, row, registers, "stmatrix", where);
  execute_together(thread, ~0u, Meeting::aligned, "stmatrix", where, [&](Warp& warp, uint32_t) {
    for (int matrix = 0; matrix < kMatrices; ++matrix) {
      uint32_t m[kMatrixSize][kMatrixSize / 2];  // pairs of elements
      for (int lane = 0; lane < 32; ++lane) {
        m[lane / 4][lane % 4] = registers_of(*warp.lanes[lane])[matrix];
      }
      for (int i = 0; i < kMatrixSize; ++i) {
        const auto offset = row_address(*warp.lanes[matrix * kMatrixSize + i]) - warp.block->shared.generic();
        std::memcpy(warp.block->shared.generic() + offset, m[i], kRowBytes);
      }
      observe_matrix(cluster, warp, matrix, /*write=*/true, where);
    }
  });
}

void mma_m16n8k16(float* d, const uint32_t* a, uint32_t b0, uint32_t b1, Location where) {
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  if (holds_what_was_never_written(d)) {
    cluster.fail(thread,
                 "mma.sync: the product is added to accumulators that were never written: clear them before",
                 where);
  }
  thread.slots[0] = reinterpret_cast<uintptr_t>(d);
  thread.slots[1] = reinterpret_cast<uintptr_t>(a);
  thread.slots[2] = b0;
  thread.slots[3] = b1;
  execute_together(thread, ~0u, Meeting::aligned, "mma.sync", where, [&](Warp& warp, uint32_t) {
    float a_tile[16][16], b_tile[16][8], d_tile[16][8];
    const auto low = [](uint64_t pair) { return bfloat16_to_float(static_cast<uint16_t>(pair)); };
    const auto high = [](uint64_t pair) { return bfloat16_to_float(static_cast<uint16_t>(pair >> 16)); };
    // Register q of A holds rows 8 * (q % 2) and columns 8 * (q / 2) on; of B rows 8 * q on.
    for (int lane = 0; lane < 32; ++lane) {
      const Thread& from = *warp.lanes[lane];
      const int i = lane / 4, j = lane % 4 * 2;
      const auto* lane_a = reinterpret_cast<const uint32_t*>(from.slots[1]);
      const auto* lane_d = reinterpret_cast<const float*>(from.slots[0]);
      for (int q = 0; q < 4; ++q) {
        a_tile[i + 8 * (q % 2)][j + 8 * (q / 2)] = low(lane_a[q]);
        a_tile[i + 8 * (q % 2)][j + 8 * (q / 2) + 1] = high(lane_a[q]);
        d_tile[i + 8 * (q / 2)][j + q % 2] = lane_d[q];
      }
      for (int q = 0; q < 2; ++q) {
        b_tile[j + 8 * q][i] = low(from.slots[2 + q]);
        b_tile[j + 8 * q + 1][i] = high(from.slots[2 + q]);
      }
    }
    for (int i = 0; i < 16; ++i) {
      for (int k = 0; k < 16; ++k) {
        for (int j = 0; j < 8; ++j) d_tile[i][j] += a_tile[i][k] * b_tile[k][j];
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      const int i = lane / 4, j = lane % 4 * 2;
      auto* lane_d = reinterpret_cast<float*>(warp.lanes[lane]->slots[0]);
      for (int q = 0; q < 4; ++q) lane_d[q] = d_tile[i + 8 * (q / 2)][j + q % 2];
    }
    cluster.totals().mma_flops += kMmaFlops;
    cluster.count_work();
    if (VirtualClock* clock = cluster.clock()) clock->mma_sync(thread.number, static_cast<double>(kMmaFlops));
  });
}

}  // namespace cpu_device
