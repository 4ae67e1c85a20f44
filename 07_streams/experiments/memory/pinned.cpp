/// @file
/// Experiment `pinned`: what page-locked host memory is worth.
///
/// A copy engine reads physical pages, and only page-locked ("pinned") ones stay where they are. From
/// pageable memory the driver therefore copies through a pinned buffer of its own: the host takes part, and
/// the call returns only when the host's part is done. cudaHostRegister pins memory that is there already.
#include <algorithm>

#include "07_streams/experiments/support.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace lesson07 {
namespace {

constexpr HostMemory kMemories[] = {HostMemory::pageable, HostMemory::registered, HostMemory::pinned};

/// What is measured of each kind of memory, in this order.
enum Measurement { upload, download, kernels, pipeline, kMeasurements };

void run_pinned(const Context& context) {
  const ladder::Shape& shape = context.shape;
  const int batches = announced_batches(context);
  const RandomWeights weights(shape.k, shape.n);
  const std::vector<ladder::Stream> streams = make_streams(context.streams);
  std::vector<std::vector<BatchSlot>> slots;
  for (HostMemory memory : kMemories) slots.push_back(make_slots(weights, shape.m, context.streams, memory));

  std::vector<Variant> variants;
  for (size_t i = 0; i < std::size(kMemories); ++i) {
    // Alone: one step of all batches, in one stream.
    const auto alone = [&, i](const std::string& step, void (BatchSlot::*run_step)(cudaStream_t)) {
      variants.push_back({step, {{"memory", name_of(kMemories[i])}, {"measures", step}}, [&, i, run_step] {
                            for (int batch = 0; batch < batches; ++batch)
                              (slots[i][batch % slots[i].size()].*run_step)(streams[0].get());
                            wait_for(streams);
                          }});
    };
    alone("upload", &BatchSlot::upload);
    alone("download", &BatchSlot::download);
    alone("kernels", &BatchSlot::multiply);
    variants.push_back({"pipeline", {{"memory", name_of(kMemories[i])}, {"measures", "pipeline"}}, [&, i] {
                          run_round_robin(slots[i], streams, batches);
                        }});
  }
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  ladder::Table table(context.out, {{"host memory", 11, false},
                                    {"upload us", 9},
                                    {"GB/s", 6},
                                    {"download us", 11},
                                    {"GB/s", 6},
                                    {"kernel us", 9},
                                    {"pipeline us", 11},
                                    {"bound us", 8},
                                    {"hidden", 7}});
  table.header();
  for (size_t i = 0; i < std::size(kMemories); ++i) {
    const Measured* of = &measured[i * kMeasurements];
    const auto each = [&](Measurement what) { return of[what].median_us / batches; };
    const auto gb_per_s = [](const HostArray& array, double us) {
      return ladder::fixed(static_cast<double>(array.bytes()) / us * 1e-3, 1);
    };
    const double sum = each(upload) + each(download) + each(kernels);
    const double longest = std::max({each(upload), each(download), each(kernels)});
    table.row({name_of(kMemories[i]), us_text(each(upload)), gb_per_s(slots[i][0].host_a(), each(upload)),
               us_text(each(download)), gb_per_s(slots[i][0].host_c(), each(download)),
               us_text(each(kernels)), us_text(each(pipeline)), us_text(longest),
               percent_text(sum - each(pipeline), sum - longest)});
    for (int what = 0; what < kMeasurements; ++what) {
      const std::optional<double> bound =
          what == pipeline ? std::optional(longest * batches) : std::optional<double>();
      add_result(context, "pinned", variants[i * kMeasurements + what], shape, of[what], bound);
    }
  }
  context.out << "us of one batch; bound: the longest of the three alone; hidden: of what could overlap.\n";
}

}  // namespace

const Experiment& pinned_experiment() {
  static const Experiment experiment = {
      "pinned", "Do copies from pageable, registered and pinned memory overlap with kernels?", run_pinned};
  return experiment;
}

}  // namespace lesson07
