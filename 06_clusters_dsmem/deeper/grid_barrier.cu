/// @file
/// The program 06_grid_barrier: what a barrier of all blocks of a grid costs, beside those of a block and of
/// a cluster and beside the end of a kernel, and what it forbids. `06_grid_barrier --help` lists its options.
///
/// A barrier of the grid needs all blocks resident at one time: a block that has not begun cannot arrive, and
/// those that wait never end to make room for it.
#include <cuda_runtime.h>
#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#ifndef LADDER_CPU_DEVICE
#include <cooperative_groups.h>
#include <cuda/atomic>
#endif

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/host/base/arguments.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/base/statistics.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/measure/timing.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/results.hpp"
#include "common/ptx/cluster.cuh"

namespace lesson06::grid_barrier {
namespace {

#ifndef LADDER_CPU_DEVICE

namespace cg = cooperative_groups;

constexpr unsigned kThreads = 256;
constexpr int kFewRounds = 100, kManyRounds = 1100;  // what lies between is not the launch
constexpr unsigned kClusterBlocks = 8;

using OfDevice = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

/// What all barriers are given.
struct Memory {
  unsigned* notes;     ///< [2, blocks]: in which round a block was, of odd and of even rounds
  unsigned* mistakes;  ///< a block has passed a barrier before its neighbour was there
  unsigned* arrived;   ///< of the barrier that is written by hand
};

/// In each round every block notes where it is, and after the barrier looks at a neighbour's note.
template <class Barrier>
__device__ void run_rounds(const Memory& memory, int rounds, unsigned neighbour, const Barrier& barrier) {
  for (unsigned round = 1; round <= static_cast<unsigned>(rounds); ++round) {
    unsigned* const notes = memory.notes + (round % 2) * gridDim.x;
    if (threadIdx.x == 0) notes[blockIdx.x] = round;
    barrier(round);
    if (threadIdx.x == 0 && notes[neighbour] != round) atomicAdd(memory.mistakes, 1u);
  }
}

__global__ void with_block_barriers(Memory memory, int rounds) {
  run_rounds(memory, rounds, blockIdx.x, [](unsigned) { __syncthreads(); });
}

__global__ void with_cluster_barriers(Memory memory, int rounds) {
  const unsigned neighbour = blockIdx.x / kClusterBlocks * kClusterBlocks + (blockIdx.x + 1) % kClusterBlocks;
  run_rounds(memory, rounds, neighbour, [](unsigned) { ptx::cluster_sync(); });
}

__global__ void with_grid_barriers(Memory memory, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  run_rounds(memory, rounds, (blockIdx.x + 1) % gridDim.x, [&](unsigned) { grid.sync(); });
}

/// One arrival of each block at a counter that never goes back; the last of round r makes it r * blocks.
/// @param patience how often a block looks before it gives up; 0: for ever
__device__ void wait_by_hand(unsigned* arrived, unsigned round, unsigned patience) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const OfDevice counter(*arrived);
    counter.fetch_add(1u, cuda::memory_order_acq_rel);
    for (unsigned looked = 0; counter.load(cuda::memory_order_acquire) < round * gridDim.x;)
      if (patience && ++looked == patience) break;
  }
  __syncthreads();
}

__global__ void with_barriers_by_hand(Memory memory, int rounds) {
  run_rounds(memory, rounds, (blockIdx.x + 1) % gridDim.x,
             [&](unsigned round) { wait_by_hand(memory.arrived, round, 0); });
}

/// One barrier, at which a block waits for so long and no longer.
__global__ void with_one_impatient_barrier(unsigned* arrived, unsigned* seen, unsigned patience) {
  wait_by_hand(arrived, 1, patience);
  if (threadIdx.x == 0) seen[blockIdx.x] = OfDevice(*arrived).load(cuda::memory_order_relaxed);
}

/// One thread's atomic additions, each of which waits for the one before: round trips to the L2 cache.
__global__ void with_round_trips(Memory memory, int rounds) {
  if (threadIdx.x != 0) return;
  unsigned value = 0;
  for (int round = 0; round < rounds; ++round) value = atomicAdd(memory.arrived, value & 1);
  memory.notes[0] = value;
}

/// One round in a launch of its own: the end of a kernel is a barrier, too.
__global__ void with_one_note(Memory memory, unsigned round) {
  unsigned* const notes = memory.notes + (round % 2) * gridDim.x;
  const unsigned* const before = memory.notes + ((round + 1) % 2) * gridDim.x;
  if (threadIdx.x != 0) return;
  if (round > 1 && before[(blockIdx.x + 1) % gridDim.x] != round - 1) atomicAdd(memory.mistakes, 1u);
  notes[blockIdx.x] = round;
}

/// A way to make blocks wait for each other.
struct Barrier {
  std::string name;
  unsigned blocks;  ///< of the grid
  std::function<void(int rounds)> run;
  std::string waits_for;
};

