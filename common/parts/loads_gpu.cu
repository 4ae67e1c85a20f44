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

constexpr int kMostAhead = 4;

struct LoadStorage {
  Box boxes[kMostPlaces];
  ptx::Mbarrier full[kMostAhead];
  uint64_t asked[2 * kMostAhead];  // the moments of the last requests
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

/// Loads as the blocks of a product ask for them: a box of A of 128 rows, and one of 64 x 64 for each 64
/// columns of B, step after step along k. kRowsOfBlocks x kColumnsOfBlocks blocks share rows of A and columns
/// of B, so that a tile comes from memory once and from L2 eleven or twelve times, at about the same moment.
constexpr int kRowsOfBlocks = 12, kColumnsOfBlocks = 11, kStepsOfRound = 12;
constexpr int kStepsInMemory = kStepsOfRound * kRounds;
constexpr uint64_t kPause = 600;  // between the landing of a load and the next request: about a product

/// Figure 0: the clocks of a load, with one in flight from the request to the end of the wait, else of one of
/// many.
/// @param next_steps from round to round: 0 stays in L2
template <int kPanels, int kInFlight>
__global__ void load_as_product(Notes notes, const __grid_constant__ TensorMaps maps, int next_steps) {
  static_assert(kStepsOfRound % (2 * kInFlight) == 0 && (2 + kPanels) * kInFlight <= kMostPlaces);
  auto& smem = shared_storage<LoadStorage>();
  init_barriers(smem);
  if (!ptx::elect_one()) return;
  const int row = static_cast<int>(blockIdx.x) % kRowsOfBlocks * 128;
  const int column = static_cast<int>(blockIdx.x) / kRowsOfBlocks * kPanels * 64;
  for (int round = 0; round < kRounds; ++round) {
    uint64_t begin = ptx::clock_cycles(), paused = 0;
    for (int step = 0; step < kStepsOfRound + kInFlight; ++step) {
      const int slot = step % kInFlight;
      if (step >= kInFlight) ptx::mbarrier_wait(&smem.full[slot], (step / kInFlight + 1) % 2);
      if (step >= kStepsOfRound) continue;
      if (kInFlight == 1) {
        const uint64_t landed = ptx::clock_cycles();
        uint64_t now = landed;
        while (now - landed < kPause) now = ptx::clock_cycles();
        paused += now - landed;
      }
      const int k = (round * next_steps + step) * 64;
      Box* const boxes = &smem.boxes[slot * (2 + kPanels)];
      ptx::mbarrier_arrive_expect_bytes(&smem.full[slot], (2 + kPanels) * sizeof(Box));
      ptx::tma_load(boxes, &maps.a, k, row, &smem.full[slot]);
#pragma unroll
      for (int i = 0; i < kPanels; ++i)
        ptx::tma_load(&boxes[2 + i], &maps.b, column + 64 * i, k, &smem.full[slot]);
    }
    notes.add(0, round, static_cast<float>(ptx::clock_cycles() - begin - paused) / kStepsOfRound);
  }
}

/// The same at a pace: one thread asks every `every` clocks, as long as no more than kMostAhead loads are on
/// their way, and a thread of another warp waits for them. Figure 0: the clocks of a load, from the request
/// to the end of the wait. Figure 1: from the end of one load to that of the next.
template <int kPanels>
__global__ void load_at_pace(Notes notes, const __grid_constant__ TensorMaps maps, int every) {
  static_assert((2 + kPanels) * kMostAhead <= kMostPlaces);
  auto& smem = shared_storage<LoadStorage>();
  init_barriers(smem);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (!ptx::elect_one()) return;
  const int row = static_cast<int>(blockIdx.x) % kRowsOfBlocks * 128;
  const int column = static_cast<int>(blockIdx.x) / kRowsOfBlocks * kPanels * 64;
  uint64_t next = 0, last = ptx::clock_cycles();
  for (int round = 0; round < kRounds; ++round) {
    uint64_t on_their_way = 0;
    const uint64_t round_began = last;
    for (int i = 0; i < kStepsOfRound; ++i) {
      const int step = round * kStepsOfRound + i, slot = step % kMostAhead, use = step / kMostAhead;
      uint64_t& asked = smem.asked[step % (2 * kMostAhead)];
      if (warp == 0) {
        if (use > 0) ptx::mbarrier_wait(&smem.full[slot], (use - 1) % 2);
        uint64_t now = ptx::clock_cycles();
        while (now < next) now = ptx::clock_cycles();
        next = now + every;
        asked = now;  // before the arrival, which makes it visible
        Box* const boxes = &smem.boxes[slot * (2 + kPanels)];
        ptx::mbarrier_arrive_expect_bytes(&smem.full[slot], (2 + kPanels) * sizeof(Box));
        ptx::tma_load(boxes, &maps.a, step * 64, row, &smem.full[slot]);
#pragma unroll
        for (int panel = 0; panel < kPanels; ++panel)
          ptx::tma_load(&boxes[2 + panel], &maps.b, column + 64 * panel, step * 64, &smem.full[slot]);
      } else {
        ptx::mbarrier_wait(&smem.full[slot], use % 2);
        last = ptx::clock_cycles();
        on_their_way += last - asked;
      }
    }
    if (warp == 0) continue;
    notes.add(0, round, static_cast<float>(on_their_way) / kStepsOfRound);
    notes.add(1, round, static_cast<float>(last - round_began) / kStepsOfRound);
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

template <int kTall, int kFlat>
void add_load(Matrix& matrix, const AddRow& add, bool only_asking = false) {
  constexpr int kBytes = (2 * kTall + kFlat) * sizeof(Box);
  const BoxMaps maps = {matrix.map(128), matrix.map(64)};
  std::string boxes = kTall ? std::to_string(kTall) + " x 16 KB" : "";
  if (kFlat) boxes += (kTall ? " + " : "") + std::to_string(kFlat) + " x 8 KB";
  for (const Blocks& blocks : alone_and_everywhere())
    for (const bool in_l2 : {true, false}) {
      if (only_asking && (blocks.count > 1 || !in_l2)) continue;
      if (!in_l2) empty_l2();
      const LaunchConfig config = {.name = "load_boxes",
                                   .grid = dim3(blocks.count),
                                   .block = dim3(32),
                                   .shared_bytes = sizeof(LoadStorage)};
      const auto [clocks, mhz] =
          measured_with_clock(2, load_boxes<kTall, kFlat>, config, maps, in_l2 ? 0 : kWindow);
      if (blocks.count == 1 && in_l2) add({"ask", {{"boxes", boxes}}, clocks[0], 0, 0, mhz});
      if (!only_asking)
        add({"load",
             {{"size", kilobytes(kBytes)},
              {"boxes", boxes},
              {"blocks", blocks.name},
              {"from", in_l2 ? "L2" : "memory"}},
             clocks[1],
             kBytes,
             0,
             mhz});
    }
}

template <int kPanels, int kInFlight>
void add_load_of_product(const TensorMaps& maps, const std::string& rows, const AddRow& add) {
  const int blocks = kRowsOfBlocks * kColumnsOfBlocks;
  if (device_info().multiprocessors < blocks) return;  // they would take turns
  for (const bool in_l2 : {true, false}) {
    if (!in_l2) empty_l2();
    const LaunchConfig config = {.name = "load_as_product",
                                 .grid = dim3(blocks),
                                 .block = dim3(32),
                                 .shared_bytes = sizeof(LoadStorage)};
    constexpr int kBytes = (2 + kPanels) * sizeof(Box);
    const auto [clocks, mhz] =
        measured_with_clock(1, load_as_product<kPanels, kInFlight>, config, maps, in_l2 ? 0 : kStepsOfRound);
    add({"tile",
         {{"size", kilobytes(kBytes)},
          {"in_flight", std::to_string(kInFlight) + " in flight"},
          {"rows", rows},
          {"from", in_l2 ? "L2" : "memory"}},
         clocks[0],
         kBytes,
         0,
         mhz});
  }
}

template <int kPanels>
void add_loads_at_pace(const TensorMaps& maps, const AddRow& add) {
  const int blocks = kRowsOfBlocks * kColumnsOfBlocks;
  if (device_info().multiprocessors < blocks) return;
  for (const int every : {0, 600, 700, 800, 1000, 1200, 1400, 1700, 2000, 2400, 2800, 3200}) {
    empty_l2();
    const auto [clocks, mhz] = measured_with_clock(2, load_at_pace<kPanels>,
                                                   {.name = "load_at_pace",
                                                    .grid = dim3(blocks),
                                                    .block = dim3(2 * 32),
                                                    .shared_bytes = sizeof(LoadStorage)},
                                                   maps, every);
    constexpr int kBytes = (2 + kPanels) * sizeof(Box);
    for (const int figure : {0, 1})
      add({"paced",
           {{"way", "TMA"},
            {"size", kilobytes(kBytes)},
            {"rows", "whole lines"},
            {"every", std::to_string(every)},
            {"what", figure == 0 ? "landed" : "interval"}},
           clocks[figure],
           kBytes,
           0,
           mhz});
  }
}

/// @param columns of A, of which some may lie behind the last step; and of B
void add_loads_of_product(int columns_of_a, int columns_of_b, const std::string& rows, const AddRow& add) {
  const int rows_of_a = kRowsOfBlocks * 128, rows_of_b = kStepsInMemory * 64;
  DeviceBuffer<__nv_bfloat16> a(static_cast<size_t>(rows_of_a) * columns_of_a),
      b(static_cast<size_t>(rows_of_b) * columns_of_b);
  const TensorMaps maps = {make_tensor_map(a.data(), rows_of_a, columns_of_a, 128, 64),
                           make_tensor_map(b.data(), rows_of_b, columns_of_b, 64, 64)};
  add_load_of_product<2, 1>(maps, rows, add);
  add_load_of_product<2, 2>(maps, rows, add);
  add_load_of_product<2, 3>(maps, rows, add);
  add_load_of_product<4, 1>(maps, rows, add);
  add_load_of_product<4, 2>(maps, rows, add);
  add_load_of_product<4, 3>(maps, rows, add);
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
    const auto [clocks, mhz] = measured_with_clock(1, load_in_flight<kInFlight>, config, map,
                                                   offset / static_cast<int>(sizeof(__nv_bfloat16)));
    add({"overlap",
         {{"in_flight", std::to_string(kInFlight) + " in flight"}, {"rows", rows}, {"blocks", blocks.name}},
         clocks[0],
         kBytes,
         0,
         mhz});
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

  constexpr int kA = kStepsInMemory * 64, kB = kColumnsOfBlocks * 256;
  add_loads_of_product(kA, kB, "whole lines", add);
  add_loads_of_product(kA + 8, kB + 8, "straddling",
                       add);  // rows begin 16 bytes later in a line than those above

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

void measure_loads_at_pace(const AddRow& add) {
  const int rows_of_a = kRowsOfBlocks * 128, k = kStepsInMemory * 64, columns_of_b = kColumnsOfBlocks * 256;
  DeviceBuffer<__nv_bfloat16> a(size_t{rows_of_a} * k), b(size_t{k} * columns_of_b);
  const TensorMaps maps = {make_tensor_map(a.data(), rows_of_a, k, 128, 64),
                           make_tensor_map(b.data(), k, columns_of_b, 64, 64)};
  add_loads_at_pace<2>(maps, add);
  add_loads_at_pace<4>(maps, add);
}

void measure_clocks(const AddRow& add) {
  Matrix matrix(kColumns);
  const BoxMaps box_maps = {matrix.map(128), matrix.map(64)};
  const int rows_of_a = kRowsOfBlocks * 128, k = kStepsInMemory * 64, columns_of_b = kColumnsOfBlocks * 256;
  DeviceBuffer<__nv_bfloat16> a(size_t{rows_of_a} * k), b(size_t{k} * columns_of_b);
  const TensorMaps maps = {make_tensor_map(a.data(), rows_of_a, k, 128, 64),
                           make_tensor_map(b.data(), k, columns_of_b, 64, 64)};
  std::this_thread::sleep_for(std::chrono::seconds(1));  // so that the clock is high again
  for (const bool behind_products : {false, true})
    for (const bool in_l2 : {true, false}) {
      const auto add_clocked = [&](const std::string& what, int bytes, int figure, int blocks, auto kernel,
                                   const auto&... arguments) {
        if (device_info().multiprocessors < blocks) return;
        if (behind_products) lower_the_clock();
        if (!in_l2) empty_l2();
        const auto [clocks, mhz] = measured_with_clock(figure + 1, kernel,
                                                       {.name = what.c_str(),
                                                        .grid = dim3(blocks),
                                                        .block = dim3(32),
                                                        .shared_bytes = sizeof(LoadStorage)},
                                                       arguments...);
        add({"clocked",
             {{"what", what},
              {"from", in_l2 ? "L2" : "memory"},
              {"behind", behind_products ? "behind products" : "idle before"}},
             clocks[figure],
             static_cast<double>(bytes),
             0,
             mhz});
      };
      constexpr int kBlocks = kRowsOfBlocks * kColumnsOfBlocks;
      add_clocked("32 KB, one SM", 4 * sizeof(Box), 1, 1, load_boxes<1, 2>, box_maps, in_l2 ? 0 : kWindow);
      add_clocked("32 KB, blocks share tiles", 4 * sizeof(Box), 0, kBlocks, load_as_product<2, 1>, maps,
                  in_l2 ? 0 : kStepsOfRound);
      add_clocked("48 KB, blocks share tiles, 3 in flight", 6 * sizeof(Box), 0, kBlocks,
                  load_as_product<4, 3>, maps, in_l2 ? 0 : kStepsOfRound);
    }
}

}  // namespace ladder::parts
