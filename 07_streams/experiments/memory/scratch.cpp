/// @file
/// Experiment `scratch`: memory whose size changes from step to step, as the cache of keys and values of a
/// request that grows with every token.
///
/// Several requests are served in turn, each in a stream of its own and each at another point of its growth.
/// A step uploads new rows of the request's A and multiplies all of A; the product is scratch that nobody
/// needs afterwards. A request that has all its rows gives way to a new one. Either every buffer is made for
/// the most rows, or every step takes what it needs from a pool, moves the rows that are there, and gives the
/// rest back, all in the order of the stream. Pools that reuse less of what other streams have freed, and a
/// host that waits until all frees have run, tell what a pool reserves memory for.
#include "07_streams/experiments/memory/scratch.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <set>

#include "common/host/base/parallel.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/verify/verifier.hpp"

namespace lesson07 {

using bf16 = __nv_bfloat16;

Requests::Requests(const RandomWeights& weights, int most_rows, const std::vector<ladder::Stream>& streams,
                   int steps)
    : weights_(weights),
      most_rows_(most_rows),
      streams_(streams),
      steps_(steps),
      values_{9, ladder::integer_magnitude(weights.k)},
      source_(size_t(most_rows + kSources) * weights.k, HostMemory::pinned) {
  ladder::parallel_for(static_cast<int64_t>(source_.size()), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) source_.data()[i] = values_(static_cast<uint64_t>(i));
  });
}

void Requests::run_in_largest(std::vector<BatchSlot>& slots) {
  for_each_step([&](size_t request, int step, const Growth& rows, cudaStream_t stream) {
    add_rows_and_multiply(slots[request].a(), slots[request].c(), rows, stream);
    sample(request, step, slots[request].c(), rows, stream);
  });
}

void Requests::run_in_pool(const MemoryPool& pool, bool moves, bool host_waits) {
  std::vector<bf16*> a(streams_.size(), nullptr);
  const auto allocate = [&](size_t elements, cudaStream_t stream) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocFromPoolAsync(&memory, elements * sizeof(bf16), pool.get(), stream));
    return static_cast<bf16*>(memory);
  };
  for_each_step([&](size_t request, int step, const Growth& rows, cudaStream_t stream) {
    bf16* const larger = allocate(size_t(rows.has) * weights_.k, stream);
    if (rows.had > 0 && moves)
      CUDA_CHECK(cudaMemcpyAsync(larger, a[request], a_bytes(rows.had), cudaMemcpyDeviceToDevice, stream));
    if (a[request]) CUDA_CHECK(cudaFreeAsync(a[request], stream));
    a[request] = larger;
    bf16* const scratch = allocate(size_t(rows.has) * weights_.n, stream);
    add_rows_and_multiply(larger, scratch, rows, stream);
    sample(request, step, scratch, rows, stream);
    CUDA_CHECK(cudaFreeAsync(scratch, stream));
    if (host_waits) CUDA_CHECK(cudaStreamSynchronize(stream));
  });
  for (size_t request = 0; request < a.size(); ++request)
    CUDA_CHECK(cudaFreeAsync(a[request], streams_[request].get()));
  wait_for(streams_);
}

template <class Step>
void Requests::for_each_step(const Step& run_step) {
  samples_.clear();
  for (int step = 0; step < steps_; ++step)
    for (size_t request = 0; request < streams_.size(); ++request)
      run_step(request, step, growth(request, step), streams_[request].get());
  wait_for(streams_);
}

/// Requests are spread evenly over the growth.
Requests::Growth Requests::growth(size_t request, int step) const {
  const int requests = static_cast<int>(streams_.size());
  const int all_done = step + static_cast<int>(request) * kSteps / requests, done = all_done % kSteps;
  const auto rows = [&](int steps) { return std::max(1, most_rows_ * steps / kSteps); };
  const bool begins = step == 0 || done == 0;
  const int source = (static_cast<int>(request) + all_done / kSteps * requests) % kSources;
  return {begins ? 0 : rows(done), rows(done + 1), source};
}

void Requests::add_rows_and_multiply(bf16* a, bf16* scratch, const Growth& rows, cudaStream_t stream) {
  CUDA_CHECK(cudaMemcpyAsync(a + size_t(rows.had) * weights_.k,
                             source_.data() + size_t(rows.source + rows.had) * weights_.k,
                             a_bytes(rows.has - rows.had), cudaMemcpyHostToDevice, stream));
  multiply(weights_, a, scratch, rows.has, stream);
}

void Requests::keep_samples() {
  sampled_.clear();
  sampled_.emplace_back(size_t(steps_) * streams_.size() * kSamples * weights_.n);
}

void Requests::sample(size_t request, int step, const bf16* scratch, const Growth& rows,
                      cudaStream_t stream) {
  if (sampled_.empty()) return;
  for (const int row : std::set{0, std::max(0, rows.had - 1), rows.has - 1}) {
    bf16* const to = sampled_[0].data() + samples_.size() * weights_.n;
    CUDA_CHECK(cudaMemcpyAsync(to, scratch + size_t(row) * weights_.n, weights_.n * sizeof(bf16),
                               cudaMemcpyDeviceToHost, stream));
    samples_.push_back({request, step, row, rows});
  }
}

double Requests::right_value(const Sample& sample, int column) const {
  const uint64_t a = uint64_t(sample.growth.source + sample.row) * weights_.k;
  double sum = 0;
  for (uint64_t step = 0; step < uint64_t(weights_.k); ++step)
    sum += double{ladder::to_float(values_(a + step))} *
           double{ladder::to_float(weights_.values(step * weights_.n + column))};
  return sum;
}

