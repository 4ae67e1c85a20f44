/// @file
/// What wgmma takes to multiply a tile of 64 in k: waited for or with one in flight, while TMA fills other
/// slots or not.
///
/// The tensor cores of a multiprocessor do 2048 multiply-adds of bf16 a clock. A warpgroup's step is 64 x n x
/// 64 of them, which is 2 n clocks: 512 for n = 256. A warpgroup reads its 64 x 64 of A, 8 KB, and all of B,
/// n * 128 bytes, from shared memory: 96 bytes a clock for n = 128, but only 80 for n = 256.
#include "common/cuda/tensor_map.hpp"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/fill.hpp"
#include "common/parts/groups.hpp"
#include "common/parts/measured_gpu.cuh"
#include "common/ptx/elect.cuh"
#include "common/ptx/named_barrier.cuh"
#include "common/ptx/tma.cuh"

namespace ladder::parts {
namespace {

constexpr int kK = 64, kSteps = 128;
constexpr int kAhead = 2, kSlots = 1 + kAhead;  // slot 0 is multiplied; TMA fills the others
static_assert(kSteps % (2 * kAhead) == 0);      // every round begins with parity 0
constexpr int kMultiplyAdds = 2048;

template <int kN, int kWarpgroups>
constexpr int ideal_clocks = 64 * kN* kK* kWarpgroups / kMultiplyAdds;

template <int kN, int kWarpgroups>
struct ProductStorage {
  SwizzledTile<64 * kWarpgroups, kK> a[kSlots];
  SwizzledTile<kK, kN> b[kSlots];
  ptx::Mbarrier full[kSlots];
  uint64_t asked;  // the sum of moments
};

/// Blocks share rows of A and columns of B, as those of a product do: eleven or twelve want each tile.
constexpr int kRowsOfBlocks = 12;
constexpr int kBoxesOfStep = 4,
              kStepsApart = 8;  // a block loads the same eight steps again and again, from L2

/// Asks for the tiles of step `step`, in boxes of 64 x 64. Here A and B are rows of one matrix: A's blocks
/// come first.
template <int kN, int kWarpgroups>
__device__ __forceinline__ void fill_slot(ProductStorage<kN, kWarpgroups>& smem, int slot,
                                          const CUtensorMap& map, int step) {
  const int column = step % kStepsApart * kBoxesOfStep * 64;
  const int row_of_a = static_cast<int>(blockIdx.x) % kRowsOfBlocks * 64;
  const int row_of_b = (kRowsOfBlocks + static_cast<int>(blockIdx.x) / kRowsOfBlocks) * 64;
  ptx::Mbarrier* const full = &smem.full[slot];
  ptx::mbarrier_arrive_expect_bytes(full, sizeof(smem.a[0]) + sizeof(smem.b[0]));
#pragma unroll
  for (int i = 0; i < kWarpgroups; ++i)
    ptx::tma_load(&smem.a[slot].panels[0][64 * i], &map, column + 64 * i, row_of_a, full);
#pragma unroll
  for (int i = 0; i < kN / 64; ++i)
    ptx::tma_load(&smem.b[slot].panels[i], &map, column + 64 * i, row_of_b, full);
}

/// One load for each step, at the pace of the tensor cores' peak, two on their way. Compute does not wait for
/// them.
/// @returns the sum of the moments of all requests
template <int kN, int kWarpgroups>
__device__ __forceinline__ uint64_t load_beside(ProductStorage<kN, kWarpgroups>& smem,
                                                const CUtensorMap& map) {
  const uint64_t begin = ptx::clock_cycles();
  uint64_t asked = 0;
  for (int load = 0; load < kSteps; ++load) {
    const int slot = 1 + load % kAhead;
    if (load >= kAhead) ptx::mbarrier_wait(&smem.full[slot], (load / kAhead + 1) % 2);
    while (ptx::clock_cycles() - begin < uint64_t{ideal_clocks<kN, kWarpgroups>} * load) continue;
    asked += ptx::clock_cycles();
    fill_slot(smem, slot, map, load);
  }
  return asked;
}

/// Another thread sees them land. @returns the sum of those moments
template <int kN, int kWarpgroups>
__device__ __forceinline__ uint64_t watch_loads(ProductStorage<kN, kWarpgroups>& smem) {
  uint64_t landed = 0;
  for (int load = 0; load < kSteps; ++load) {
    ptx::mbarrier_wait(&smem.full[1 + load % kAhead], load / kAhead % 2);
    landed += ptx::clock_cycles();
  }
  return landed;
}

/// B with k contiguous, [n][k], in the place of the tile that has n contiguous: only the descriptor differs.
template <int kN, int kWarpgroups>
__device__ __forceinline__ void start_k_major(WgmmaCore<kN>& core, ProductStorage<kN, kWarpgroups>& smem,
                                              int row) {
  const uint64_t a = ptx::matrix_descriptor(&smem.a[0].panels[0][row], 16, 1024);
  const uint64_t b = ptx::matrix_descriptor(&smem.b[0], 16, 1024);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < kK * 2 / 16; k += 2) {  // 16 in k are 32 bytes, in units of 16
    if constexpr (kN == 192) ptx::wgmma_m64n192k16<false>(core.d, a + k, b + k, true);
    if constexpr (kN == 256) ptx::wgmma_m64n256k16<false>(core.d, a + k, b + k, true);
  }
  ptx::wgmma_commit_group();
}

/// Figure 0: the clocks of a step, until the last warpgroup has multiplied kSteps times. Figure 1: those of a
/// load, from the request to the end of the wait. Figure 2: millions of clocks a second.
template <int kN, int kWarpgroups, int kInFlight, bool kBRowMajor>
__global__ void __launch_bounds__(kWarpgroups* kWarpgroup + 2 * kWarp, 1)
    multiply(Notes notes, const __grid_constant__ CUtensorMap map, bool with_loads) {
  constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
  auto& smem = shared_storage<ProductStorage<kN, kWarpgroups>>();
  if (threadIdx.x == 0) {
    for (ptx::Mbarrier& barrier : smem.full) ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init();
    fill_slot(smem, 0, map, 0);
    ptx::mbarrier_wait(&smem.full[0], 0);
  }
  __syncthreads();

  if (threadIdx.x < kComputeThreads) {
    WgmmaCore<kN> core;
    clear(core.d);
    const int my_rows = 64 * warpgroup_index();
    for (int round = 0; round < kRounds; ++round) {
      __syncthreads();
      const uint64_t begin = ptx::clock_cycles(), begin_ns = ptx::globaltimer_ns();
      for (int step = 0; step < kSteps; ++step) {
        if constexpr (kBRowMajor)
          core.start(smem.a[0], my_rows, smem.b[0], false);
        else
          start_k_major(core, smem, my_rows);
        core.template finish<kInFlight>();
      }
      core.finish();
      ptx::named_barrier_sync(1, kComputeThreads);
      const uint64_t end = ptx::clock_cycles(), end_ns = ptx::globaltimer_ns();
      if (threadIdx.x == 0) {
        notes.add(0, round, static_cast<float>(end - begin) / kSteps);
        notes.add(2, round, 1000 * static_cast<float>(end - begin) / static_cast<float>(end_ns - begin_ns));
      }
      __syncthreads();
    }
    // ptxas leaves out products whose sums nobody needs, and would also see that a round of the warm-up is
    // not noted.
    float sum = 0;
    for (const float one : core.d) sum += one;
    if (sum == 1.25f) notes.add(0, kWarmUp, sum);
  } else {
    const bool loads = threadIdx.x < kComputeThreads + kWarp;
    for (int round = 0; round < kRounds; ++round) {
      __syncthreads();
      uint64_t landed = 0;
      if (with_loads && ptx::elect_one()) {
        if (loads)
          smem.asked = load_beside(smem, map);
        else
          landed = watch_loads(smem);
      }
      __syncthreads();
      if (!loads && (landed > 0 || (!with_loads && ptx::elect_one())))
        notes.add(1, round, with_loads ? static_cast<float>(landed - smem.asked) / kSteps : 1);
    }
  }
}

/// Products of 128 x 128 x 64 that come in bursts, with pauses between them. Figure 0: the clocks of a burst
/// and its pause.
__global__ void __launch_bounds__(2 * kWarpgroup, 1)
    multiply_in_bursts(Notes notes, const __grid_constant__ CUtensorMap map, int products, int pause) {
  constexpr int kClocksOfRound = 1 << 20;  // half a millisecond
  auto& smem = shared_storage<ProductStorage<128, 2>>();
  if (threadIdx.x == 0) {
    for (ptx::Mbarrier& barrier : smem.full) ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init();
    fill_slot(smem, 0, map, 0);
    ptx::mbarrier_wait(&smem.full[0], 0);
  }
  __syncthreads();
  WgmmaCore<128> core;
  clear(core.d);
  const int my_rows = 64 * warpgroup_index();
  const int bursts = kClocksOfRound / (products * ideal_clocks<128, 2> + pause);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t begin = ptx::clock_cycles();
    for (int burst = 0; burst < bursts; ++burst) {
      for (int product = 0; product < products; ++product) {
        core.start(smem.a[0], my_rows, smem.b[0], false);
        core.finish();
      }
      const uint64_t stopped = ptx::clock_cycles();
      while (ptx::clock_cycles() - stopped < static_cast<uint64_t>(pause)) continue;
      __syncthreads();
    }
    const uint64_t end = ptx::clock_cycles();
    if (threadIdx.x == 0) notes.add(0, round, static_cast<float>(end - begin) / bursts);
  }
  float sum = 0;
  for (const float one : core.d) sum += one;
  if (sum == 1.25f) notes.add(0, kWarmUp, sum);
}

