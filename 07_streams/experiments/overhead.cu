/// @file
/// Experiment `overhead`: what it costs to hand a batch to the GPU by a launch, by a node of a graph, and by
/// a queue that one persistent kernel takes batches from.
///
/// A batch is a block for each multiprocessor, of no work, a little, or more. The same work in one kernel
/// that knows all its batches beforehand shows what it takes without any handing over. The persistent kernel
/// is launched once. Its blocks take tickets, a batch's part each, and wait until the host has put that batch
/// into the queue, which is a number in pinned memory: so many batches are there. The host gives the first
/// when the kernel runs already.
#include <fmt/core.h>
#include <atomic>
#include <cuda/atomic>
#include <optional>
#include <thread>

#include "07_streams/experiments/support.hpp"
#include "07_streams/pinned_ring.hpp"
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"

namespace lesson07 {
namespace {

constexpr int kThreads = 128;
constexpr uint32_t kFactor = 1664525, kSummand = 1013904223;

__host__ __device__ uint32_t first_value(int batch, int part, int thread) {
  return static_cast<uint32_t>(batch) * 7919 + static_cast<uint32_t>(part) * 131 +
         static_cast<uint32_t>(thread);
}

/// A block's part of a batch: every thread computes a chain of `steps` products, each of which waits for the
/// one before, and adds its end to a place of its own.
/// @param sums [batches, parts, threads]
__device__ void work(uint32_t* sums, int batch, int part, int parts, int steps) {
  uint32_t x = first_value(batch, part, static_cast<int>(threadIdx.x));
  for (int i = 0; i < steps; ++i) x = x * kFactor + kSummand;
  sums[(size_t(batch) * parts + part) * kThreads + threadIdx.x] += x;
}

__global__ void run_one_batch(uint32_t* sums, int batch, int steps) {
  work(sums, batch, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), steps);
}

__global__ void run_all_batches(uint32_t* sums, int batches, int steps) {
  for (int batch = 0; batch < batches; ++batch)
    work(sums, batch, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), steps);
}

struct Ticket {
  unsigned number;
};

/// What the host and the kernel tell each other.
struct Queue {
  unsigned there;    ///< so many batches have been given
  unsigned running;  ///< 1 once the kernel runs
};

/// @param tickets how many have been taken; 0 at first
/// @param queue in pinned memory
__global__ void run_from_queue(uint32_t* sums, unsigned* tickets, Queue* queue, int batches, int steps) {
  Ticket& ticket = ladder::shared_storage<Ticket>();
  const int parts = static_cast<int>(gridDim.x);
  unsigned seen = 0;  // batches in the queue when it was looked at last
  using OfSystem = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;
  if (blockIdx.x == 0 && threadIdx.x == 0) OfSystem(queue->running).store(1u, cuda::memory_order_relaxed);
  while (true) {
    if (threadIdx.x == 0) {
      ticket.number = atomicAdd(tickets, 1u);
      const unsigned batch = ticket.number / static_cast<unsigned>(parts);
      // The acquire stands for all that the host has written before it gave the batch.
      while (batch < static_cast<unsigned>(batches) && seen <= batch)
        seen = OfSystem(queue->there).load(cuda::memory_order_acquire);
    }
    __syncthreads();
    const int number = static_cast<int>(ticket.number);
    __syncthreads();  // all have read it before the next is taken
    if (number / parts >= batches) return;
    work(sums, number / parts, number % parts, parts, steps);
  }
}

/// The end of a chain, without walking it: all steps are one multiply-add whose numbers are found by
/// doubling.
class Chains {
 public:
  explicit Chains(int steps) {
    uint32_t factor = kFactor, summand = kSummand;  // of a power of two of steps
    for (; steps; steps /= 2) {
      if (steps % 2) {
        factor_ *= factor;
        summand_ = summand_ * factor + summand;
      }
      summand = summand * factor + summand;
      factor *= factor;
    }
  }
  uint32_t end_of(uint32_t x) const { return x * factor_ + summand_; }

 private:
  uint32_t factor_ = 1, summand_ = 0;
};

/// All ways to run the same batches.
class SmallBatches {
 public:
  SmallBatches(int batches, int parts, int steps)
      : batches_(batches),
        parts_(parts),
        steps_(steps),
        sums_(size_t(batches) * parts * kThreads),
        tickets_(1),
        queue_(1) {
    CUDA_CHECK(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
    launch_each();
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(stream(), &graph));
    graph_.reset(graph);
    cudaGraphExec_t exec = nullptr;
    CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    exec_.reset(exec);
  }

  /// Each returns when all is done.
  void run_loop() {
    host_us_ = host_us([&] {
      ladder::launch(run_all_batches, config("run_all_batches", 0), sums_.data(), batches_, steps_);
    });
    wait();
  }
  void run_launches() {
    host_us_ = host_us([&] { launch_each(); });
    wait();
  }
  void run_graph() {
    host_us_ = host_us([&] { CUDA_CHECK(cudaGraphLaunch(exec_.get(), stream())); });
    wait();
  }
  void run_queue() {
    host_us_ = host_us([&] {
      std::atomic_ref<unsigned> there(queue_.data()->there), running(queue_.data()->running);
      there = 0;
      running = 0;
      const auto give = [&] {
        for (int batch = 1; batch <= batches_; ++batch)
          there.store(static_cast<unsigned>(batch), std::memory_order_release);
      };
      CUDA_CHECK(cudaMemsetAsync(tickets_.data(), 0, sizeof(unsigned), stream()));
      // The CPU device runs a kernel whole, in a call of the host: the queue must be full before.
      if (ladder::on_cpu_device()) give();
      // A thread of its own, because a launch may wait for the kernel's end: debuggers and sanitizers do
      // that.
      std::atomic<bool> refused = false;
      std::thread giver([&] {
        while (!ladder::on_cpu_device() && !running && !refused) std::this_thread::yield();
        give();
      });
      try {
        ladder::launch(run_from_queue, config("run_from_queue", sizeof(Ticket)), sums_.data(),
                       tickets_.data(), queue_.data(), batches_, steps_);
      } catch (...) {
        refused = true;
        giver.join();
        throw;
      }
      giver.join();
    });
    wait();
  }

