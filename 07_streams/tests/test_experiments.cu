/// @file
/// The experiments: each runs on small problems by every schedule and has rows that make sense; what they are
/// built of computes the right thing; the event chain without its events is found out.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
#include <set>
#include <sstream>

#include "06_clusters_dsmem/gemm.cuh"
#include "07_streams/experiments/chain.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/verify/reference.hpp"
#include "common/testing/gemm_checks.hpp"
#ifdef LADDER_CPU_DEVICE
#include "common/cpu_device/cpu_device.hpp"
#endif

using namespace lesson07;
using Catch::Matchers::ContainsSubstring;
using ladder::testing::for_each_schedule;

namespace {

void skip_unless_runnable() { ladder::testing::skip_unless_runnable(lesson06::lesson()); }

const Experiment& experiment_called(const std::string& name) {
  for (const Experiment* experiment : experiments())
    if (experiment->name == name) return *experiment;
  FAIL("no experiment is called " << name);
  throw;  // not reached
}

/// What an experiment printed and recorded.
struct Outcome {
  std::string text;
  std::vector<ladder::Run> runs;
};

Outcome run_small(const std::string& name, int batches = 4) {
  std::ostringstream out;
  ladder::ResultFile results;
  experiment_called(name).run({out, results, {80, 128, 128}, batches, 1, 3, 4});
  return {out.str(), results.runs};
}

std::vector<uint16_t> bits_of(const __nv_bfloat16* values, size_t count) {
  std::vector<uint16_t> bits(count);
  std::transform(values, values + count, bits.begin(), ladder::bf16_bits);
  return bits;
}

}  // namespace

TEST_CASE("a slot uploads, multiplies and downloads, from each kind of memory") {
  skip_unless_runnable();
  const HostMemory memory = GENERATE(HostMemory::pageable, HostMemory::registered, HostMemory::pinned);
  for_each_schedule([&] {
    const RandomWeights weights(72, 136);
    BatchSlot slot(weights, 67, memory);
    const ladder::Stream stream = ladder::make_stream();
    slot.run(stream.get());
    CUDA_CHECK(cudaStreamSynchronize(stream.get()));

    std::vector<int> rows(67);
    std::iota(rows.begin(), rows.end(), 0);
    const ladder::Reference right =
        ladder::reference_product({.a = slot.a(), .b = weights.b.data(), .m = 67, .n = 136, .k = 72}, rows);
    std::vector<uint16_t> expected(right.values.size());
    std::transform(right.values.begin(), right.values.end(), expected.begin(), [](double value) {
      return ladder::bf16_bits(ladder::to_bf16(static_cast<float>(value)));
    });
    CHECK(bits_of(slot.host_c().data(), slot.host_c().size()) == expected);
  });
}

TEST_CASE("every experiment runs by every schedule, and its rows name what was measured") {
  skip_unless_runnable();
  const size_t index = GENERATE(range(size_t{0}, experiments().size()));
  const std::string name = experiments()[index]->name;
  if (name == "peers" || name == "allreduce") return;  // need two GPUs, and have tests of their own
  CAPTURE(name);
  for_each_schedule(
      [&] {
        const Outcome outcome = run_small(name);
        CHECK(!outcome.text.empty());
        for (const std::string& line : ladder::split(outcome.text, '\n')) CHECK(line.size() <= 100);
        CHECK(!outcome.runs.empty());
        std::set<std::pair<std::string, ladder::Settings>> different;
        for (const ladder::Run& run : outcome.runs) {
          CHECK(run.lesson == "07_streams");
          CHECK(run.settings.at("experiment") == name);
          CHECK(run.time_us_median.value() > 0);
          if (run.bound_us) CHECK(*run.bound_us > 0);
          different.emplace(run.shape.name(), run.settings);
        }
        CHECK(different.size() == outcome.runs.size());
      },
      1);
}

TEST_CASE("the chain by events makes what one stream makes, bit for bit") {
  skip_unless_runnable();
  for_each_schedule([&] {
    const RandomWeights weights(64, 64);
    Chain chain(weights, 40);
    chain.run_in_one_stream();
    const auto one = chain.results();
    chain.run();
    const auto four = chain.results();
    CHECK(bits_of(one.data(), one.size()) == bits_of(four.data(), four.size()));
    const std::vector<StreamTimes> times = chain.times();
    REQUIRE(times.size() == 4);
    const StreamTimes &a = times[0], &b = times[1], &c = times[2], &d = times[3];
    CHECK(a.end_us <= b.begin_us);
    CHECK(b.end_us <= d.begin_us);
#ifdef LADDER_CPU_DEVICE  // A GPU may be done with so small a chain before the host has enqueued C.
    CHECK(c.begin_us < d.end_us);
#else
    CHECK(c.begin_us <= c.end_us);
#endif
  });
}

