/// @file
/// Experiment `alloc`: device memory for every batch, taken and given back in several ways.
///
/// All ways run the same loop: before a batch, the host waits for the batch before it in its stream, as
/// cudaFree needs. The batches of the other streams are still under way when memory is taken or given back,
/// so what a way takes longer than the first one is what its calls cost the others.
///
/// Then memory is watched as it goes back: what a pool has reserved after each step of a batch.
#include <array>

#include "07_streams/experiments/support.hpp"
#include "07_streams/stream_buffer.hpp"
#include "common/host/base/statistics.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"

namespace lesson07 {
namespace {

using bf16 = __nv_bfloat16;

/// The loop. `take` is called when the memory of the batch before it in its stream is no longer in use, and
/// `give` when all of the batch has been enqueued.
struct Way {
  std::string name;
  std::function<std::array<bf16*, 2>(BatchSlot&, size_t stream)> take;  ///< A and C
  std::function<void(std::array<bf16*, 2>, size_t stream)> give;
  std::function<void()> end = [] {};  ///< after the last batch is over; takes time as the other calls do
  const MemoryPool* pool = nullptr;   ///< of ways that have one
  std::vector<double> host_us = {};   ///< in take, give and end, of each run
};

void run_batches_in(Way& way, std::vector<BatchSlot>& slots, const std::vector<ladder::Stream>& streams,
                    int batches) {
  double in_calls = 0;
  for (int batch = 0; batch < batches; ++batch) {
    const size_t turn = batch % streams.size();
    const cudaStream_t stream = streams[turn].get();
    CUDA_CHECK(cudaStreamSynchronize(stream));
    std::array<bf16*, 2> memory{};
    in_calls += host_us([&] { memory = way.take(slots[turn], turn); });
    slots[turn].run_in(memory[0], memory[1], stream);
    in_calls += host_us([&] { way.give(memory, turn); });
  }
  wait_for(streams);
  way.host_us.push_back(in_calls + host_us(way.end));
}

bf16* device_malloc(size_t elements) {
  void* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, elements * sizeof(bf16)));
  return static_cast<bf16*>(memory);
}

/// What cudaMalloc gave and nobody has freed yet.
class Taken {
 public:
  ~Taken() {
    quietly([&] { free_all(); });
  }
  std::array<bf16*, 2> take(BatchSlot& slot) {
    memory_.push_back(device_malloc(slot.host_a().size()));
    memory_.push_back(device_malloc(slot.host_c().size()));
    return {memory_.end()[-2], memory_.end()[-1]};
  }
  void free_all() {
    for (bf16* memory : memory_) cudaFree(memory);
    memory_.clear();
  }

 private:
  std::vector<bf16*> memory_;
};

Way pool_way(const std::string& name, const MemoryPool& pool, const std::vector<ladder::Stream>& streams) {
  const auto allocate = [&](size_t elements, size_t stream) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocFromPoolAsync(&memory, elements * sizeof(bf16), pool.get(), streams[stream].get()));
    return static_cast<bf16*>(memory);
  };
  Way way{name,
          [allocate](BatchSlot& slot, size_t stream) {
            return std::array{allocate(slot.host_a().size(), stream), allocate(slot.host_c().size(), stream)};
          },
          [&](std::array<bf16*, 2> memory, size_t stream) {
            for (bf16* one : memory) CUDA_CHECK(cudaFreeAsync(one, streams[stream].get()));
          }};
  way.pool = &pool;
  return way;
}

std::string pool_mb(const MemoryPool* pool, cudaMemPoolAttr which) {
  if (!pool) return "-";
  uint64_t bytes = 0;
  CUDA_CHECK(cudaMemPoolGetAttribute(pool->get(), which, &bytes));
  return ladder::fixed(static_cast<double>(bytes) / 1e6, 1);
}

/// What a pool has reserved, in MB, at the moments of two batches that follow each other in one stream.
struct Reserved {
  std::string taken, freed, waited;  ///< of the first batch: allocated; freed in the stream; waited for
  std::string predicted;             ///< for `waited`
  std::string taken_again, waited_again, trimmed;  ///< of the second; and after cudaMemPoolTrimTo(0)
};

Reserved watch(uint64_t release_threshold, BatchSlot& slot, cudaStream_t stream) {
  const MemoryPool pool(release_threshold);
  const auto reserved = [&] { return pool_mb(&pool, cudaMemPoolAttrReservedMemCurrent); };
  Reserved seen;
  const auto run_batch = [&](std::string& taken, std::string& freed, std::string& waited) {
    StreamBuffer<bf16> a(pool, slot.host_a().size(), stream), c(pool, slot.host_c().size(), stream);
    taken = reserved();
    slot.run_in(a.data(), c.data(), stream);
    a.free();
    c.free();
    freed = reserved();
    CUDA_CHECK(cudaStreamSynchronize(stream));
    waited = reserved();
  };
  std::string freed_again;
  run_batch(seen.taken, seen.freed, seen.waited);
  run_batch(seen.taken_again, freed_again, seen.waited_again);
  CUDA_CHECK(cudaMemPoolTrimTo(pool.get(), 0));
  seen.trimmed = reserved();
  seen.predicted = release_threshold ? seen.taken : "0.0";
  return seen;
}

