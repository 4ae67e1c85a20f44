/// @file
/// Experiment `layers`: two layers of a network in two streams, layer 1 of the next batch beside layer 2 of
/// this one.
///
/// Events order the hand-over: layer 2 waits until its H has been made; layer 1 waits until the H that it
/// overwrites has been used. The stream of layer 2 may have a higher priority: when a block ends and both
/// kernels have blocks waiting, its blocks go first, so that batches leave as early as they can. All this can
/// only gain where one layer's kernel leaves multiprocessors idle.
#include "07_streams/experiments/layers.hpp"

#include <algorithm>

#include "07_streams/drain.hpp"
#include "07_streams/experiments/devices.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/problem/fill.hpp"
#include "common/host/verify/verifier.hpp"

namespace lesson07 {

LayersOfOneGpu::LayersOfOneGpu(const RandomWeights& first, const RandomWeights& second, int rows)
    : first_(first), second_(second), rows_(rows), y_(size_t(rows) * second.n), expected_(kInputs) {
  for (int input = 0; input < kInputs; ++input) {
    x_.emplace_back(size_t(rows) * first.k);
    ladder::fill(x_.back().data(), x_.back().size(), values(input));
  }
  for (int slot = 0; slot < kSlots; ++slot) {
    h_.emplace_back(size_t(rows) * first.n);
    made_.push_back(ladder::make_order_event());
    used_.push_back(ladder::make_order_event());
  }
  CUDA_CHECK(cudaDeviceSynchronize());
}

LayersOfOneGpu::~LayersOfOneGpu() {
  quietly([] { cudaDeviceSynchronize(); });  // after an error, what was enqueued still uses the memory
}

ladder::IntegerValues LayersOfOneGpu::values(int input) const {
  return {4 + static_cast<uint64_t>(input), ladder::integer_magnitude(first_.k)};
}

void LayersOfOneGpu::run(int batches, cudaStream_t layer1, cudaStream_t layer2, SampledRows* sampled,
                         LeftOut left_out) {
  for (int batch = 0; batch < batches; ++batch) {
    const size_t slot = batch % kSlots;
    if (batch >= kSlots && left_out != LeftOut::until_used)
      CUDA_CHECK(cudaStreamWaitEvent(layer1, used_[slot].get(), 0));
    multiply(first_, x_[batch % kInputs].data(), h_[slot].data(), rows_, layer1);
    CUDA_CHECK(cudaEventRecord(made_[slot].get(), layer1));
    if (left_out != LeftOut::until_made) CUDA_CHECK(cudaStreamWaitEvent(layer2, made_[slot].get(), 0));
    multiply(second_, h_[slot].data(), y_.data(), rows_, layer2);
    CUDA_CHECK(cudaEventRecord(used_[slot].get(), layer2));
    if (sampled) sampled->take(batch, y_.data(), layer2);
  }
  CUDA_CHECK(cudaStreamSynchronize(layer1));
  CUDA_CHECK(cudaStreamSynchronize(layer2));
}

void LayersOfOneGpu::check(const std::string& who, cudaStream_t layer1, cudaStream_t layer2,
                           LeftOut left_out) {
  constexpr int kBatches = 5;  // every slot and every input again, in other pairs
  SampledRows sampled(rows_, second_.n, kBatches);
  run(kBatches, layer1, layer2, &sampled, left_out);
  for (int batch = 0; batch < kBatches; ++batch) {
    std::vector<float>& expected = expected_[batch % kInputs];
    if (expected.empty()) expected = expected_rows(batch, sampled.rows());
    sampled.check("layers, " + who, batch, expected);
  }
}

std::vector<float> LayersOfOneGpu::expected_rows(int batch, const std::vector<int>& rows) const {
  const ladder::IntegerValues x = values(batch % kInputs);
  std::vector<float> a;
  for (const int row : rows)
    for (int step = 0; step < first_.k; ++step)
      a.push_back(ladder::to_float(x(uint64_t(row) * first_.k + step)));
  std::vector<float> h = multiply_exactly(a, first_.values, first_.k, first_.n);
  for (float& value : h) value = ladder::to_float(ladder::to_bf16(value));
  return multiply_exactly(h, second_.values, second_.k, second_.n);
}

namespace {

void run_layers(const Context& context) {
  const int n = context.shape.n, k = context.shape.k, batches = announced_batches(context);
  const RandomWeights first(k, n, 1), second(n, k, 2);
  const ladder::Stream one = ladder::make_stream(), other = ladder::make_stream(),
                       urgent = make_urgent_stream();

  ladder::Table table(context.out, {{"rows", 6},
                                    {"one stream us", 13},
                                    {"two streams us", 14},
                                    {"gain", 5},
                                    {"layer 2 first us", 16},
                                    {"gain", 5}});
  table.header();
  const int smallest = std::max(1, context.shape.m / 16);
  for (const int rows : {smallest, std::max(1, context.shape.m / 4), context.shape.m}) {
    LayersOfOneGpu layers(first, second, rows);
    // Every check costs the CPU device a second; waits are the same for all sizes.
    const bool checked = !ladder::on_cpu_device() || rows == smallest;
    if (checked) {
      layers.check("one stream", one.get(), one.get());
      layers.check("two streams", one.get(), other.get());
      layers.check("layer 2 first", one.get(), urgent.get());
    }
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
      add_result(context, "layers", variants[i], {rows, n, k}, measured[i], {}, checked);
  }
  context.out << "us of both layers of one batch\n";
}

}  // namespace

const Experiment& layers_experiment() {
  static const Experiment experiment = {
      "layers", "Does it pay to run layer 1 of a batch beside layer 2 of the batch before?", run_layers};
  return experiment;
}

}  // namespace lesson07