class Experiment {
 public:
  Experiment() : info_(ladder::device_info()) {
    resident_ = resident_blocks(with_grid_barriers);
    if (resident_blocks(with_barriers_by_hand) != resident_ ||
        resident_blocks(with_one_impatient_barrier) != resident_)
      throw std::runtime_error("not as many blocks of each kernel fit");
    notes_ = ladder::DeviceBuffer<unsigned>(2 * size_t{resident_ + 1});
    mistakes_ = ladder::DeviceBuffer<unsigned>(1);
    arrived_ = ladder::DeviceBuffer<unsigned>(1);
    CUDA_CHECK(cudaMemset(mistakes_.data(), 0, sizeof(unsigned)));
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  void run(int samples, std::ostream& out, ladder::ResultFile& results) {
    const unsigned sms = static_cast<unsigned>(info_.multiprocessors);
    const unsigned of_clusters = sms / kClusterBlocks * kClusterBlocks;
    std::vector<Barrier> barriers = {
        {"an atomic's round trip", 1, [&](int rounds) { launch(with_round_trips, 1, rounds); }, "-"},
        {"__syncthreads", sms, [&](int rounds) { launch(with_block_barriers, sms, rounds); }, "a block"},
        {"cluster.sync", of_clusters,
         [&](int rounds) { launch(with_cluster_barriers, of_clusters, rounds, kClusterBlocks); }, "8 blocks"},
        {"grid.sync", sms, [&](int rounds) { launch_cooperative(sms, rounds); }, "all blocks"},
        {"grid.sync", resident_, [&](int rounds) { launch_cooperative(resident_, rounds); }, "all blocks"},
        {"a counter, by hand", sms, [&](int rounds) { launch(with_barriers_by_hand, sms, rounds); },
         "all blocks"},
        {"a counter, by hand", resident_,
         [&](int rounds) { launch(with_barriers_by_hand, resident_, rounds); }, "all blocks"},
        {"the end of a kernel", sms, [&](int rounds) { launch_each_round(sms, rounds); }, "all blocks"}};

    std::vector<std::vector<double>> times = ladder::interleave(barriers.size(), samples + 1, [&](size_t i) {
      return (us(barriers[i], kManyRounds) - us(barriers[i], kFewRounds)) / (kManyRounds - kFewRounds);
    });
    const unsigned mistakes = ladder::download(mistakes_.data(), 1)[0];
    if (mistakes) throw std::runtime_error(fmt::format("a block has passed {} barriers too early", mistakes));

    ladder::Table table(
        out,
        {{"barrier", 22, false}, {"waits for", 10, false}, {"blocks", 6}, {"us", 7}, {"predicted us", 12}});
    table.header();
    double trip_us = 0;
    for (size_t i = 0; i < barriers.size(); ++i) {
      times[i].erase(times[i].begin());  // warmed up
      const ladder::Quartiles time = ladder::quartiles(times[i]);
      if (i == 0) trip_us = time.median;
      // An arrival and then a look at the counter, both in L2, if blocks come at one time.
      const bool of_grid = barriers[i].waits_for == "all blocks" && barriers[i].name != "the end of a kernel";
      const std::string predicted = of_grid ? ladder::fixed(2 * trip_us, 2) : "-";
      table.row({barriers[i].name, barriers[i].waits_for, std::to_string(barriers[i].blocks),
                 ladder::fixed(time.median, 3), predicted});
      ladder::Run row;
      row.lesson = "06_clusters_dsmem";
      row.core = ladder::resolve_core("auto");
      row.settings = {{"experiment", "grid_barrier"},
                      {"barrier", barriers[i].name},
                      {"waits_for", barriers[i].waits_for},
                      {"blocks", std::to_string(barriers[i].blocks)},
                      {"predicted_us", predicted}};
      row.time_us_median = time.median;
      row.time_us_q1 = time.q1;
      row.time_us_q3 = time.q3;
      row.verified = true;
      results.runs.push_back(row);
    }
    out << "predicted: two round trips to the L2 cache, of the arrival and of a look at the counter\n\n";
    show_what_it_forbids(out, results);
  }

 private:
  template <class Kernel>
  unsigned resident_blocks(Kernel kernel) const {
    int of_sm = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_sm, kernel, kThreads, 0));
    return static_cast<unsigned>(of_sm * info_.multiprocessors);
  }
  Memory memory() { return {notes_.data(), mistakes_.data(), arrived_.data()}; }

  template <class Kernel>
  void launch(Kernel kernel, unsigned blocks, int rounds, unsigned cluster = 1) {
    CUDA_CHECK(cudaMemsetAsync(arrived_.data(), 0, sizeof(unsigned), stream_.get()));
    ladder::launch(kernel,
                   {.name = "barriers",
                    .grid = dim3(blocks),
                    .block = dim3(kThreads),
                    .cluster = dim3(cluster),
                    .stream = stream_.get()},
                   memory(), rounds);
  }

  cudaError_t try_cooperative(unsigned blocks, int rounds) {
    Memory given = memory();
    void* arguments[] = {&given, &rounds};
    return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(with_grid_barriers), dim3(blocks),
                                       dim3(kThreads), arguments, 0, stream_.get());
  }
  void launch_cooperative(unsigned blocks, int rounds) { CUDA_CHECK(try_cooperative(blocks, rounds)); }

  void launch_each_round(unsigned blocks, int rounds) {
    for (int round = 1; round <= rounds; ++round)
      ladder::launch(
          with_one_note,
          {.name = "one note", .grid = dim3(blocks), .block = dim3(kThreads), .stream = stream_.get()},
          memory(), static_cast<unsigned>(round));
  }

  /// Microseconds of one launch, or of one for each round.
  double us(const Barrier& barrier, int rounds) {
    CUDA_CHECK(cudaEventRecord(begin_.get(), stream_.get()));
    barrier.run(rounds);
    CUDA_CHECK(cudaEventRecord(end_.get(), stream_.get()));
    return 1000 * ladder::elapsed_ms(begin_, end_);
  }

  /// One block more than fit: a cooperative launch is refused; any other is accepted, and its blocks wait for
  /// one that cannot begin.
  void show_what_it_forbids(std::ostream& out, ladder::ResultFile& results) {
    const unsigned too_many = resident_ + 1;
    const cudaError_t refused = try_cooperative(too_many, 1);
    (void)cudaGetLastError();  // Forget it: the next call succeeds.
    CUDA_CHECK(cudaStreamSynchronize(stream_.get()));

    constexpr unsigned kPatience = 100'000;  // looks: some tens of milliseconds
    ladder::DeviceBuffer<unsigned> seen(too_many);
    CUDA_CHECK(cudaMemsetAsync(arrived_.data(), 0, sizeof(unsigned), stream_.get()));
    CUDA_CHECK(cudaEventRecord(begin_.get(), stream_.get()));
    ladder::launch(with_one_impatient_barrier,
                   {.name = "with_one_impatient_barrier",
                    .grid = dim3(too_many),
                    .block = dim3(kThreads),
                    .stream = stream_.get()},
                   arrived_.data(), seen.data(), kPatience);
    CUDA_CHECK(cudaEventRecord(end_.get(), stream_.get()));
    const double waited_us = 1000 * ladder::elapsed_ms(begin_, end_);
    const std::vector<unsigned> arrived = ladder::download(seen.data(), too_many);
    const unsigned fewest = *std::min_element(arrived.begin(), arrived.end());

    out << fmt::format("{} blocks fit at one time. A grid of {}:\n", resident_, too_many)
        << "  cooperative launch: " << cudaGetErrorName(refused)
        << " (predicted: " << cudaGetErrorName(cudaErrorCooperativeLaunchTooLarge) << ")\n"
        << fmt::format(
               "  a counter, by hand: {} of {} have arrived when the first gives up after {:.0f} ms "
               "(predicted: {})\n",
               fewest, too_many, waited_us / 1e3, resident_);
    ladder::Run row;
    row.lesson = "06_clusters_dsmem";
    row.core = ladder::resolve_core("auto");
    row.settings = {{"experiment", "grid_barrier"},
                    {"barrier", "a grid that does not fit"},
                    {"blocks", std::to_string(too_many)},
                    {"resident", std::to_string(resident_)},
                    {"cooperative_launch", cudaGetErrorName(refused)},
                    {"arrived_by_hand", std::to_string(fewest)}};
    row.time_us_median = row.time_us_q1 = row.time_us_q3 = waited_us;
    row.verified = true;
    results.runs.push_back(row);
    if (refused != cudaErrorCooperativeLaunchTooLarge || fewest != resident_)
      throw std::runtime_error("a grid that does not fit was not treated as predicted");
  }

  ladder::DeviceInfo info_;
  unsigned resident_ = 0;  ///< blocks that the GPU holds at one time
  ladder::DeviceBuffer<unsigned> notes_, mistakes_, arrived_;
  ladder::Stream stream_ = ladder::make_stream();
  ladder::Event begin_ = ladder::make_event(), end_ = ladder::make_event();
};

