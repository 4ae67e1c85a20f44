/// @file
/// Experiment `waits`: three ways to make a kernel of one stream wait for an upload of another.
///
/// A third stream has a long download to make in every fourth batch, which has nothing to do with either.
/// Together its downloads take as long as the uploads. cudaStreamWaitEvent makes one stream wait for a point
/// in another; the host goes on. cudaStreamSynchronize makes the host wait for one stream: nothing is
/// enqueued meanwhile. cudaDeviceSynchronize makes it wait for all streams, the long download too.
#include "07_streams/experiments/support.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace lesson07 {
namespace {

constexpr int kSlots = 2;
constexpr int kLongEvery = 4;  ///< every 4th batch brings a download that is 4 times as long as its result

enum class Wait { event, stream, device };

struct Streams {
  ladder::Stream uploads = ladder::make_stream(), kernels = ladder::make_stream(),
                 downloads = ladder::make_stream();
  ladder::Event uploaded = ladder::make_order_event();
};

void run_batches_with(Wait wait, const Streams& streams, std::vector<BatchSlot>& slots,
                      BatchSlot& independent, int batches) {
  std::vector<ladder::Event> has_read;  // of each slot: its kernel is over, the next upload may overwrite A
  for (int slot = 0; slot < kSlots; ++slot) has_read.push_back(ladder::make_order_event());
  for (int batch = 0; batch < batches; ++batch) {
    if (batch % kLongEvery == 0)
      for (int i = 0; i < kLongEvery; ++i) independent.download(streams.downloads.get());

    BatchSlot& slot = slots[batch % kSlots];
    if (batch >= kSlots)
      CUDA_CHECK(cudaStreamWaitEvent(streams.uploads.get(), has_read[batch % kSlots].get(), 0));
    slot.upload(streams.uploads.get());
    switch (wait) {
      case Wait::event:
        order(streams.uploads.get(), streams.kernels.get(), streams.uploaded);
        break;
      case Wait::stream:
        CUDA_CHECK(cudaStreamSynchronize(streams.uploads.get()));
        break;
      case Wait::device:
        CUDA_CHECK(cudaDeviceSynchronize());
        break;
    }
    slot.multiply(streams.kernels.get());
    CUDA_CHECK(cudaEventRecord(has_read[batch % kSlots].get(), streams.kernels.get()));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
}

void run_waits(const Context& context) {
  const int batches = announced_batches(context);
  const RandomWeights weights(context.shape.k, context.shape.n);
  std::vector<BatchSlot> slots = make_slots(weights, context.shape.m, kSlots);
  BatchSlot independent(weights, context.shape.m);
  const Streams streams;

  const std::pair<Wait, const char*> ways[] = {{Wait::event, "cudaStreamWaitEvent"},
                                               {Wait::stream, "cudaStreamSynchronize"},
                                               {Wait::device, "cudaDeviceSynchronize"}};
  std::vector<Variant> variants;
  for (const auto& [wait, name] : ways)
    variants.push_back({name, {{"wait", name}}, [&, wait = wait] {
                          run_batches_with(wait, streams, slots, independent, batches);
                        }});
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  ladder::Table table(context.out,
                      {{"wait", 21, false}, {"who waits", 25, false}, {"us a batch", 10}, {"x first", 7}});
  table.header();
  const char* const who[] = {"one stream", "the host, for one stream", "the host, for all streams"};
  for (size_t i = 0; i < variants.size(); ++i) {
    table.row({variants[i].label, who[i], us_text(measured[i].median_us / batches),
               ladder::fixed(measured[i].median_us / measured[0].median_us, 2)});
    add_result(context, "waits", variants[i], context.shape, measured[i]);
  }
}

}  // namespace

const Experiment& waits_experiment() {
  static const Experiment experiment = {"waits", "What does it cost if the host waits where a stream could?",
                                        run_waits};
  return experiment;
}

}  // namespace lesson07
