/// @file
/// Experiment `events`: a chain of streams A to B to D, held together by events, beside a stream C that is
/// free.
#include <algorithm>
#include <stdexcept>

#include "07_streams/experiments/chain.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/fill.hpp"
#include "common/host/verify/verifier.hpp"

namespace lesson07 {
namespace {

constexpr int kProducts = 8;  ///< of each step, so that a step is long beside what an event costs

}  // namespace

Chain::Chain(const RandomWeights& weights, int rows)
    : weights_(&weights),
      rows_(rows),
      elements_(static_cast<size_t>(rows) * weights.k),
      x0_(elements_),
      x1_(elements_),
      x2_(elements_),
      x3_(elements_),
      y0_(elements_),
      y_(elements_),
      a_{"A", x0_.data(), x1_.data()},
      b_{"B", x1_.data(), x2_.data()},
      c_{"C", y0_.data(), y_.data()},
      d_{"D", x2_.data(), x3_.data()} {
  const int magnitude = ladder::integer_magnitude(weights.k);
  ladder::fill(x0_.data(), elements_, ladder::IntegerValues{2, magnitude});
  ladder::fill(y0_.data(), elements_, ladder::IntegerValues{3, magnitude});
  CUDA_CHECK(cudaDeviceSynchronize());
}

void Chain::work(Step& step, cudaStream_t stream) {
  CUDA_CHECK(cudaEventRecord(step.begin.get(), stream));
  for (int i = 0; i < kProducts; ++i) multiply(*weights_, step.from, step.to, rows_, stream);
  CUDA_CHECK(cudaEventRecord(step.end.get(), stream));
}

void Chain::run(bool waits) {
  CUDA_CHECK(cudaEventRecord(start_.get(), a_.stream.get()));
  for (Step* step : {&b_, &c_, &d_}) CUDA_CHECK(cudaStreamWaitEvent(step->stream.get(), start_.get(), 0));

  work(a_, a_.stream.get());
  if (waits) CUDA_CHECK(cudaStreamWaitEvent(b_.stream.get(), a_.end.get(), 0));
  work(b_, b_.stream.get());
  if (waits) CUDA_CHECK(cudaStreamWaitEvent(d_.stream.get(), b_.end.get(), 0));
  work(d_, d_.stream.get());
  work(c_, c_.stream.get());  // last, and begins long before D all the same

  CUDA_CHECK(cudaDeviceSynchronize());
}

void Chain::run_in_one_stream() {
  for (Step* step : {&a_, &b_, &d_, &c_}) work(*step, a_.stream.get());
  CUDA_CHECK(cudaStreamSynchronize(a_.stream.get()));
}

std::vector<StreamTimes> Chain::times() const {
  std::vector<StreamTimes> times;
  for (const Step* step : {&a_, &b_, &c_, &d_})
    times.push_back({step->name, 1000 * ladder::elapsed_ms(start_, step->begin),
                     1000 * ladder::elapsed_ms(start_, step->end)});
  return times;
}

std::vector<__nv_bfloat16> Chain::results() const {
  std::vector<__nv_bfloat16> both = ladder::download(x3_.data(), elements_);
  const std::vector<__nv_bfloat16> y = ladder::download(y_.data(), elements_);
  both.insert(both.end(), y.begin(), y.end());
  return both;
}

namespace {

void run_events(const Context& context) {
  const int rows = std::max(1, context.shape.m / 16);  // few blocks, so that two kernels fit on the GPU
  const RandomWeights weights(context.shape.k, context.shape.k);
  Chain chain(weights, rows);
  const std::vector<Variant> variants = {
      {"A to B to D, C free", {{"streams", "four, by events"}}, [&] { chain.run(); }},
      {"all in one stream", {{"streams", "one"}}, [&] { chain.run_in_one_stream(); }}};
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  chain.run();
  const std::vector<StreamTimes> times = chain.times();
  const StreamTimes &a = times[0], &b = times[1], &c = times[2], &d = times[3];
  ladder::Table table(context.out,
                      {{"stream", 6, false}, {"waits for", 9, false}, {"begins us", 10}, {"ends us", 10}});
  table.header();
  const char* const waits_for[] = {"-", "A", "-", "B"};
  for (size_t i = 0; i < times.size(); ++i)
    table.row({times[i].name, waits_for[i], us_text(times[i].begin_us), us_text(times[i].end_us)});
  if (a.end_us > b.begin_us || b.end_us > d.begin_us)
    throw std::runtime_error("events: a stream began before the event that it waits for");
  const double beside = std::min(c.end_us, d.end_us) - std::max(c.begin_us, a.begin_us);
  if (ladder::on_cpu_device())  // whose virtual clock has one engine for all kernels
    context.out << "kernels take turns on the CPU device: C's ran between those of the chain\n\n";
  else
    context.out << "C ran beside the chain for " << us_text(std::max(0.0, beside)) << " us\n\n";

  for (const StreamTimes& stream : times) {
    const double us = stream.end_us - stream.begin_us;
    const ladder::Settings settings = {{"stream", stream.name}, {"begins_us", us_text(stream.begin_us)}};
    add_result(context, "events", {"", settings, {}}, {rows, context.shape.k, context.shape.k}, {us, us, us});
  }
  for (size_t i = 0; i < variants.size(); ++i) {
    context.out << variants[i].label << ": " << us_text(measured[i].median_us) << " us\n";
    add_result(context, "events", variants[i], {rows, context.shape.k, context.shape.k}, measured[i]);
  }
}

}  // namespace

const Experiment& events_experiment() {
  static const Experiment experiment = {
      "events", "Do events keep a chain of streams in order and leave another stream alone?", run_events};
  return experiment;
}

}  // namespace lesson07
