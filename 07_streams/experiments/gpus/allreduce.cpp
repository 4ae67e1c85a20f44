/// @file
/// How much of an all-reduce can be hidden behind the next batch's product, and what stands in the way:
/// kernels that take every SM leave none to NCCL's.
#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <deque>
#include <memory>

#include "07_streams/best_kernel.hpp"
#include "07_streams/experiments/devices.hpp"
#include "07_streams/experiments/gpus/split_product.hpp"
#include "07_streams/measure/measure.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/program/command_line.hpp"

namespace lesson07 {
namespace {

/// How many SMs the product leaves free, which is also how many blocks NCCL may have; 0: neither is limited.
std::vector<int> spare_sms_choices() {
  if (!best_kernel().settings.contains("spare_sms")) return {0};  // that kernel takes all SMs
  return ladder::on_cpu_device() ? std::vector{0, 4} : std::vector{0, 4, 8, 16, 32};
}

/// Sequential and overlapped runs on whole numbers, with the communicators for each number of spare SMs.
/// @throws WrongResult
void verify(SplitProduct& product, const std::vector<int>& spares,
            const std::vector<std::unique_ptr<Communicators>>& communicators, const Context& context,
            int devices) {
  constexpr uint64_t kSeed = 1;
  constexpr int kBatches = 7;  // every slot and every input again, in other pairs
  const std::vector<int> rows = SampledRows(context.shape.m, context.shape.n, 1).rows();
  std::vector<std::vector<float>> expected;  // of each input
  for (int input = 0; input < SplitProduct::kInputs; ++input)
    expected.push_back(product.expected_rows(kSeed, input, rows));

  product.fill_exactly(kSeed);
  for (size_t i = 0; i < spares.size(); ++i)
    for (const bool overlaps : {false, true}) {
      std::deque<SampledRows> sampled;  // one for each device
      std::vector<SampledRows*> pointers;
      for (int device = 0; device < devices; ++device)
        pointers.push_back(&sampled.emplace_back(context.shape.m, context.shape.n, kBatches));
      product.run(kBatches, {.overlaps = overlaps, .spare_sms = spares[i]}, *communicators[i], pointers);
      const std::string who =
          fmt::format("allreduce, {}, {} spare SMs, GPU ", overlaps ? "overlapped" : "sequential", spares[i]);
      for (int batch = 0; batch < kBatches; ++batch)
        for (int device = 0; device < devices; ++device)
          sampled[device].check(who + std::to_string(device), batch, expected[batch % SplitProduct::kInputs]);
    }
}

/// The schedules for one number of spare SMs, in this order.
constexpr std::array kSchedules = {std::pair("product alone", SplitSchedule{true, false, false}),
                                   std::pair("all-reduce alone", SplitSchedule{false, true, false}),
                                   std::pair("sequential", SplitSchedule{true, true, false}),
                                   std::pair("overlapped", SplitSchedule{true, true, true})};

void print(const Context& context, const SplitProduct& product, const std::vector<int>& spares,
           const std::vector<Measured>& times) {
  ladder::Table table(context.out, {{"spare SMs", 9},
                                    {"product us", 10},
                                    {"all-reduce us", 13},
                                    {"GB/s", 5},
                                    {"sequential us", 13},
                                    {"overlapped us", 13},
                                    {"hidden %", 8}});
  table.header();
  const auto us = [&](size_t row, size_t schedule) {
    return times[row * kSchedules.size() + schedule].median_us / context.batches;
  };
  // Against what is best without overlap: the product on all SMs, NCCL with as many blocks as it likes.
  const double shorter = std::min(us(0, 0), us(0, 1));
  for (size_t row = 0; row < spares.size(); ++row)
    table.row({std::to_string(spares[row]), ladder::fixed(us(row, 0), 1), ladder::fixed(us(row, 1), 1),
               ladder::fixed(product.c_bytes() / us(row, 1) / 1e3, 0), ladder::fixed(us(row, 2), 1),
               ladder::fixed(us(row, 3), 1), ladder::fixed((us(0, 2) - us(row, 3)) / shorter * 100, 0)});
}

void run_allreduce(const Context& context) {
  if (!has_devices(context, "allreduce", 2)) return;
  const int devices = count_devices();
  check_kernel(context.shape);
  SplitProduct product(context.shape, devices);

  const std::vector<int> spares = spare_sms_choices();
  std::vector<std::unique_ptr<Communicators>> communicators;
  std::vector<Variant> variants;
  for (const int spare : spares) {
    communicators.push_back(std::make_unique<Communicators>(devices, spare));
    for (const auto& [name, schedule] : kSchedules) {
      SplitSchedule chosen = schedule;
      chosen.spare_sms = spare;
      variants.push_back({fmt::format("{}, {} spare", name, spare),
                          {{"schedule", name},
                           {"devices", std::to_string(devices)},
                           {"spare_sms", std::to_string(spare)},
                           {"batches", std::to_string(context.batches)}},
                          [&product, &context, chosen, ranks = communicators.back().get()] {
                            product.run(context.batches, chosen, *ranks);
                          }});
    }
  }
  verify(product, spares, communicators, context, devices);
  product.fill_normally(1);
  const std::vector<Measured> times = measure_interleaved(variants, context.rounds);

  context.out << devices << " GPUs, " << context.batches << " batches, C " << context.shape.m << " x "
              << context.shape.n << ", K " << context.shape.k << " of which each GPU has "
              << context.shape.k / devices << "; times for a batch\n";
  print(context, product, spares, times);
  for (size_t i = 0; i < variants.size(); ++i) {
    ladder::Run row = result_row("allreduce", variants[i], context.shape, times[i]);
    if (kSchedules[i % kSchedules.size()].second.reduces &&
        kSchedules[i % kSchedules.size()].second.multiplies) {
      row.verified = true;  // else verify() would have thrown
      row.tflops = context.shape.flops() * context.batches / times[i].median_us / 1e6;
    }
    context.results.runs.push_back(row);
  }
}

}  // namespace

const Experiment& allreduce_experiment() {
  static const Experiment experiment = {
      "allreduce", "What does it take to hide an all-reduce behind the next batch's product?", run_allreduce};
  return experiment;
}

}  // namespace lesson07
