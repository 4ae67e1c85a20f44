/// @file
/// What TMA takes to bring boxes to shared memory: to ask for them, to wait for them, and when loads overlap.
#include "common/cuda/tensor_map.hpp"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/parts/groups.hpp"
#include "common/parts/measured_gpu.cuh"
#include "common/ptx/elect.cuh"
#include "common/ptx/tma.cuh"

namespace ladder::parts {
namespace {

using Box = SwizzledTile<64, 64>;  // 8 KB
constexpr int kMostBoxes = 16;
constexpr int kMostPlaces =
    24;  // 192 KB: larger loads begin again at the first place, since nobody reads them

/// Rows of 2 bytes times kColumns, of which a block reads 64 or 128. In L2 a block reads the same kWindow
/// columns again and again: 128 KB of its own, 17 MB for all blocks. From memory it goes on by kWindow
/// columns each time.
constexpr int kWindow = 1024, kColumns = kWindow * kRounds;

struct BoxMaps {
  CUtensorMap tall;  // boxes of 128 x 64: 16 KB
  CUtensorMap flat;  // boxes of 64 x 64: 8 KB
};

struct LoadStorage {
  Box boxes[kMostPlaces];
  ptx::Mbarrier full[4];
};

__device__ void init_barriers(LoadStorage& smem) {
  if (threadIdx.x == 0)
    for (ptx::Mbarrier& barrier : smem.full) ptx::mbarrier_init(&barrier, 1);
  __syncthreads();
}

/// Figure 0: from the first request to the last, in the thread that asks. Figure 1: from the request to the
/// end of the wait.
template <int kTall, int kFlat>
__global__ void load_boxes(Notes notes, const __grid_constant__ BoxMaps maps, int next_columns) {
  auto& smem = shared_storage<LoadStorage>();
  init_barriers(smem);
  if (!ptx::elect_one()) return;
  const int row = static_cast<int>(blockIdx.x) * 64;
  for (int round = 0; round < kRounds; ++round) {
    const int column = round * next_columns;
    const uint64_t begin = ptx::clock_cycles();
    ptx::mbarrier_arrive_expect_bytes(&smem.full[0], (2 * kTall + kFlat) * sizeof(Box));
    const uint64_t armed = ptx::clock_cycles();
#pragma unroll
    for (int i = 0; i < kTall; ++i)
      ptx::tma_load(&smem.boxes[2 * i % kMostPlaces], &maps.tall, column + 64 * i, row, &smem.full[0]);
#pragma unroll
    for (int i = 0; i < kFlat; ++i)
      ptx::tma_load(&smem.boxes[(2 * kTall + i) % kMostPlaces], &maps.flat, column + 64 * (kTall + i), row,
                    &smem.full[0]);
    const uint64_t asked = ptx::clock_cycles();
    ptx::mbarrier_wait(&smem.full[0], round % 2);
    const uint64_t landed = ptx::clock_cycles();
    notes.add(0, round, static_cast<float>(asked - armed));
    notes.add(1, round, static_cast<float>(landed - begin));
  }
}

constexpr int kLoads = 48;  // divisible by each number in flight twice: every round begins with parity 0
constexpr int kBoxesOfLoad = 4;

/// The clocks of one of kLoads loads of 32 KB, of which kInFlight are on their way at any time. All rows of
/// the boxes begin at the same offset from a cache line, where the pitch of the matrix is a multiple of one.
template <int kInFlight>
__global__ void load_in_flight(Notes notes, const __grid_constant__ CUtensorMap map, int first_column) {
  static_assert(kLoads % (2 * kInFlight) == 0);
  auto& smem = shared_storage<LoadStorage>();
  init_barriers(smem);
  if (!ptx::elect_one()) return;
  const int row = static_cast<int>(blockIdx.x) * 64;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t begin = ptx::clock_cycles();
    for (int load = 0; load < kLoads + kInFlight; ++load) {
      const int slot = load % kInFlight;
      if (load >= kInFlight) ptx::mbarrier_wait(&smem.full[slot], (load / kInFlight + 1) % 2);
      if (load >= kLoads) continue;
      ptx::mbarrier_arrive_expect_bytes(&smem.full[slot], kBoxesOfLoad * sizeof(Box));
#pragma unroll
      for (int i = 0; i < kBoxesOfLoad; ++i)
        ptx::tma_load(&smem.boxes[slot * kBoxesOfLoad + i], &map,
                      first_column + (load * kBoxesOfLoad + i) % kMostBoxes * 64, row, &smem.full[slot]);
    }
    notes.add(0, round, static_cast<float>(ptx::clock_cycles() - begin) / kLoads);
  }
}

/// A matrix with 64 rows for each multiprocessor and 64 more, whose boxes the last block's tall ones reach.
struct Matrix {
  Matrix(int columns)
      : rows((device_info().multiprocessors + 1) * 64),
        columns(columns),
        elements(static_cast<size_t>(rows) * columns) {
    fill_on_device(elements.data(), 0, elements.size() * sizeof(__nv_bfloat16));
  }
  CUtensorMap map(int box_rows) { return make_tensor_map(elements.data(), rows, columns, box_rows, 64); }

