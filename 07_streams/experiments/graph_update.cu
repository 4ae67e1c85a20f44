/// @file
/// Experiment `graph_update`: what a graph costs whose arguments change with every launch, and what its nodes
/// may be beside kernels and copies.
///
/// A batch is a chain of small kernels, each of which works on what the one before has left, and a download.
/// Its number is an argument of every kernel, so a graph must learn it: by a new graph for each batch, or by
/// cudaGraphExecUpdate, which gives an executable graph the arguments of another graph of the same form. In
/// other variants a kernel begins before the one before has ended (programmatic dependent launch), or the
/// batch takes its memory when it begins and gives it back: captured, these become edges and nodes.
#include <fmt/core.h>
#include <stdexcept>

#include "07_streams/experiments/support.hpp"
#include "07_streams/pinned_ring.hpp"
#include "07_streams/stream_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/ptx/grid_dependency.cuh"

namespace lesson07 {
namespace {

constexpr int kThreads = 128, kKernels = 20;
constexpr unsigned kFactor = 1664525, kSummand = 1013904223;

__host__ __device__ unsigned next(unsigned x) { return x * kFactor + kSummand; }

/// Every thread computes `steps` products, each of which waits for the one before, and then goes on with the
/// value of the kernel before: `value = next(value) + batch`.
/// @param values [blocks, threads]
__global__ void add_batch(unsigned* values, unsigned* ends, unsigned batch, int steps) {
  ptx::griddepcontrol_launch_dependents();
  unsigned x = batch;
  for (int i = 0; i < steps; ++i) x = next(x);
  ptx::griddepcontrol_wait();
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  values[i] = next(values[i]) + batch;
  ends[i] = x;  // so that the arithmetic is not in vain
}

/// A batch by calls and by graphs.
class Batch {
 public:
  Batch(int blocks, int steps)
      : blocks_(blocks), steps_(steps), values_(size()), ends_(size()), result_(size()) {}

  /// Each starts a batch and returns before it is over.
  void call(unsigned batch) { enqueue(batch, values_.data()); }
  void call_early(unsigned batch) {
    early_ = true;
    call(batch);
    early_ = false;
  }
  void call_with_allocation(unsigned batch) {
    StreamBuffer<unsigned> values(pool_, size(), stream());
    enqueue(batch, values.data());
    values.free();
  }
  /// A batch as one of the calls above starts it, as a graph that is launched as it is.
  template <void (Batch::*kCalls)(unsigned)>
  void launch_same() {
    if (!exec_) exec_ = instantiated(captured<kCalls>(kSame).get());
    launch(exec_);
  }
  void launch_new(unsigned batch) {
    exec_ = instantiated(captured<&Batch::call>(batch).get());
    launch(exec_);
  }
  void launch_updated(unsigned batch) {
    const ladder::Graph graph = captured<&Batch::call>(batch);
    if (exec_) {
      cudaGraphExecUpdateResultInfo info{};
      CUDA_CHECK(cudaGraphExecUpdate(exec_.get(), graph.get(), &info));
    } else {
      exec_ = instantiated(graph.get());
    }
    launch(exec_);
  }

  void wait() { CUDA_CHECK(cudaStreamSynchronize(stream())); }
  /// @throws std::runtime_error unless the last batch was this one
  void check(const std::string& how, unsigned batch) const {
    unsigned right = 0;
    for (int i = 0; i < kKernels; ++i) right = next(right) + batch;
    for (size_t i = 0; i < size(); ++i)
      if (result_.data()[i] != right)
        throw std::runtime_error(fmt::format("graph_update, {}: batch {}: value {} is {}, must be {}", how,
                                             batch, i, result_.data()[i], right));
  }
  static constexpr unsigned kSame = 7;  ///< the batch of graphs that are launched as they are

 private:
  size_t size() const { return size_t(blocks_) * kThreads; }
  cudaStream_t stream() const { return stream_.get(); }
  void launch(const ladder::GraphExec& exec) { CUDA_CHECK(cudaGraphLaunch(exec.get(), stream())); }

