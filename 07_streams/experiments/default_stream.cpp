/// @file
/// Experiment `default_stream`: what one operation in stream 0 does to the others.
///
/// Stream 0, the legacy default stream, waits for all work of blocking streams (cudaStreamCreate makes
/// those), and they wait for it. Streams with cudaStreamNonBlocking do neither. The third kind, default
/// streams of a thread, is a matter of how a file is compiled: 07_default_streams.
#include "07_streams/experiments/support.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace lesson07 {
namespace {

std::vector<ladder::Stream> make_blocking_streams(int count) {
  std::vector<ladder::Stream> streams;
  for (int i = 0; i < count; ++i) {
    cudaStream_t stream = nullptr;
    CUDA_CHECK(cudaStreamCreate(&stream));
    streams.emplace_back(stream);
  }
  return streams;
}

void run_default_stream(const Context& context) {
  const int batches = announced_batches(context);
  const RandomWeights weights(context.shape.k, context.shape.n);
  std::vector<BatchSlot> slots = make_slots(weights, context.shape.m, context.streams);
  const std::vector<ladder::Stream> blocking = make_blocking_streams(context.streams),
                                    non_blocking = make_streams(context.streams);
  ladder::DeviceBuffer<int> counter(1);

  /// What a library without a stream parameter does behind one's back. It takes no time itself.
  const auto stray = [&] { CUDA_CHECK(cudaMemsetAsync(counter.data(), 0, sizeof(int), cudaStreamLegacy)); };
  const auto in = [&](const std::vector<ladder::Stream>& streams, bool with_stray) {
    return [&, with_stray] {
      for (int batch = 0; batch < batches; ++batch) {
        slots[batch % streams.size()].run(streams[batch % streams.size()].get());
        if (with_stray) stray();
      }
      CUDA_CHECK(cudaDeviceSynchronize());
    };
  };
  std::vector<Variant> variants = {{"non-blocking", {{"stray", "no"}}, in(non_blocking, false)},
                                   {"non-blocking", {{"stray", "one a batch"}}, in(non_blocking, true)},
                                   {"blocking", {{"stray", "no"}}, in(blocking, false)},
                                   {"blocking", {{"stray", "one a batch"}}, in(blocking, true)},
                                   {"stream 0", {{"stray", "no"}}, [&] {
                                      for (int batch = 0; batch < batches; ++batch)
                                        slots[batch % slots.size()].run(cudaStreamLegacy);
                                      CUDA_CHECK(cudaDeviceSynchronize());
                                    }}};
  for (Variant& variant : variants) variant.settings["streams"] = variant.label;
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  ladder::Table table(
      context.out,
      {{"batches run in", 14, false}, {"memset in stream 0", 18, false}, {"us a batch", 10}, {"x first", 7}});
  table.header();
  for (size_t i = 0; i < variants.size(); ++i) {
    table.row({variants[i].label, variants[i].settings.at("stray"), us_text(measured[i].median_us / batches),
               ladder::fixed(measured[i].median_us / measured[0].median_us, 2)});
    add_result(context, "default_stream", variants[i], context.shape, measured[i]);
  }
}

}  // namespace

const Experiment& default_stream_experiment() {
  static const Experiment experiment = {
      "default_stream", "What does one operation in the legacy default stream do to the other streams?",
      run_default_stream};
  return experiment;
}

}  // namespace lesson07