/// Operands in L2. Zeros take less power, and the same instructions.
struct Operands {
  static constexpr int kColumns = kStepsApart * kBoxesOfStep * 64;

  explicit Operands(bool zeros)
      : rows((kRowsOfBlocks + device_info().multiprocessors / kRowsOfBlocks + 1) * 64),
        elements(static_cast<size_t>(rows) * kColumns) {
    if (zeros)
      fill_on_device(elements.data(), 0, elements.size() * sizeof(__nv_bfloat16));
    else
      fill(elements.data(), elements.size(), NormalValues{1});
  }
  CUtensorMap map() { return make_tensor_map(elements.data(), rows, kColumns, 64, 64); }

  int rows;
  DeviceBuffer<__nv_bfloat16> elements;
};

/// What a row of products may have beside its sizes.
struct Variant {
  const char* name = nullptr;
  bool everywhere = true;  ///< else on one multiprocessor alone
  int launches = 1;        ///< of which the last counts: a GPU takes a tenth of a second to its power limit
};

template <int kN, int kWarpgroups, int kInFlight, bool kBRowMajor = true>
void add_product(const AddRow& add, const CUtensorMap& map, const Variant& variant = {}) {
  for (const bool with_loads : {false, true}) {
    const LaunchConfig config = {.name = "multiply",
                                 .grid = dim3(variant.everywhere ? device_info().multiprocessors : 1),
                                 .block = dim3(kWarpgroups * kWarpgroup + 2 * kWarp),
                                 .shared_bytes = sizeof(ProductStorage<kN, kWarpgroups>)};
    const auto clocks = measured_after(variant.launches, 3, multiply<kN, kWarpgroups, kInFlight, kBRowMajor>,
                                       config, map, with_loads);
    const auto row = [&](const char* part, const Quartiles& of_step) {
      PartRow result{part,
                     {{"m", "m " + std::to_string(64 * kWarpgroups)},
                      {"n", "n " + std::to_string(kN)},
                      {"wait", kInFlight ? "in flight" : "waited for"},
                      {"loads", with_loads ? "loads" : "no loads"}},
                     of_step};
      if (variant.name) result.settings.emplace_back("unusual", variant.name);
      result.mhz = clocks[2].median;
      return result;
    };
    constexpr int kReadByAWarpgroup = (64 + kN) * kK * 2, kLoaded = (64 * kWarpgroups + kN) * kK * 2;
    PartRow product = row("product", clocks[0]);
    product.bytes = kWarpgroups * kReadByAWarpgroup + (with_loads ? kLoaded : 0);
    product.ideal_clocks = ideal_clocks<kN, kWarpgroups>;
    add(product);
    if (!with_loads) continue;
    PartRow load = row("beside", clocks[1]);
    load.bytes = kLoaded;
    add(load);
  }
}

