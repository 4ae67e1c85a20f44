/// @file
/// Experiment `scratch`: memory whose size changes from step to step, as the cache of keys and values of a
/// request that grows with every token.
///
/// Several requests are served in turn, each in a stream of its own and each at another point of its growth.
/// A step uploads new rows of the request's A and multiplies all of A; the product is scratch that nobody
/// needs afterwards. A request that has all its rows gives way to a new one. Either every buffer is made for
/// the most rows, or every step takes what it needs from a pool, moves the rows that are there, and gives the
/// rest back, all in the order of the stream.
#include <algorithm>

#include "07_streams/experiments/support.hpp"
#include "07_streams/stream_buffer.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace lesson07 {
namespace {

using bf16 = __nv_bfloat16;

constexpr int kSteps = 8;  ///< until a request has all its rows

/// The rows of a request before a step and after it.
struct Growth {
  int had, has;
};

class Requests {
 public:
  Requests(const RandomWeights& weights, int most_rows, const std::vector<ladder::Stream>& streams, int steps)
      : weights_(weights),
        most_rows_(most_rows),
        streams_(streams),
        steps_(steps),
        new_rows_(size_t(most_rows) * weights.k, HostMemory::pinned) {}

  /// Every request has an A and a scratch of `slots` for itself.
  void run_in_largest(std::vector<BatchSlot>& slots) {
    for_each_step([&](size_t request, Growth rows, cudaStream_t stream) {
      add_rows_and_multiply(slots[request].a(), slots[request].c(), rows, stream);
    });
  }

  /// Every step takes a larger A and scratch from the pool.
  void run_in_pool(const MemoryPool& pool) {
    std::vector<bf16*> a(streams_.size(), nullptr);
    for_each_step([&](size_t request, Growth rows, cudaStream_t stream) {
      bf16* const larger = allocate(pool, size_t(rows.has) * weights_.k, stream);
      if (rows.had > 0)
        CUDA_CHECK(cudaMemcpyAsync(larger, a[request], a_bytes(rows.had), cudaMemcpyDeviceToDevice, stream));
      if (a[request]) CUDA_CHECK(cudaFreeAsync(a[request], stream));
      a[request] = larger;
      bf16* const scratch = allocate(pool, size_t(rows.has) * weights_.n, stream);
      add_rows_and_multiply(larger, scratch, rows, stream);
      CUDA_CHECK(cudaFreeAsync(scratch, stream));
    });
    for (size_t request = 0; request < a.size(); ++request)
      CUDA_CHECK(cudaFreeAsync(a[request], streams_[request].get()));
    wait_for(streams_);
  }

 private:
  template <class Step>
  void for_each_step(const Step& run_step) {
    for (int step = 0; step < steps_; ++step)
      for (size_t request = 0; request < streams_.size(); ++request)
        run_step(request, growth(request, step), streams_[request].get());
    wait_for(streams_);
  }

  /// Requests are spread evenly over the growth.
  Growth growth(size_t request, int step) const {
    const int done = (step + static_cast<int>(request * kSteps / streams_.size())) % kSteps;
    const auto rows = [&](int steps) { return std::max(1, most_rows_ * steps / kSteps); };
    const bool begins = step == 0 || done == 0;
    return {begins ? 0 : rows(done), rows(done + 1)};
  }

  void add_rows_and_multiply(bf16* a, bf16* scratch, Growth rows, cudaStream_t stream) {
    CUDA_CHECK(cudaMemcpyAsync(a + size_t(rows.had) * weights_.k, new_rows_.data(),
                               a_bytes(rows.has - rows.had), cudaMemcpyHostToDevice, stream));
    multiply(weights_, a, scratch, rows.has, stream);
  }

  size_t a_bytes(int rows) const { return size_t(rows) * weights_.k * sizeof(bf16); }

  static bf16* allocate(const MemoryPool& pool, size_t elements, cudaStream_t stream) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocFromPoolAsync(&memory, elements * sizeof(bf16), pool.get(), stream));
    return static_cast<bf16*>(memory);
  }

  const RandomWeights& weights_;
  int most_rows_;
  const std::vector<ladder::Stream>& streams_;
  int steps_;
  HostArray new_rows_;
};

std::string mb(double bytes) { return ladder::fixed(bytes / 1e6, 1); }

void run(const Context& context) {
  const ladder::Shape& shape = context.shape;
  const RandomWeights weights(shape.k, shape.n);
  const std::vector<ladder::Stream> streams = make_streams(context.streams);
  std::vector<BatchSlot> slots = make_slots(weights, shape.m, context.streams);
  const MemoryPool pool;
  const int steps = std::max(2 * kSteps, context.batches / context.streams);
  Requests requests(weights, shape.m, streams, steps);

  std::vector<Variant> variants = {
      {"for the most rows", {{"buffers", "for the most rows"}}, [&] { requests.run_in_largest(slots); }},
      {"from a pool", {{"buffers", "from a pool"}}, [&] { requests.run_in_pool(pool); }}};
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  const auto of_pool = [&](cudaMemPoolAttr which) {
    uint64_t bytes = 0;
    CUDA_CHECK(cudaMemPoolGetAttribute(pool.get(), which, &bytes));
    return mb(static_cast<double>(bytes));
  };
  const std::string largest =
      mb(double(slots.size()) * (slots[0].host_a().bytes() + slots[0].host_c().bytes()));
  ladder::Table table(context.out,
                      {{"buffers", 17, false}, {"us a step", 9}, {"reserved MB", 11}, {"most used MB", 12}});
  table.header();
  const double all_steps = double(steps) * streams.size();
  const std::string reserved[] = {largest, of_pool(cudaMemPoolAttrReservedMemHigh)};
  const std::string used[] = {largest, of_pool(cudaMemPoolAttrUsedMemHigh)};
  for (size_t i = 0; i < variants.size(); ++i) {
    table.row({variants[i].label, us_text(measured[i].median_us / all_steps), reserved[i], used[i]});
    variants[i].settings["reserved_mb"] = reserved[i];
    variants[i].settings["used_mb"] = used[i];
    add_result(context, "scratch", variants[i], shape, measured[i]);
  }
}

}  // namespace

const Experiment& scratch_experiment() {
  static const Experiment experiment = {
      "scratch", "What do buffers that grow in the order of a stream save, and what do they cost?", run};
  return experiment;
}

}  // namespace lesson07
