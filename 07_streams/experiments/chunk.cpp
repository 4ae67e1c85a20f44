/// @file
/// Experiment `chunk`: how many rows a batch should have, if the rows are many and only their sum is given.
///
/// A pipeline of n batches whose steps take u, c and d takes n * max(u, c, d) for the longest step, and once
/// what the other two steps take: to fill it and to drain it. Small batches make fill and drain short; large
/// ones waste less on launches and on kernels that do not fill the GPU. Both terms are measured here, for
/// each size, and their sum is laid beside the time of the pipeline.
#include <algorithm>
#include <cmath>

#include "07_streams/experiments/support.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"

namespace lesson07 {
namespace {

/// One size of a batch, and what was measured with it, in microseconds of one batch.
struct Chunk {
  int rows, count;
  std::vector<BatchSlot> slots;
  double upload = 0, download = 0, both_ways = 0, kernel = 0, total = 0;

  double copy() const { return std::max({upload, download, both_ways}); }
  /// The closed form. Fill and drain have the bus for themselves, the batches between them have not.
  double predicted() const {
    return count * std::max(copy(), kernel) + upload + kernel + download -
           std::max({upload, kernel, download});
  }
  /// How far copy time and compute time are apart; the rule of thumb wants it to be 0.
  double imbalance() const { return std::abs(std::log(copy() / kernel)); }
};

/// All that is measured of one size.
void add_variants(std::vector<Variant>& variants, Chunk& chunk, const std::vector<ladder::Stream>& streams) {
  const auto add = [&](const std::string& what, const std::function<void(BatchSlot&)>& step) {
    variants.push_back({what, {{"rows", std::to_string(chunk.rows)}, {"measures", what}}, [&, step] {
                          for (int i = 0; i < chunk.count; ++i) step(chunk.slots[i % chunk.slots.size()]);
                          wait_for(streams);
                        }});
  };
  const cudaStream_t one = streams[0].get(), other = streams[1].get();
  add("uploads", [=](BatchSlot& slot) { slot.upload(one); });
  add("downloads", [=](BatchSlot& slot) { slot.download(other); });
  add("both ways", [=](BatchSlot& slot) {  // A and C of a slot have nothing in common.
    slot.upload(one);
    slot.download(other);
  });
  add("kernels", [=](BatchSlot& slot) { slot.multiply(one); });
  variants.push_back({"pipeline", {{"rows", std::to_string(chunk.rows)}, {"measures", "pipeline"}}, [&] {
                        for (int i = 0; i < chunk.count; ++i) {
                          const size_t turn = i % chunk.slots.size();
                          chunk.slots[turn].run(streams[turn].get());
                        }
                        wait_for(streams);
                      }});
}

void run_chunk(const Context& context) {
  const ladder::Shape& shape = context.shape;
  // On the CPU device every size of a batch costs seconds.
  const int most_batches = ladder::on_cpu_device() ? 4 : 8, smallest = ladder::on_cpu_device() ? 4 : 16;
  const int total_rows = shape.m * std::min(context.batches, most_batches);
  const RandomWeights weights(shape.k, shape.n);
  const std::vector<ladder::Stream> streams = make_streams(std::max(2, context.streams));

  std::vector<Chunk> chunks;
  for (int rows = std::max(1, shape.m / smallest); rows <= total_rows; rows *= 2) {
    const int count = (total_rows + rows - 1) / rows;
    chunks.push_back({rows, count, make_slots(weights, rows, std::min<int>(count, streams.size()))});
  }
  std::vector<Variant> variants;
  for (Chunk& chunk : chunks) add_variants(variants, chunk, streams);
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  const size_t each = variants.size() / chunks.size();
  for (size_t i = 0; i < chunks.size(); ++i) {
    Chunk& chunk = chunks[i];
    const Measured* of = &measured[i * each];
    double* const fields[] = {&chunk.upload, &chunk.download, &chunk.both_ways, &chunk.kernel};
    for (size_t j = 0; j < std::size(fields); ++j) *fields[j] = of[j].median_us / chunk.count;
    chunk.total = of[each - 1].median_us;
    const ladder::Shape batch{chunk.rows, shape.n, shape.k};
    for (size_t j = 0; j < each; ++j) add_result(context, "chunk", variants[i * each + j], batch, of[j]);
    const Variant closed_form = {"", {{"rows", std::to_string(chunk.rows)}, {"measures", "closed form"}}, {}};
    add_result(context, "chunk", closed_form, batch,
               {chunk.predicted(), chunk.predicted(), chunk.predicted()});
  }
  const auto least = [&](auto what) {
    return &*std::min_element(chunks.begin(), chunks.end(),
                              [&](const Chunk& a, const Chunk& b) { return what(a) < what(b); });
  };
  const Chunk* const best = least([](const Chunk& c) { return c.total; });
  const Chunk* const predicted = least([](const Chunk& c) { return c.predicted(); });
  const Chunk* const balanced = least([](const Chunk& c) { return c.imbalance(); });

  context.out << total_rows << " rows in all\n";
  ladder::Table table(context.out, {{"rows", 6},
                                    {"batches", 7},
                                    {"copy us", 8},
                                    {"kernel us", 9},
                                    {"predicted us", 12},
                                    {"measured us", 11},
                                    {"best by", 33, false}});
  table.header();
  for (const Chunk& chunk : chunks) {
    std::vector<std::string> marks;
    if (&chunk == best) marks.push_back("time");
    if (&chunk == predicted) marks.push_back("closed form");
    if (&chunk == balanced) marks.push_back("copy = compute");
    table.row({std::to_string(chunk.rows), std::to_string(chunk.count), us_text(chunk.copy()),
               us_text(chunk.kernel), us_text(chunk.predicted()), us_text(chunk.total),
               ladder::join(marks, ", ")});
  }
}

}  // namespace

const Experiment& chunk_experiment() {
  static const Experiment experiment = {
      "chunk",
      "How many rows should a batch have, and does copy time = compute time or the closed form tell?",
      run_chunk};
  return experiment;
}

}  // namespace lesson07