#ifdef LADDER_CPU_DEVICE
/// The row with these settings, among others.
const ladder::Run& row(const Outcome& outcome, const ladder::Settings& settings) {
  for (const ladder::Run& run : outcome.runs)
    if (std::includes(run.settings.begin(), run.settings.end(), settings.begin(), settings.end())) return run;
  FAIL("no row has these settings");
  throw;  // not reached
}

double us(const Outcome& outcome, const ladder::Settings& settings) {
  return row(outcome, settings).time_us_median.value();
}

TEST_CASE(
    "arrival: cudaMemcpy from pageable memory is named, the copy that is waited for never comes too late") {
  for_each_schedule([&] {
    const Outcome outcome = run_small("arrival");
    for (const std::string bytes : {"64", "65536"}) {
      CHECK_THAT(outcome.text,
                 Catch::Matchers::Matches("[^]*cudaMemcpy +" + bytes + " +named by the CPU device[^]*"));
      const ladder::Run& run = row(outcome, {{"how", "copy_to_device"}, {"bytes", bytes}});
      CHECK_THAT(run.settings.at("early"), Catch::Matchers::StartsWith("0 of "));
    }
  });
}

TEST_CASE("the chain without its events is reported, whatever the schedule") {
  for_each_schedule([&] {
    const RandomWeights weights(64, 64);
    Chain chain(weights, 40);
    CHECK_THROWS_WITH(chain.run(false), ContainsSubstring("cudaStreamWaitEvent"));
  });
}

TEST_CASE("on the virtual clock the experiments come out as the model says") {
  SECTION("three streams do at once what one does in turn") {
    const Outcome outcome = run_small("streams", 8);
    const double one = us(outcome, {{"streams", "1"}}), three = us(outcome, {{"streams", "3"}});
    CHECK(three < one);
    CHECK(three >= 0.99 * row(outcome, {{"streams", "3"}}).bound_us.value());
  }
  SECTION("pageable memory ends the overlap") {
    const Outcome outcome = run_small("pinned", 8);
    CHECK(us(outcome, {{"memory", "pageable"}, {"measures", "pipeline"}}) >
          us(outcome, {{"memory", "pinned"}, {"measures", "pipeline"}}));
    CHECK_THAT(
        us(outcome, {{"memory", "registered"}, {"measures", "pipeline"}}),
        Catch::Matchers::WithinRel(us(outcome, {{"memory", "pinned"}, {"measures", "pipeline"}}), 1e-6));
  }
  SECTION("an operation in stream 0 costs blocking streams their overlap, and no others") {
    const Outcome outcome = run_small("default_stream", 8);
    const auto of = [&](const char* streams, const char* stray) {
      return us(outcome, {{"streams", streams}, {"stray", stray}});
    };
    CHECK(of("blocking", "one a batch") > of("blocking", "no"));
    CHECK(of("non-blocking", "one a batch") < of("blocking", "one a batch"));
  }
  SECTION("a stream that waits costs less than a host that waits for all") {
    const Outcome outcome = run_small("waits", 8);
    CHECK(us(outcome, {{"wait", "cudaStreamWaitEvent"}}) <= us(outcome, {{"wait", "cudaStreamSynchronize"}}));
    CHECK(us(outcome, {{"wait", "cudaStreamSynchronize"}}) <
          us(outcome, {{"wait", "cudaDeviceSynchronize"}}));
  }
  SECTION("the size of a batch that is best is the one that the closed form says") {
    CHECK_THAT(run_small("chunk", 8).text, ContainsSubstring("time, closed form"));
  }
}

TEST_CASE("no experiment leaves memory, streams or events behind") {
  const size_t index = GENERATE(range(size_t{0}, experiments().size()));
  CAPTURE(experiments()[index]->name);
  const cpu_device::LiveResources before = cpu_device::live_resources();
  run_small(experiments()[index]->name);
  const cpu_device::LiveResources after = cpu_device::live_resources();
  CHECK(after.device_bytes == before.device_bytes);
  CHECK(after.pinned_bytes == before.pinned_bytes);
  CHECK(after.streams == before.streams);
  CHECK(after.events == before.events);
  CHECK(after.graphs == before.graphs);
  CHECK(after.pools == before.pools);
}
#endif
