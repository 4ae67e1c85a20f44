/// @file
/// Experiment `layers`: two layers of a network in two streams, layer 1 of the next batch beside layer 2 of
/// this one.
///
/// Events order the hand-over: layer 2 waits until its H has been made; layer 1 waits until the H that it
/// overwrites has been used. The stream of layer 2 may have a higher priority: when a block ends and both
/// kernels have blocks waiting, its blocks go first, so that batches leave as early as they can. All this can
/// only gain where one layer's kernel leaves multiprocessors idle.
#include <algorithm>

#include "07_streams/experiments/support.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/problem/fill.hpp"
#include "common/host/verify/verifier.hpp"

namespace lesson07 {
namespace {

using bf16 = __nv_bfloat16;

constexpr int kSlots = 2;  ///< of H: one is made while the other is used

ladder::Stream make_high_priority_stream() {
  int lowest = 0, highest = 0;
  CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));  // lower numbers go first
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest));
  return ladder::Stream(stream);
}

/// Y = X * B1 * B2 for a number of batches; X is the same for all.
class TwoLayers {
 public:
  TwoLayers(const RandomWeights& first, const RandomWeights& second, int rows)
      : first_(first), second_(second), rows_(rows), x_(size_t(rows) * first.k), y_(size_t(rows) * second.n) {
    ladder::fill(x_.data(), x_.size(), ladder::IntegerValues{4, ladder::integer_magnitude(first.k)});
    for (int slot = 0; slot < kSlots; ++slot) {
      h_.emplace_back(size_t(rows) * first.n);
      made_.push_back(ladder::make_order_event());
      used_.push_back(ladder::make_order_event());
    }
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  void run(int batches, cudaStream_t layer1, cudaStream_t layer2) {
    for (int batch = 0; batch < batches; ++batch) {
      const size_t slot = batch % kSlots;
      if (batch >= kSlots) CUDA_CHECK(cudaStreamWaitEvent(layer1, used_[slot].get(), 0));
      multiply(first_, x_.data(), h_[slot].data(), rows_, layer1);
      CUDA_CHECK(cudaEventRecord(made_[slot].get(), layer1));
      CUDA_CHECK(cudaStreamWaitEvent(layer2, made_[slot].get(), 0));
      multiply(second_, h_[slot].data(), y_.data(), rows_, layer2);
      CUDA_CHECK(cudaEventRecord(used_[slot].get(), layer2));
    }
    CUDA_CHECK(cudaStreamSynchronize(layer1));
    CUDA_CHECK(cudaStreamSynchronize(layer2));
  }

 private:
  const RandomWeights &first_, &second_;
  int rows_;
  ladder::DeviceBuffer<bf16> x_, y_;
  std::vector<ladder::DeviceBuffer<bf16>> h_;
  std::vector<ladder::Event> made_, used_;
};

void run(const Context& context) {
  const int n = context.shape.n, k = context.shape.k, batches = announced_batches(context);
  const RandomWeights first(k, n, 1), second(n, k, 2);
  const ladder::Stream one = ladder::make_stream(), other = ladder::make_stream(),
                       urgent = make_high_priority_stream();

  ladder::Table table(context.out, {{"rows", 6},
                                    {"one stream us", 13},
                                    {"two streams us", 14},
                                    {"gain", 5},
                                    {"layer 2 first us", 16},
                                    {"gain", 5}});
  table.header();
  for (const int rows :
       {std::max(1, context.shape.m / 16), std::max(1, context.shape.m / 4), context.shape.m}) {
    TwoLayers layers(first, second, rows);
    const std::vector<Variant> variants = {
        {"one stream", {{"streams", "1"}}, [&] { layers.run(batches, one.get(), one.get()); }},
        {"two streams", {{"streams", "2"}}, [&] { layers.run(batches, one.get(), other.get()); }},
        {"layer 2 first", {{"streams", "2"}, {"priority", "layer 2"}}, [&] {
           layers.run(batches, one.get(), urgent.get());
         }}};
    const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);
    const auto each = [&](size_t i) { return us_text(measured[i].median_us / batches); };
    const auto gain = [&](size_t i) {
      return ladder::fixed(measured[0].median_us / measured[i].median_us, 2);
    };
    table.row({std::to_string(rows), each(0), each(1), gain(1), each(2), gain(2)});
    for (size_t i = 0; i < variants.size(); ++i)
      add_result(context, "layers", variants[i], {rows, n, k}, measured[i]);
  }
  context.out << "us of both layers of one batch\n";
}

}  // namespace

const Experiment& layers_experiment() {
  static const Experiment experiment = {
      "layers", "Does it pay to run layer 1 of a batch beside layer 2 of the batch before?", run};
  return experiment;
}

}  // namespace lesson07
