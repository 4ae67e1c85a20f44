/// @file
/// Experiment `stalls`: which allocation calls wait for work of other streams, and does that work wait for
/// them? Experiment `pinning`: the same of calls that pin host memory, and what they take by size.
///
/// One stream is given kernels for some milliseconds. While it works, the host makes one call that has
/// nothing to do with it. Is the stream still busy when the call returns, and does it end later than without
/// the call?
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>

#include "07_streams/experiments/support.hpp"
#include "07_streams/pinned_ring.hpp"
#include "07_streams/stream_buffer.hpp"
#include "common/host/base/statistics.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/measure/timing.hpp"

namespace lesson07 {
namespace {

/// A call, and what was seen around it.
struct Probe {
  std::string name;
  std::string size;  ///< of the memory, where calls differ by it
  std::function<void()> prepare, call, tidy;
  std::vector<double> host_us = {};
  bool always_busy = true;  ///< was the stream, whenever the call returned?
};

Measured median_of(const std::vector<double>& samples) {
  const ladder::Quartiles quartiles = ladder::quartiles(samples);
  return {quartiles.median, quartiles.q1, quartiles.q3};
}

/// Makes each call while a stream is busy with `kernels` kernels, and adds a row for each.
void probe_all(const Context& context, const std::string& experiment, std::vector<Probe> probes,
               int kernels) {
  const RandomWeights weights(context.shape.k, context.shape.n);
  BatchSlot slot(weights, context.shape.m);
  const ladder::Stream stream = ladder::make_stream();
  const cudaStream_t busy = stream.get();
  const ladder::Event begin = ladder::make_event(), end = ladder::make_event();
  const auto kernels_us = [&](size_t i) {
    Probe& probe = probes[i];
    probe.prepare();
    CUDA_CHECK(cudaEventRecord(begin.get(), busy));
    for (int kernel = 0; kernel < kernels; ++kernel) slot.multiply(busy);
    CUDA_CHECK(cudaEventRecord(end.get(), busy));
    probe.host_us.push_back(host_us(probe.call));
    probe.always_busy &= cudaStreamQuery(busy) == cudaErrorNotReady;
    CUDA_CHECK(cudaStreamSynchronize(busy));
    probe.tidy();
    return 1000 * ladder::elapsed_ms(begin, end);
  };
  slot.upload(busy);
  int rounds = 1;
  if (!ladder::on_cpu_device()) {
    rounds = context.rounds;
    for (size_t i = 0; i < probes.size(); ++i) kernels_us(i);  // warm up
    for (Probe& probe : probes) {
      probe.host_us.clear();
      probe.always_busy = true;
    }
  }
  const std::vector<std::vector<double>> samples = ladder::interleave(probes.size(), rounds, kernels_us);

  ladder::Table table(context.out, {{"call", 30, false},
                                    {"size", 7},
                                    {"host us", 8},
                                    {"the other stream then", 21, false},
                                    {"its kernels us", 14},
                                    {"x alone", 7}});
  table.header();
  const double alone = median_of(samples[0]).median_us;
  for (size_t i = 0; i < probes.size(); ++i) {
    const Measured its_kernels = median_of(samples[i]), host = median_of(probes[i].host_us);
    const std::string then = probes[i].always_busy ? "is still busy" : "has ended";
    table.row({probes[i].name, probes[i].size, host_time_text(host.median_us), then,
               us_text(its_kernels.median_us), ladder::fixed(its_kernels.median_us / alone, 2)});
    ladder::Settings settings = {{"call", probes[i].name},
                                 {"then", then},
                                 {"host_us", host_time_text(host.median_us)},
                                 {"kernels_us", us_text(its_kernels.median_us)}};
    if (!probes[i].size.empty()) settings["size"] = probes[i].size;
    add_result(context, experiment, {"", settings, {}}, context.shape, its_kernels);
  }
}

constexpr auto kNothing = [] {};

void run_stalls(const Context& context) {
  const size_t bytes = size_t(context.shape.m) * context.shape.n * sizeof(__nv_bfloat16);
  const ladder::Stream stream = ladder::make_stream();
  const cudaStream_t other = stream.get();
  const MemoryPool empty(0), filled(UINT64_MAX);
  void* memory = nullptr;

  const auto allocate = [&] { CUDA_CHECK(cudaMalloc(&memory, bytes)); };
  const auto release = [&] { CUDA_CHECK(cudaFree(memory)); };
  const auto allocate_from = [&](const MemoryPool& pool) {
    return [&] { CUDA_CHECK(cudaMallocFromPoolAsync(&memory, bytes, pool.get(), other)); };
  };
  const auto release_in_order = [&] { CUDA_CHECK(cudaFreeAsync(memory, other)); };
  const auto settle = [&] { CUDA_CHECK(cudaStreamSynchronize(other)); };
  const auto release_and_settle = [&] {
    release_in_order();
    settle();
  };
  const auto fill_pool = [&] {
    allocate_from(filled)();
    release_and_settle();
  };
  probe_all(context, "stalls",
            {{"none", "", kNothing, kNothing, kNothing},
             {"cudaMalloc", "", kNothing, allocate, release},
             {"cudaFree", "", allocate, release, kNothing},
             {"cudaMallocAsync, pool is empty", "", kNothing, allocate_from(empty), release_and_settle},
             {"cudaMallocAsync, pool has it", "", fill_pool, allocate_from(filled), release_and_settle},
             {"cudaFreeAsync", "", allocate_from(filled), release_in_order, settle}},
            ladder::on_cpu_device() ? 4 : 32);
}

/// Host memory by malloc, every page of which was written.
void* touched(size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (!memory) throw std::bad_alloc();
  return std::memset(memory, 1, bytes);
}

void run_pinning(const Context& context) {
  const bool cpu = ladder::on_cpu_device();
  void* memory = nullptr;
  const auto release = [&] { std::free(memory); };
  std::vector<Probe> probes = {{"none", "", kNothing, kNothing, kNothing}};
  std::deque<PinnedRing<std::byte>> rings;
  for (const size_t mib : cpu ? std::vector<size_t>{1, 4} : std::vector<size_t>{1, 8, 64}) {
    const size_t bytes = mib << 20;
    const std::string size = std::to_string(mib) + " MiB";
    PinnedRing<std::byte>& ring = rings.emplace_back("pinned", 1, bytes);
    const auto touch = [&, bytes] { memory = touched(bytes); };
    const auto allocate = [&, bytes] { CUDA_CHECK(cudaMallocHost(&memory, bytes)); };
    const auto free_pinned = [&] { CUDA_CHECK(cudaFreeHost(memory)); };
    const auto pin_touched = [&, bytes] {
      CUDA_CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
    };
    const auto unpin = [&] { CUDA_CHECK(cudaHostUnregister(memory)); };
    probes.insert(probes.end(), {{"malloc, and every page written", size, kNothing, touch, release},
                                 {"cudaMallocHost", size, kNothing, allocate, free_pinned},
                                 {"cudaFreeHost", size, allocate, free_pinned, kNothing},
                                 {"cudaHostRegister", size, touch, pin_touched,
                                  [=] {
                                    unpin();
                                    release();
                                  }},
                                 {"cudaHostUnregister", size,
                                  [=] {
                                    touch();
                                    pin_touched();
                                  },
                                  unpin, release},
                                 {"a slot of the ring", size, kNothing,
                                  [&ring] { ring.acquire(std::chrono::seconds(1)); }, kNothing}});
  }
  // With the large weights the kernels take longer than the longest call.
  probe_all(context, "pinning", std::move(probes), cpu ? 4 : 48);
}

}  // namespace

const Experiment& stalls_experiment() {
  static const Experiment experiment = {
      "stalls", "Which allocation calls wait for other streams, and which hold their work up?", run_stalls};
  return experiment;
}

const Experiment& pinning_experiment() {
  static const Experiment experiment = {
      "pinning", "What does pinning host memory take, and does it hold up other streams?", run_pinning};
  return experiment;
}

}  // namespace lesson07
