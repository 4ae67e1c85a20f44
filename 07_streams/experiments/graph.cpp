/// @file
/// Experiment `graph`: the same schedule captured once as a CUDA graph and launched many times, against calls
/// for every operation.
///
/// Capturing runs nothing: calls in the streams become nodes, and stream order and events become edges. One
/// stream begins the capture, the others join it by waiting for its event, and it must wait for theirs before
/// it ends.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <stdexcept>

#include "07_streams/experiments/support.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/problem/bf16.hpp"

namespace lesson07 {
namespace {

/// Host functions are captured like everything else, and run at every launch.
void count_batch(void* counter) { static_cast<std::atomic<int>*>(counter)->fetch_add(1); }

/// A schedule over several streams that begins and ends in the first.
class CapturedBatches {
 public:
  CapturedBatches(const RandomWeights& weights, int rows, int streams, int batches)
      : slots_(make_slots(weights, rows, streams)), streams_(make_streams(streams)), batches_(batches) {
    CUDA_CHECK(cudaStreamBeginCapture(first(), cudaStreamCaptureModeThreadLocal));
    enqueue();
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(first(), &graph));
    graph_.reset(graph);
    cudaGraphExec_t exec = nullptr;
    CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    exec_.reset(exec);
  }

  void enqueue() {
    for (size_t i = 1; i < streams_.size(); ++i) order(first(), streams_[i].get(), order_);
    for (int batch = 0; batch < batches_; ++batch) {
      const size_t turn = batch % streams_.size();
      slots_[turn].run(streams_[turn].get());
      CUDA_CHECK(cudaLaunchHostFunc(streams_[turn].get(), count_batch, &completed_));
    }
    for (size_t i = 1; i < streams_.size(); ++i) order(streams_[i].get(), first(), order_);
  }
  void launch_graph() { CUDA_CHECK(cudaGraphLaunch(exec_.get(), first())); }
  void wait() { CUDA_CHECK(cudaStreamSynchronize(first())); }

  /// Batches whose host function has run since the last call.
  int take_completed() { return completed_.exchange(0); }
  /// Writes NaN to every C on the host.
  void spoil() {
    for (BatchSlot& slot : slots_)
      std::fill_n(slot.host_c().data(), slot.host_c().size(), ladder::bf16_from_bits(0xffff));
  }
  /// The bits of C of all slots.
  std::vector<uint16_t> results() {
    std::vector<uint16_t> bits;
    for (BatchSlot& slot : slots_)
      std::transform(slot.host_c().data(), slot.host_c().data() + slot.host_c().size(),
                     std::back_inserter(bits), ladder::bf16_bits);
    return bits;
  }

 private:
  cudaStream_t first() const { return streams_.front().get(); }

  std::vector<BatchSlot> slots_;
  std::vector<ladder::Stream> streams_;
  ladder::Event order_ = ladder::make_order_event();
  int batches_;
  std::atomic<int> completed_{0};
  ladder::Graph graph_;
  ladder::GraphExec exec_;
};

/// @throws std::runtime_error unless the graph does what the calls do, bit for bit
void compare(CapturedBatches& captured, int batches) {
  const auto results_of = [&](const std::function<void()>& start) {
    captured.spoil();
    captured.take_completed();
    start();
    captured.wait();
    if (captured.take_completed() != batches)
      throw std::runtime_error("graph: not every batch has completed");
    return captured.results();
  };
  if (results_of([&] { captured.enqueue(); }) != results_of([&] { captured.launch_graph(); }))
    throw std::runtime_error("graph: the graph's results differ from those of the calls");
}

void run_graph(const Context& context) {
  const ladder::Shape& shape = context.shape;
  const int batches = announced_batches(context);
  const RandomWeights weights(shape.k, shape.n);
  ladder::Table table(context.out,
                      {{"rows", 6}, {"how", 14, false}, {"us a batch", 10}, {"host us a batch", 15}});
  table.header();
  for (const int rows : {std::max(1, shape.m / 32), shape.m}) {
    CapturedBatches captured(weights, rows, context.streams, batches);
    compare(captured, batches);
    double enqueue_us = 0, launch_us = 0;
    const ladder::Settings settings = {{"rows", std::to_string(rows)}};
    std::vector<Variant> variants = {{"calls", settings,
                                      [&] {
                                        enqueue_us = host_us([&] { captured.enqueue(); });
                                        captured.wait();
                                      }},
                                     {"one graph", settings, [&] {
                                        launch_us = host_us([&] { captured.launch_graph(); });
                                        captured.wait();
                                      }}};
    for (Variant& variant : variants) variant.settings["how"] = variant.label;
    const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);
    const double host[] = {enqueue_us, launch_us};
    for (size_t i = 0; i < variants.size(); ++i) {
      table.row({std::to_string(rows), variants[i].label, us_text(measured[i].median_us / batches),
                 host_time_text(host[i] / batches)});
      variants[i].settings["host_us_a_batch"] = host_time_text(host[i] / batches);
      add_result(context, "graph", variants[i], {rows, shape.n, shape.k}, measured[i]);
    }
  }
  context.out << "both give the same results, bit for bit\n";
}

}  // namespace

const Experiment& graph_experiment() {
  static const Experiment experiment = {
      "graph", "What does a schedule cost the host if it is captured once and launched many times?",
      run_graph};
  return experiment;
}

}  // namespace lesson07
