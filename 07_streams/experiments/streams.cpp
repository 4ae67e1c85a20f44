/// @file
/// Experiment `streams`: how many streams it takes until uploads, kernels and downloads go on at once.
///
/// One stream runs its work in order, so at any time only one engine of the GPU has something to do. Three
/// engines work on one batch after the other: three streams are what the idea asks for.
#include <algorithm>

#include "07_streams/experiments/support.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace lesson07 {
namespace {

constexpr int kMaxStreams = 4;

/// How many copies this device can make beside kernels, in its own words.
int copy_engines() {
  int device = 0, engines = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&engines, cudaDevAttrAsyncEngineCount, device));
  return engines;
}

void run_streams(const Context& context) {
  const ladder::Shape& shape = context.shape;
  const int batches = announced_batches(context);
  const RandomWeights weights(shape.k, shape.n);
  const std::vector<ladder::Stream> all = make_streams(kMaxStreams);
  std::vector<BatchSlot> slots = make_slots(weights, shape.m, kMaxStreams);

  const auto each_batch = [&](const auto& step) {
    for (int batch = 0; batch < batches; ++batch) step(slots[batch % kMaxStreams]);
    wait_for(all);
  };
  const auto upload = [&](BatchSlot& slot) { slot.upload(all[0].get()); };
  const auto download = [&](BatchSlot& slot) { slot.download(all[1].get()); };
  std::vector<Variant> variants = {
      {"uploads", {{"measures", "uploads"}}, [&] { each_batch(upload); }},
      {"downloads", {{"measures", "downloads"}}, [&] { each_batch(download); }},
      // Nothing orders the two streams: A and C of a slot have nothing in common.
      {"both ways",
       {{"measures", "both ways"}},
       [&] {
         each_batch([&](BatchSlot& slot) {
           upload(slot);
           download(slot);
         });
       }},
      {"kernels", {{"measures", "kernels"}}, [&] {
         each_batch([&](BatchSlot& slot) { slot.multiply(all[0].get()); });
       }}};
  const size_t parts = variants.size();
  std::vector<std::vector<ladder::Stream>> streams;
  for (int count = 1; count <= kMaxStreams; ++count) streams.push_back(make_streams(count));
  for (const auto& some : streams)
    variants.push_back({std::to_string(some.size()),
                        {{"measures", "pipeline"}, {"streams", std::to_string(some.size())}},
                        [&] { run_round_robin(slots, some, batches); }});

  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);
  const double uploads = measured[0].median_us, downloads = measured[1].median_us;
  const double both_ways = measured[2].median_us, kernels = measured[3].median_us;
  const double bound = std::max(both_ways, kernels);

  const auto gb_per_s = [&](double elements, double us) {
    return ladder::fixed(2 * elements * batches / us * 1e-3, 1) + " GB/s";
  };
  const double a = double(shape.m) * shape.k, c = double(shape.m) * shape.n;
  context.out << "copy engines: " << copy_engines() << "\nuploads " << gb_per_s(a, uploads) << ", downloads "
              << gb_per_s(c, downloads) << ", both at once " << gb_per_s(a, both_ways) << " up and "
              << gb_per_s(c, both_ways) << " down\nkernels: " << us_text(kernels / batches)
              << " us a batch\n\n";

  ladder::Table table(
      context.out,
      {{"streams", 7}, {"us a batch", 10}, {"bound us", 8}, {"time/bound", 10}, {"all three at once", 17}});
  table.header();
  for (size_t i = 0; i < variants.size(); ++i) {
    const double time = measured[i].median_us;
    const bool pipeline = i >= parts;
    add_result(context, "streams", variants[i], shape, measured[i],
               pipeline ? std::optional(bound) : std::optional<double>());
    if (!pipeline) continue;
    // In `time`, two engines at once can work for 2 * time at most. What they did beyond that, all three did.
    const double all_three = std::max(0.0, uploads + downloads + kernels - 2 * time);
    table.row({variants[i].label, us_text(time / batches), us_text(bound / batches),
               ladder::fixed(time / bound, 2), "at least " + percent_text(all_three, time)});
  }
}

}  // namespace

const Experiment& streams_experiment() {
  static const Experiment experiment = {
      "streams", "How many streams does it take to upload, compute and download at once?", run_streams};
  return experiment;
}

}  // namespace lesson07