#endif

int run_with(int argc, char** argv) {
  ladder::Arguments arguments("What a barrier of a whole grid costs, and what it forbids", "06_grid_barrier");
  std::string rounds = "5", json;
  arguments.add_option("--rounds", rounds, "R", "Samples of each measurement (default 5)");
  arguments.add_option("--json", json, "PATH", "Write the results to this file");
  if (!arguments.parse(argc, argv)) return ladder::kExitOk;
  const int samples = static_cast<int>(ladder::parse_number("--rounds", rounds, 1, 10'000));
#ifdef LADDER_CPU_DEVICE
  (void)samples;
  throw ladder::BadInput("only on a GPU: the CPU device runs one block to its end before the next begins");
#else
  ladder::require_device();
  if (const std::string reason = ladder::why_not({ladder::kHopper, {"wgmma"}}, ladder::this_target());
      !reason.empty())
    throw ladder::BadInput(reason);
  ladder::ResultFile results = ladder::new_result_file();
  std::cout << results.gpu << ", " << results.toolkit << "\n";
  Experiment().run(samples, std::cout, results);
  if (!json.empty()) ladder::write_results("--json", json, results);
  return ladder::kExitOk;
#endif
}

}  // namespace
}  // namespace lesson06::grid_barrier

int main(int argc, char** argv) {
  return ladder::run_program("06_grid_barrier", [&] { return lesson06::grid_barrier::run_with(argc, argv); });
}
