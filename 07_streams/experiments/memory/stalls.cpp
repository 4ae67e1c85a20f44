/// @file
/// Experiment `stalls`: which allocation calls wait for work of other streams, and does that work wait for
/// them?
///
/// One stream is given kernels for some milliseconds. While it works, the host makes one call that has
/// nothing to do with it. Is the stream still busy when the call returns, and does it end later than without
/// the call?
#include "07_streams/experiments/support.hpp"
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
  std::function<void()> prepare, call, tidy;
  std::vector<double> host_us = {};
  bool always_busy = true;  ///< was the stream, whenever the call returned?
};

Measured median_of(const std::vector<double>& samples) {
  const ladder::Quartiles quartiles = ladder::quartiles(samples);
  return {quartiles.median, quartiles.q1, quartiles.q3};
}

void run_stalls(const Context& context) {
  const ladder::Shape& shape = context.shape;
  const RandomWeights weights(shape.k, shape.n);
  BatchSlot slot(weights, shape.m);
  const std::vector<ladder::Stream> streams = make_streams(2);
  const cudaStream_t busy = streams[0].get(), other = streams[1].get();
  const size_t bytes = slot.host_c().bytes();
  const MemoryPool empty(0), filled(UINT64_MAX);
  void* memory = nullptr;
  const int kernels = ladder::on_cpu_device() ? 4 : 32;  // in the busy stream

  const auto nothing = [] {};
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
  std::vector<Probe> probes = {
      {"none", nothing, nothing, nothing},
      {"cudaMalloc", nothing, allocate, release},
      {"cudaFree", allocate, release, nothing},
      {"cudaMallocAsync, pool is empty", nothing, allocate_from(empty), release_and_settle},
      {"cudaMallocAsync, pool has it", fill_pool, allocate_from(filled), release_and_settle},
      {"cudaFreeAsync", allocate_from(filled), release_in_order, settle}};

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
    for (Probe& probe : probes) probe = {probe.name, probe.prepare, probe.call, probe.tidy};
  }
  const std::vector<std::vector<double>> samples = ladder::interleave(probes.size(), rounds, kernels_us);

  ladder::Table table(context.out, {{"call", 30, false},
                                    {"host us", 8},
                                    {"the other stream then", 21, false},
                                    {"its kernels us", 14},
                                    {"x alone", 7}});
  table.header();
  const double alone = median_of(samples[0]).median_us;
  for (size_t i = 0; i < probes.size(); ++i) {
    const Measured its_kernels = median_of(samples[i]), host = median_of(probes[i].host_us);
    const std::string then = probes[i].always_busy ? "is still busy" : "has ended";
    table.row({probes[i].name, host_time_text(host.median_us), then, us_text(its_kernels.median_us),
               ladder::fixed(its_kernels.median_us / alone, 2)});
    const ladder::Settings settings = {{"call", probes[i].name}, {"then", then}};
    add_result(context, "stalls", {"", settings, {}}, shape, its_kernels);
  }
}

}  // namespace

const Experiment& stalls_experiment() {
  static const Experiment experiment = {
      "stalls", "Which allocation calls wait for other streams, and which hold their work up?", run_stalls};
  return experiment;
}

}  // namespace lesson07