  void enqueue(unsigned batch, unsigned* values) {
    CUDA_CHECK(cudaMemsetAsync(values, 0, size() * sizeof(unsigned), stream()));
    for (int i = 0; i < kKernels; ++i)
      ladder::launch(add_batch,
                     {.name = "add_batch",
                      .grid = dim3(static_cast<unsigned>(blocks_)),
                      .block = kThreads,
                      .stream = stream(),
                      .pdl = early_ && i > 0},
                     values, ends_.data(), batch, steps_);
    CUDA_CHECK(
        cudaMemcpyAsync(result_.data(), values, size() * sizeof(unsigned), cudaMemcpyDeviceToHost, stream()));
  }

  template <void (Batch::*kCalls)(unsigned)>
  ladder::Graph captured(unsigned batch) {
    CUDA_CHECK(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
    (this->*kCalls)(batch);
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(stream(), &graph));
    return ladder::Graph(graph);
  }
  static ladder::GraphExec instantiated(cudaGraph_t graph) {
    cudaGraphExec_t exec = nullptr;
    CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    return ladder::GraphExec(exec);
  }

  int blocks_, steps_;
  bool early_ = false;
  ladder::DeviceBuffer<unsigned> values_, ends_;
  PinnedBuffer<unsigned> result_;
  MemoryPool pool_;
  ladder::Stream stream_ = ladder::make_stream();
  ladder::GraphExec exec_;
};

struct Way {
  const char* memory_and_edges;
  const char* how;
  std::function<void(Batch&, unsigned)> start;
  bool is_same = false;  ///< every launch is of batch kSame
};

const std::vector<Way> kWays = {
    {"plain", "calls", [](Batch& batch, unsigned number) { batch.call(number); }},
    {"plain", "the same graph again", [](Batch& batch, unsigned) { batch.launch_same<&Batch::call>(); },
     true},
    {"plain", "a graph instantiated for each",
     [](Batch& batch, unsigned number) { batch.launch_new(number); }},
    {"plain", "one graph, updated for each",
     [](Batch& batch, unsigned number) { batch.launch_updated(number); }},
    {"kernels begin early", "calls", [](Batch& batch, unsigned number) { batch.call_early(number); }},
    {"kernels begin early", "the same graph again",
     [](Batch& batch, unsigned) { batch.launch_same<&Batch::call_early>(); }, true},
    {"memory from a pool", "calls",
     [](Batch& batch, unsigned number) { batch.call_with_allocation(number); }},
    {"memory from a pool", "the same graph again",
     [](Batch& batch, unsigned) { batch.launch_same<&Batch::call_with_allocation>(); }, true}};

void run_graph_update(const Context& context) {
  const bool cpu = ladder::on_cpu_device();
  const int batches = cpu ? 3 : 50;
  std::vector<std::unique_ptr<Batch>> all;
  std::vector<Variant> variants;
  std::vector<double> host(kWays.size());
  for (size_t i = 0; i < kWays.size(); ++i) {
    all.push_back(std::make_unique<Batch>(cpu ? 2 : ladder::device_info().multiprocessors, cpu ? 4 : 300));
    const Way& way = kWays[i];
    variants.push_back(
        {way.how, {{"batch", way.memory_and_edges}, {"how", way.how}}, [&, &batch = *all.back(), i] {
           host[i] = host_us([&] {
             for (int number = 1; number <= batches; ++number)
               way.start(batch, static_cast<unsigned>(number));
           });
           batch.wait();
           batch.check(way.how, way.is_same ? Batch::kSame : static_cast<unsigned>(batches));
         }});
  }
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  context.out << batches << " batches of " << kKernels << " kernels\n";
  ladder::Table table(
      context.out,
      {{"batch", 20, false}, {"started by", 30, false}, {"us a batch", 10}, {"host us a batch", 15}});
  table.header();
  for (size_t i = 0; i < variants.size(); ++i) {
    ladder::Settings& settings = variants[i].settings;
    settings["us_a_batch"] = us_text(measured[i].median_us / batches);
    settings["host_us_a_batch"] = host_time_text(host[i] / batches);
    table.row({settings["batch"], settings["how"], settings["us_a_batch"], settings["host_us_a_batch"]});
    add_result(context, "graph_update", variants[i], {}, measured[i], {}, /*verified=*/true);
  }
}

}  // namespace

const Experiment& graph_update_experiment() {
  static const Experiment experiment = {
      "graph_update",
      "What does a graph cost whose arguments change, whose kernels overlap, or that allocates?",
      run_graph_update};
  return experiment;
}

}  // namespace lesson07