  int rows, columns;
  DeviceBuffer<__nv_bfloat16> elements;
};

/// Larger than L2: when it has been written, L2 holds nothing else.
void empty_l2() {
  static DeviceBuffer<unsigned char> flush(4 * device_info().l2_bytes);
  fill_on_device(flush.data(), 0, flush.size());
}

template <int kTall, int kFlat>
void add_load(Matrix& matrix, const AddRow& add, bool only_asking = false) {
  constexpr int kBytes = (2 * kTall + kFlat) * sizeof(Box);
  const BoxMaps maps = {matrix.map(128), matrix.map(64)};
  std::string boxes = kTall ? std::to_string(kTall) + " of 16 KB" : "";
  if (kFlat) boxes += (kTall ? " and " : "") + std::to_string(kFlat) + " of 8 KB";
  for (const Blocks& blocks : alone_and_everywhere())
    for (const bool in_l2 : {true, false}) {
      if (only_asking && (blocks.count > 1 || !in_l2)) continue;
      if (!in_l2) empty_l2();
      const LaunchConfig config = {.name = "load_boxes",
                                   .grid = dim3(blocks.count),
                                   .block = dim3(32),
                                   .shared_bytes = sizeof(LoadStorage)};
      const auto clocks = measured(2, load_boxes<kTall, kFlat>, config, maps, in_l2 ? 0 : kWindow);
      if (blocks.count == 1 && in_l2) add({"ask", {{"boxes", boxes}}, clocks[0]});
      if (!only_asking)
        add({"load",
             {{"size", kilobytes(kBytes)},
              {"boxes", boxes},
              {"blocks", blocks.name},
              {"from", in_l2 ? "L2" : "memory"}},
             clocks[1],
             kBytes});
    }
}

/// @param offset of the first row's first byte from a cache line
template <int kInFlight>
void add_overlap(const CUtensorMap& map, const std::string& rows, int offset, const AddRow& add) {
  for (const Blocks& blocks : alone_and_everywhere()) {
    const LaunchConfig config = {.name = "load_in_flight",
                                 .grid = dim3(blocks.count),
                                 .block = dim3(32),
                                 .shared_bytes = sizeof(LoadStorage)};
    constexpr int kBytes = kBoxesOfLoad * sizeof(Box);
    add({"overlap",
         {{"in_flight", std::to_string(kInFlight) + " loads of 32 KB"},
          {"rows", rows},
          {"blocks", blocks.name}},
         measured(1, load_in_flight<kInFlight>, config, map,
                  offset / static_cast<int>(sizeof(__nv_bfloat16)))[0],
         kBytes});
  }
}

}  // namespace

void measure_loads(const AddRow& add) {
  Matrix matrix(kColumns);
  add_load<0, 1>(matrix, add);
  add_load<0, 2>(matrix, add);
  add_load<0, 4>(matrix, add);
  add_load<0, 6>(matrix, add);
  add_load<0, 8>(matrix, add);
  add_load<0, 16>(matrix, add);
  add_load<1, 0>(matrix, add);
  add_load<1, 2>(matrix, add);  // a step of lessons 03 and 04
  add_load<1, 4>(matrix, add);  // a step of lesson 05
  add_load<4, 0>(matrix, add);
  add_load<2, 0>(matrix, add, true);
  add_load<16, 0>(matrix, add, true);

  Matrix straddling(5000);  // rows of 10,000 bytes: 16 more than a multiple of a cache line
  const CUtensorMap map = matrix.map(64), straddling_map = straddling.map(64);
  const auto add_all = [&](const CUtensorMap& of, const std::string& rows, int offset) {
    add_overlap<1>(of, rows, offset, add);
    add_overlap<2>(of, rows, offset, add);
    add_overlap<3>(of, rows, offset, add);
    add_overlap<4>(of, rows, offset, add);
  };
  add_all(map, "rows at 0", 0);
  add_all(map, "rows at 16", 16);
  add_all(map, "rows at 64", 64);
  add_all(straddling_map, "rows of 10000 bytes", 0);
}

}  // namespace ladder::parts