void Requests::check_samples(const std::string& who) {
  constexpr int kColumns = 8;  // of each row: a row that is wrong is wrong nearly everywhere
  const int apart = std::max(1, weights_.n / kColumns);
  std::vector<std::string> complaints(samples_.size());
  ladder::parallel_for(static_cast<int64_t>(samples_.size()), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int column = 0; column < weights_.n && complaints[i].empty(); column += apart) {
        const Sample& sample = samples_[i];
        const float is = ladder::to_float(sampled_[0].data()[i * weights_.n + column]);
        const float right =
            ladder::to_float(ladder::to_bf16(static_cast<float>(right_value(sample, column))));
        if (is == right) continue;  // NaN is not
        complaints[i] = fmt::format(
            "scratch, {}: request {}, step {}: row {} of the product, column {}: is {:f}, must be {:f}; this "
            "row of A {}",
            who, sample.request, sample.step, sample.row, column, is, right,
            sample.row < sample.growth.had ? "was there before, and had to be moved"
                                           : "was uploaded in this step");
      }
  });
  sampled_.clear();
  for (const std::string& complaint : complaints)
    if (!complaint.empty()) throw WrongResult(complaint);
}

namespace {

/// What a pool may reuse in another stream than the one that freed it: attributes that are on by default.
struct Reuse {
  const char* name;
  std::vector<cudaMemPoolAttr> allowed;
};
const std::vector<Reuse> kReuses = {
    {"all",
     {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic,
      cudaMemPoolReuseAllowInternalDependencies}},
    {"what an event orders", {cudaMemPoolReuseFollowEventDependencies}},
    {"what happens to be free", {cudaMemPoolReuseAllowOpportunistic}},
    {"what a wait makes free", {cudaMemPoolReuseAllowInternalDependencies}},
    {"nothing", {}}};

void set_reuse(const MemoryPool& pool, const Reuse& reuse) {
  for (const cudaMemPoolAttr attribute : kReuses.front().allowed) {
    int on = std::count(reuse.allowed.begin(), reuse.allowed.end(), attribute) ? 1 : 0;
    CUDA_CHECK(cudaMemPoolSetAttribute(pool.get(), attribute, &on));
  }
}

void run_scratch(const Context& context) {
  const ladder::Shape& shape = context.shape;
  const RandomWeights weights(shape.k, shape.n);
  const std::vector<ladder::Stream> streams = make_streams(context.streams);
  std::vector<BatchSlot> slots = make_slots(weights, shape.m, context.streams);
  const int steps = std::max(2 * Requests::kSteps, context.batches / context.streams);
  Requests requests(weights, shape.m, streams, steps);

  Requests checked(weights, shape.m, streams,
                   Requests::kSteps + 1);  // so that a request gives way to another
  checked.keep_samples();
  checked.run_in_largest(slots);
  checked.check_samples("for the most rows");
  checked.keep_samples();
  checked.run_in_pool(MemoryPool());
  checked.check_samples("from a pool");

  const std::string beforehand = "for the most rows";
  std::vector<Variant> variants = {
      {beforehand, {{"buffers", beforehand}}, [&] { requests.run_in_largest(slots); }}};
  // The CPU device keeps these attributes without effect.
  const size_t reuses = ladder::on_cpu_device() ? 1 : kReuses.size();
  std::vector<MemoryPool> pools(2 * reuses);
  for (size_t i = 0; i < pools.size(); ++i) {
    const Reuse& reuse = kReuses[i % reuses];
    const bool waits = i >= reuses;
    set_reuse(pools[i], reuse);
    variants.push_back({reuse.name,
                        {{"buffers", "from a pool"},
                         {"reuses", reuse.name},
                         {"host_waits", waits ? "after each step" : "no"}},
                        [&, i, waits] { requests.run_in_pool(pools[i], /*moves=*/true, waits); }});
  }
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  ladder::Table table(context.out, {{"buffers", 17, false},
                                    {"reuses of other streams", 23, false},
                                    {"host waits", 15, false},
                                    {"us a step", 9},
                                    {"reserved MB", 11},
                                    {"most used MB", 12}});
  table.header();
  const double all_steps = double(steps) * streams.size();
  for (size_t i = 0; i < variants.size(); ++i) {
    ladder::Settings& settings = variants[i].settings;
    const auto of_pool = [&](cudaMemPoolAttr attribute) {
      uint64_t bytes = slots.size() * (slots[0].host_a().bytes() + slots[0].host_c().bytes());
      if (i > 0) CUDA_CHECK(cudaMemPoolGetAttribute(pools[i - 1].get(), attribute, &bytes));
      return ladder::fixed(static_cast<double>(bytes) / 1e6, 1);
    };
    settings["reserved_mb"] = of_pool(cudaMemPoolAttrReservedMemHigh);
    settings["used_mb"] = of_pool(cudaMemPoolAttrUsedMemHigh);
    table.row({settings["buffers"], i > 0 ? settings["reuses"] : "", i > 0 ? settings["host_waits"] : "",
               us_text(measured[i].median_us / all_steps), settings["reserved_mb"], settings["used_mb"]});
    add_result(context, "scratch", variants[i], shape, measured[i], {}, /*verified=*/true);
  }
}

}  // namespace

const Experiment& scratch_experiment() {
  static const Experiment experiment = {
      "scratch", "What do buffers that grow in the order of a stream save, and what do they cost?",
      run_scratch};
  return experiment;
}

}  // namespace lesson07
