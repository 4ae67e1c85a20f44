/// @file
/// Is it worth a second GPU to run two layers, one on each, and what if the host orders them?
#include "07_streams/experiments/gpus/peers.hpp"

#include <algorithm>

#include "07_streams/best_kernel.hpp"
#include "07_streams/drain.hpp"
#include "07_streams/experiments/devices.hpp"
#include "07_streams/measure/measure.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/problem/fill.hpp"
#include "common/host/program/command_line.hpp"

namespace lesson07 {
namespace {

constexpr int kFirst = 0, kSecond = 1;  // devices

void record(const ladder::Event& event, cudaStream_t stream) {
  CUDA_CHECK(cudaEventRecord(event.get(), stream));
}
void await(const ladder::Event& event, cudaStream_t stream) {
  CUDA_CHECK(cudaStreamWaitEvent(stream, event.get()));
}

}  // namespace

TwoLayers::TwoLayers(const ladder::Shape& shape) : shape_(shape), slots_(kSlots) {
  const size_t h_count = size_t(shape.m) * shape.n, c_count = size_t(shape.m) * shape.k;
  const size_t weights_count = size_t(shape.n) * shape.k;
  {
    const OnDevice current(kFirst);
    for (int input = 0; input < kInputs; ++input) a_.emplace_back(c_count);
    b1_ = ladder::DeviceBuffer<bf16>(weights_count);
    b2_on_one_ = ladder::DeviceBuffer<bf16>(weights_count);
    c_on_one_ = ladder::DeviceBuffer<bf16>(c_count);
    first_ = ladder::make_stream();
    copies_ = ladder::make_stream();
    for (Slot& slot : slots_) {
      slot.h0 = ladder::DeviceBuffer<bf16>(h_count);
      slot.computed = ladder::make_order_event();
      slot.copied = ladder::make_order_event();
    }
  }
  const OnDevice current(kSecond);
  b2_ = ladder::DeviceBuffer<bf16>(weights_count);
  second_ = ladder::make_stream();
  for (Slot& slot : slots_) {
    slot.h1 = ladder::DeviceBuffer<bf16>(h_count);
    slot.c = ladder::DeviceBuffer<bf16>(c_count);
    slot.consumed = ladder::make_order_event();
  }
}

TwoLayers::~TwoLayers() {
  for (const ladder::Stream* stream : {&first_, &copies_, &second_}) drain(stream->get());
}

void TwoLayers::fill_exactly(uint64_t seed) {
  {
    const OnDevice current(kFirst);
    for (int input = 0; input < kInputs; ++input)
      a_[input].upload(sparse_integers(seed, input * a_[input].size(), a_[input].size()));
    ladder::fill(b1_.data(), b1_.size(), exact_weights(seed + 1));
    ladder::fill(b2_on_one_.data(), b2_on_one_.size(), exact_weights(seed + 2));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  const OnDevice current(kSecond);
  ladder::fill(b2_.data(), b2_.size(), exact_weights(seed + 2));
  CUDA_CHECK(cudaDeviceSynchronize());  // non-blocking streams do not wait for the legacy one
}

void TwoLayers::fill_normally(uint64_t seed) {
  {
    const OnDevice current(kFirst);
    for (auto* matrix : {&a_[0], &a_[1], &a_[2], &b1_, &b2_on_one_})
      ladder::fill(matrix->data(), matrix->size(), ladder::NormalValues{seed++});
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  const OnDevice current(kSecond);
  ladder::fill(b2_.data(), b2_.size(), ladder::NormalValues{seed});
  CUDA_CHECK(cudaDeviceSynchronize());
}

void TwoLayers::layer(int number, const bf16* from, const bf16* weights, bf16* to,
                      cudaStream_t stream) const {
  static const Kernel kernel = best_kernel();
  const int n = number == 1 ? shape_.n : shape_.k, k = number == 1 ? shape_.k : shape_.n;
  kernel.launch({from, weights, to, shape_.m, n, k}, stream);
}

void TwoLayers::copy(Slot& slot, cudaStream_t stream) const {
  CUDA_CHECK(cudaMemcpyPeerAsync(slot.h1.data(), kSecond, slot.h0.data(), kFirst,
                                 slot.h0.size() * sizeof(bf16), stream));
}

void TwoLayers::wait() const {
  for (const ladder::Stream* stream : {&first_, &copies_, &second_})
    CUDA_CHECK(cudaStreamSynchronize(stream->get()));
}

void TwoLayers::run_on_two(int batches, HandOff hand_off, SampledRows* sampled) {
  const auto end_of_step = [&](const ladder::Stream& stream) {
    if (hand_off == HandOff::host) CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  };
  for (int b = 0; b < batches; ++b) {
    Slot& slot = slots_[b % kSlots];
    const bool used_before = b >= kSlots;
    {
      const OnDevice current(kFirst);
      if (used_before) await(slot.copied, first_.get());  // until then H_{b-kSlots} must stay on GPU 0
      layer(1, a_[b % kInputs].data(), b1_.data(), slot.h0.data(), first_.get());
      record(slot.computed, first_.get());
      end_of_step(first_);

      await(slot.computed, copies_.get());
      if (used_before && hand_off != HandOff::nobody_until_consumed)
        await(slot.consumed, copies_.get());  // and so long on GPU 1
      copy(slot, copies_.get());
      record(slot.copied, copies_.get());
      end_of_step(copies_);
    }
    const OnDevice current(kSecond);
    if (hand_off != HandOff::nobody_until_copied)
      await(slot.copied, second_.get());  // an event of the other GPU
    layer(2, slot.h1.data(), b2_.data(), slot.c.data(), second_.get());
    record(slot.consumed, second_.get());
    if (sampled) sampled->take(b, slot.c.data(), second_.get());
  }
  wait();
}

void TwoLayers::run_on_one(int batches, SampledRows* sampled) {
  const OnDevice current(kFirst);
  for (int b = 0; b < batches; ++b) {
    bf16* h = slots_[b % kSlots].h0.data();
    layer(1, a_[b % kInputs].data(), b1_.data(), h, first_.get());
    layer(2, h, b2_on_one_.data(), c_on_one_.data(), first_.get());
    if (sampled) sampled->take(b, c_on_one_.data(), first_.get());
  }
  wait();
}

void TwoLayers::run_layer(int number, int batches) {
  const OnDevice current(number == 1 ? kFirst : kSecond);
  for (int b = 0; b < batches; ++b) {
    Slot& slot = slots_[b % kSlots];
    if (number == 1)
      layer(1, a_[b % kInputs].data(), b1_.data(), slot.h0.data(), first_.get());
    else
      layer(2, slot.h1.data(), b2_.data(), slot.c.data(), second_.get());
  }
  wait();
}

void TwoLayers::run_copies(int batches) {
  const OnDevice current(kFirst);
  for (int b = 0; b < batches; ++b) copy(slots_[b % kSlots], copies_.get());
  wait();
}

std::vector<float> TwoLayers::expected_rows(uint64_t seed, int batch, const std::vector<int>& rows) const {
  const uint64_t first = uint64_t(batch % kInputs) * shape_.m * shape_.k;
  std::vector<float> a;
  for (const int row : rows)
    for (int step = 0; step < shape_.k; ++step)
      a.push_back(SparseIntegers{seed}(first + uint64_t(row) * shape_.k + step));
  std::vector<float> h = multiply_exactly(a, exact_weights(seed + 1), shape_.k, shape_.n);
  for (float& value : h) value = ladder::to_float(ladder::to_bf16(value));  // as layer 1 stores it
  return multiply_exactly(h, exact_weights(seed + 2), shape_.n, shape_.k);
}

namespace {

/// Every schedule on whole numbers. @throws WrongResult
void verify(TwoLayers& layers, const Context& context) {
  constexpr uint64_t kSeed = 1;
  constexpr int kBatches = 7;  // every slot and every input again, in other pairs
  layers.fill_exactly(kSeed);
  std::vector<std::vector<float>> expected;  // of each input
  const auto check = [&](const std::string& who, const auto& run) {
    SampledRows sampled(context.shape.m, context.shape.k, kBatches);
    run(&sampled);
    for (int input = static_cast<int>(expected.size()); input < TwoLayers::kInputs; ++input)
      expected.push_back(layers.expected_rows(kSeed, input, sampled.rows()));
    for (int b = 0; b < kBatches; ++b) sampled.check("peers, " + who, b, expected[b % TwoLayers::kInputs]);
  };
  check("one GPU", [&](SampledRows* sampled) { layers.run_on_one(kBatches, sampled); });
  check("events", [&](SampledRows* sampled) { layers.run_on_two(kBatches, HandOff::events, sampled); });
  check("host waits", [&](SampledRows* sampled) { layers.run_on_two(kBatches, HandOff::host, sampled); });
}

void run_peers(const Context& context) {
  if (!has_devices(context, "peers", 2)) return;
  check_kernel(context.shape);
  const bool direct = enable_peer_access(kFirst, kSecond);
  TwoLayers layers(context.shape);
  verify(layers, context);
  layers.fill_normally(1);

  const int batches = context.batches;
  const auto variant = [&](const std::string& label, int devices, const std::function<void()>& run) {
    return Variant{label,
                   {{"schedule", label},
                    {"devices", std::to_string(devices)},
                    {"batches", std::to_string(batches)},
                    {"peer_access", direct ? "direct" : "through host memory"}},
                   run};
  };
  const std::vector<Variant> variants = {
      variant("one GPU, both layers", 1, [&] { layers.run_on_one(batches); }),
      variant("two GPUs, the host waits", 2, [&] { layers.run_on_two(batches, HandOff::host); }),
      variant("two GPUs, events", 2, [&] { layers.run_on_two(batches, HandOff::events); }),
      variant("layer 1 alone", 1, [&] { layers.run_layer(1, batches); }),
      variant("layer 2 alone", 1, [&] { layers.run_layer(2, batches); }),
      variant("peer copy alone", 2, [&] { layers.run_copies(batches); })};
  const std::vector<Measured> times = measure_interleaved(variants, context.rounds);

  context.out << batches << " batches, A " << context.shape.m << " x " << context.shape.k << ", B1 "
              << context.shape.k << " x " << context.shape.n << ", B2 " << context.shape.n << " x "
              << context.shape.k << "; copies between the GPUs "
              << (direct ? "are direct" : "go through host memory") << "\n";
  ladder::Table table(
      context.out,
      {{"schedule", 26, false}, {"us for a batch", 14}, {"+- %", 5}, {"x one GPU", 9}, {"GB/s", 6}});
  table.header();
  for (size_t i = 0; i < variants.size(); ++i) {
    const Measured& time = times[i];
    const bool both_layers = i < 3, copies = i + 1 == variants.size();
    table.row({variants[i].label, ladder::fixed(time.median_us / batches, 1),
               ladder::fixed((time.q3_us - time.q1_us) / 2 / time.median_us * 100, 1),
               both_layers ? ladder::fixed(times[0].median_us / time.median_us, 2) : "-",
               copies ? ladder::fixed(layers.copy_bytes() * batches / time.median_us / 1e3, 0) : "-"});
    ladder::Run row = result_row("peers", variants[i], context.shape, time);
    if (both_layers) {
      row.verified = true;  // else verify() would have thrown
      row.tflops = 2 * context.shape.flops() * batches / time.median_us / 1e6;
    }
    context.results.runs.push_back(row);
  }
}

}  // namespace

const Experiment& peers_experiment() {
  static const Experiment experiment = {
      "peers", "Two layers on two GPUs: how can they run without waiting for each other?", run_peers};
  return experiment;
}

}  // namespace lesson07