/// A table of its own, and settings of the pools' rows.
void show_memory_going_back(const Context& context, BatchSlot& slot, cudaStream_t stream,
                            std::vector<Variant>& variants) {
  context.out << "\nreserved by a pool, MB, as one stream runs two batches\n";
  ladder::Table table(context.out, {{"memory", 30, false},
                                    {"taken", 7},
                                    {"freed", 7},
                                    {"waited", 7},
                                    {"predicted", 9},
                                    {"taken", 7},
                                    {"waited", 7},
                                    {"trimmed", 7}});
  table.header();
  const std::pair<size_t, uint64_t> pools[] = {{variants.size() - 2, 0}, {variants.size() - 1, UINT64_MAX}};
  for (const auto& [way, release_threshold] : pools) {
    const Reserved seen = watch(release_threshold, slot, stream);
    table.row({variants[way].label, seen.taken, seen.freed, seen.waited, seen.predicted, seen.taken_again,
               seen.waited_again, seen.trimmed});
    ladder::Settings& settings = variants[way].settings;
    settings["reserved_mb_taken"] = seen.taken;
    settings["reserved_mb_freed"] = seen.freed;
    settings["reserved_mb_waited"] = seen.waited;
    settings["reserved_mb_predicted"] = seen.predicted;
    settings["reserved_mb_taken_again"] = seen.taken_again;
    settings["reserved_mb_waited_again"] = seen.waited_again;
    settings["reserved_mb_trimmed"] = seen.trimmed;
  }
  context.out << "taken: allocated; freed: in the order of the stream; waited: cudaStreamSynchronize has "
                 "returned;\ntrimmed: after cudaMemPoolTrimTo\n";
}

void run_alloc(const Context& context) {
  const ladder::Shape& shape = context.shape;
  const int batches = announced_batches(context);
  const RandomWeights weights(shape.k, shape.n);
  const std::vector<ladder::Stream> streams = make_streams(context.streams);
  std::vector<BatchSlot> slots = make_slots(weights, shape.m, context.streams);
  std::vector<Taken> of_stream(streams.size());
  Taken kept;
  const MemoryPool releases(0), keeps(UINT64_MAX);
  const auto nothing = [](std::array<bf16*, 2>, size_t) {};

  std::vector<Way> ways = {
      {"all beforehand",
       [](BatchSlot& slot, size_t) {
         return std::array{slot.a(), slot.c()};
       },
       nothing},
      {"cudaMalloc, cudaFree",
       [&](BatchSlot& slot, size_t stream) {
         of_stream[stream].free_all();  // of the batch before, which is over
         return of_stream[stream].take(slot);
       },
       nothing,
       [&] {
         for (Taken& taken : of_stream) taken.free_all();
       }},
      {"cudaMalloc; cudaFree at the end", [&](BatchSlot& slot, size_t) { return kept.take(slot); }, nothing,
       [&] { kept.free_all(); }},
      pool_way("cudaMallocAsync, threshold 0", releases, streams),
      pool_way("cudaMallocAsync, threshold max", keeps, streams)};

  std::vector<Variant> variants;
  for (Way& way : ways)
    variants.push_back(
        {way.name, {{"memory", way.name}}, [&] { run_batches_in(way, slots, streams, batches); }});
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  ladder::Table table(context.out, {{"memory", 31, false},
                                    {"us a batch", 10},
                                    {"x first", 7},
                                    {"host us in calls", 16},
                                    {"reserved MB", 11},
                                    {"used MB", 7}});
  table.header();
  for (size_t i = 0; i < ways.size(); ++i) {
    ladder::Settings& settings = variants[i].settings;
    settings["host_us_in_calls"] = host_time_text(ladder::quartiles(ways[i].host_us).median / batches);
    settings["reserved_mb"] = pool_mb(ways[i].pool, cudaMemPoolAttrReservedMemHigh);
    settings["used_mb"] = pool_mb(ways[i].pool, cudaMemPoolAttrUsedMemHigh);
    table.row({ways[i].name, us_text(measured[i].median_us / batches),
               ladder::fixed(measured[i].median_us / measured[0].median_us, 2), settings["host_us_in_calls"],
               settings["reserved_mb"], settings["used_mb"]});
  }
  if (ladder::on_cpu_device())
    context.out << "on the CPU device allocations take no virtual time, so the times are equal\n";
  context.out << "reserved and used: the most that the pool had\n";
  show_memory_going_back(context, slots[0], streams[0].get(), variants);
  for (size_t i = 0; i < ways.size(); ++i) add_result(context, "alloc", variants[i], shape, measured[i]);
}

}  // namespace

const Experiment& alloc_experiment() {
  static const Experiment experiment = {
      "alloc", "What does it cost to allocate and free device memory for every batch?", run_alloc};
  return experiment;
}

}  // namespace lesson07