  double host_us_of_last_run() const { return host_us_; }

  /// @throws std::runtime_error unless `run` does the work of every part of every batch once
  void check(const std::string& how, const std::function<void()>& run) {
    CUDA_CHECK(cudaMemsetAsync(sums_.data(), 0, sums_.size() * sizeof(uint32_t), stream()));
    run();
    PinnedBuffer<uint32_t> sums(sums_.size());
    CUDA_CHECK(cudaMemcpyAsync(sums.data(), sums_.data(), sums.size() * sizeof(uint32_t),
                               cudaMemcpyDeviceToHost, stream()));
    wait();
    const Chains chains(steps_);
    const uint32_t* sum = sums.data();
    for (int batch = 0; batch < batches_; ++batch)
      for (int part = 0; part < parts_; ++part)
        for (int thread = 0; thread < kThreads; ++thread)
          if (const uint32_t right = chains.end_of(first_value(batch, part, thread)); *sum++ != right)
            throw std::runtime_error(fmt::format("overhead, {}: batch {}, part {}: the sum is {}, must be {}",
                                                 how, batch, part, sum[-1], right));
  }

 private:
  cudaStream_t stream() const { return stream_.get(); }
  void wait() { CUDA_CHECK(cudaStreamSynchronize(stream())); }
  ladder::LaunchConfig config(const char* name, size_t shared_bytes) const {
    return {.name = name,
            .grid = dim3(static_cast<unsigned>(parts_)),
            .block = dim3(kThreads),
            .shared_bytes = shared_bytes,
            .stream = stream()};
  }
  void launch_each() {
    for (int batch = 0; batch < batches_; ++batch)
      ladder::launch(run_one_batch, config("run_one_batch", 0), sums_.data(), batch, steps_);
  }

  int batches_, parts_, steps_;
  ladder::DeviceBuffer<uint32_t> sums_;
  ladder::DeviceBuffer<unsigned> tickets_;
  PinnedBuffer<Queue> queue_;
  ladder::Stream stream_ = ladder::make_stream();
  ladder::Graph graph_;
  ladder::GraphExec exec_;
  double host_us_ = 0;
};

struct Way {
  std::string name;
  void (SmallBatches::*run)();
};

void run_overhead(const Context& context) {
  const bool cpu = ladder::on_cpu_device();
  const int batches = context.batches, parts = cpu ? 4 : ladder::device_info().multiprocessors;
  const std::vector<Way> ways = {{"one kernel that knows them all", &SmallBatches::run_loop},
                                 {"a launch for each", &SmallBatches::run_launches},
                                 {"one graph", &SmallBatches::run_graph},
                                 {"a queue", &SmallBatches::run_queue}};
  const std::vector<int> steps = cpu ? std::vector{0, 20} : std::vector{0, 2'000, 20'000};
  std::vector<std::unique_ptr<SmallBatches>> all;
  std::vector<Variant> variants;
  for (const int one : steps) {
    SmallBatches& of_size = *all.emplace_back(std::make_unique<SmallBatches>(batches, parts, one));
    for (const Way& way : ways) {
      const auto run = [&of_size, run = way.run] { (of_size.*run)(); };
      of_size.check(way.name, run);
      variants.push_back({way.name, {{"how", way.name}, {"steps", std::to_string(one)}}, run});
    }
  }
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  context.out << batches << " batches of " << parts << " blocks\n";
  ladder::Table table(context.out, {{"steps", 6},
                                    {"batches come by", 30, false},
                                    {"us a batch", 10},
                                    {"predicted", 9},
                                    {"host us a batch", 15}});
  table.header();
  for (size_t i = 0; i < variants.size(); ++i) {
    const size_t way = i % ways.size(), first = i - way;
    const auto of_batch = [&](size_t variant) { return measured[variant].median_us / batches; };
    // What an empty batch costs beyond the loop's, and what the work costs alone.
    std::optional<double> predicted;
    if (way && first) predicted = of_batch(way) - of_batch(0) + of_batch(first);
    variants[i].run();  // for the host's time
    const double host = all[first / ways.size()]->host_us_of_last_run() / batches;
    ladder::Settings& settings = variants[i].settings;
    settings["us_a_batch"] = ladder::fixed(of_batch(i), 2);
    settings["predicted_us"] = predicted ? ladder::fixed(*predicted, 2) : "-";
    settings["host_us_a_batch"] = cpu ? "-" : ladder::fixed(host, 2);
    table.row({settings.at("steps"), variants[i].label, settings["us_a_batch"], settings["predicted_us"],
               settings["host_us_a_batch"]});
    add_result(context, "overhead", variants[i], {}, measured[i], {}, /*verified=*/true);
  }
  context.out
      << "predicted: what this way costs an empty batch, and the work of one kernel that knows them all\n";
}

}  // namespace

const Experiment& overhead_experiment() {
  static const Experiment experiment = {
      "overhead", "What does a batch cost by a launch, in a graph, and from a persistent kernel's queue?",
      run_overhead};
  return experiment;
}

}  // namespace lesson07