template <int kN>
void add_width(const AddRow& add, const CUtensorMap& map) {
  add_product<kN, 1, 0>(add, map);
  add_product<kN, 1, 1>(add, map);
  add_product<kN, 2, 0>(add, map);
  add_product<kN, 2, 1>(add, map);
}

constexpr int kLaunches = 150;  // of 1.5 ms

/// Where does n = 256 lose what n = 192 does not? With zeros power is out of the question, on one
/// multiprocessor the others are; with k contiguous the tensor cores need not transpose B.
template <int kN>
void add_unusual(const AddRow& add, const CUtensorMap& map, const CUtensorMap& zeros) {
  add_product<kN, 2, 1>(add, zeros, {.name = "zeros"});
  add_product<kN, 2, 1>(add, map, {.name = "one SM", .everywhere = false});
  add_product<kN, 2, 1, false>(add, map, {.name = "B k-major"});
  add_product<kN, 2, 0>(add, map, {.name = "sustained", .launches = kLaunches});
  add_product<kN, 2, 1>(add, map, {.name = "sustained", .launches = kLaunches});
}

constexpr int kBurstLaunches = 8;  // of 10 ms, of which the last counts

void add_bursts(const AddRow& add, int blocks, int products, int pause, const CUtensorMap& map) {
  const LaunchConfig config = {.name = "multiply_in_bursts",
                               .grid = dim3(blocks),
                               .block = dim3(2 * kWarpgroup),
                               .shared_bytes = sizeof(ProductStorage<128, 2>)};
  measured_after(kBurstLaunches - 1, 1, multiply_in_bursts, config, map, products, pause);
  const auto [clocks, mhz] = measured_with_clock(1, multiply_in_bursts, config, map, products, pause);
  add({"burst",
       {{"blocks", std::to_string(blocks) + " SMs"},
        {"products", std::to_string(products)},
        {"pause", std::to_string(pause)}},
       clocks[0],
       0,
       static_cast<double>(products) * ideal_clocks<128, 2>,
       mhz});
}

}  // namespace

