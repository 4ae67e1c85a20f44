/// @file
/// Experiment `recycle`: how many slots of pinned memory hundreds of batches need, and in which stream the
/// host functions that give them back should run.
///
/// A host function is an operation of its stream: what comes behind it waits until a thread of the runtime
/// has woken up and the function has returned. In the stream of its batch that keeps the next upload waiting.
#include <deque>

#include "07_streams/best_kernel.hpp"
#include "07_streams/experiments/support.hpp"
#include "07_streams/measure/bound.hpp"
#include "07_streams/pipeline.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace lesson07 {
namespace {

constexpr int kSlotCounts[] = {3, 4, 6};
constexpr uint64_t kSeed = 1;

void run_recycle(const Context& context) {
  const Batches batches = make_batches(context.shape, context.batches, kSeed);
  PinnedBuffer<bf16> host_weights(size_t(batches.k) * batches.n);
  fill_normals(host_weights.data(), host_weights.size(), kSeed);
  const Weights weights(host_weights, batches.k, batches.n);
  const StampedData data(batches, host_weights.data());
  const Kernel kernel = best_kernel();

  std::deque<Pipeline> pipelines;
  std::vector<Variant> variants;
  for (const int slots : kSlotCounts) {
    Pipeline& pipeline = pipelines.emplace_back(batches, context.streams, slots);
    fill_uploads(pipeline, batches, kSeed);
    for (const bool apart : {false, true})
      variants.push_back(
          {apart ? "of their own" : "of the batch",
           {{"slots", std::to_string(slots)},
            {"batches", std::to_string(context.batches)},
            {"host_functions", apart ? "in a stream of their own" : "in the batch's stream"}},
           [&, apart] {
             run_batches(batches, data, weights, kernel, pipeline, {context.streams, false, apart});
           }});
  }
  CopiesAlone copies(batches, pipelines.back());
  KernelsAlone kernels(batches, weights, pipelines.back());
  variants.push_back({"copies alone", {}, [&] { copies.run(); }});
  variants.push_back({"kernels alone", {}, [&] { kernels.run(kernel); }});

  const std::vector<Measured> times = measure_interleaved(variants, context.rounds);
  const Bound bound{copies.upload_us(), times.back().median_us, copies.download_us()};
  context.out << batches.count() << " batches of " << context.shape.name() << " (M x N x K), M more or less, "
              << context.streams << " streams\n";
  ladder::Table table(context.out,
                      {{"slots", 5}, {"host functions in a stream", 26, false}, {"ms", 9}, {"x bound", 7}});
  table.header();
  for (size_t i = 0; i + 2 < variants.size(); ++i) {
    table.row({variants[i].settings.at("slots"), variants[i].label,
               ladder::fixed(times[i].median_us / 1e3, 3),
               ladder::fixed(times[i].median_us / bound.us(), 3)});
    ladder::Run row = result_row("recycle", variants[i], context.shape, times[i]);
    row.bound_us = bound.us();
    row.verified = true;  // else run_batches would have thrown
    context.results.runs.push_back(row);
  }
}

}  // namespace

const Experiment& recycle_experiment() {
  static const Experiment experiment = {
      "recycle",
      "How many pinned slots do hundreds of batches need, and in which stream are they given back?",
      run_recycle};
  return experiment;
}

}  // namespace lesson07