void measure_bursts(const AddRow& add) {
  Operands normal(false);
  const CUtensorMap map = normal.map();
  for (const int blocks : {16, device_info().multiprocessors}) {
    add_bursts(add, blocks, 64, 0, map);
    for (const int products : {1, 4, 16, 64, 256})
      add_bursts(add, blocks, products, products * ideal_clocks<128, 2>, map);
    add_bursts(add, blocks, 1, 3 * ideal_clocks<128, 2>, map);
    add_bursts(add, blocks, 64, 3 * 64 * ideal_clocks<128, 2>, map);
  }
}

void lower_the_clock() {
  static Operands normal(false);
  static const CUtensorMap map = normal.map();
  const LaunchConfig config = {.name = "multiply",
                               .grid = dim3(device_info().multiprocessors),
                               .block = dim3(2 * kWarpgroup + 2 * kWarp),
                               .shared_bytes = sizeof(ProductStorage<256, 2>)};
  static Figures nobody_reads(3, config);
  for (int i = 0; i < kLaunches; ++i)
    launch(multiply<256, 2, 0, true>, config, nobody_reads.notes(), map, false);
}

void measure_products(const AddRow& add) {
  Operands normal(false), zeros(true);
  const CUtensorMap map = normal.map(), zero_map = zeros.map();
  add_width<64>(add, map);
  add_width<128>(add, map);
  add_width<192>(add, map);
  add_width<256>(add, map);
  add_unusual<192>(add, map, zero_map);
  add_unusual<256>(add, map, zero_map);
}

}  // namespace ladder::parts
