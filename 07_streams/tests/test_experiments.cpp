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
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "07_streams/experiments/chain.hpp"
#include "07_streams/experiments/devices.hpp"
#include "07_streams/experiments/layers.hpp"
#include "07_streams/experiments/memory/caching_allocator.hpp"
#include "07_streams/experiments/memory/scratch.hpp"
#include "07_streams/experiments/sharing.hpp"
#include "07_streams/tests/experiment_outcome.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/verify/reference.hpp"
#include "common/testing/breadth.hpp"
#ifdef LADDER_CPU_DEVICE
#include "common/cpu_device/cpu_device.hpp"
#endif

using namespace lesson07;
using Catch::Matchers::ContainsSubstring;
using ladder::testing::for_each_schedule;
using ladder::testing::for_two_schedules;

namespace {

std::vector<uint16_t> bits_of(const __nv_bfloat16* values, size_t count) {
  std::vector<uint16_t> bits(count);
  std::transform(values, values + count, bits.begin(), ladder::bf16_bits);
  return bits;
}

/// The values that a setting has in the rows.
std::set<std::string> values_of(const Outcome& outcome, const std::string& setting) {
  std::set<std::string> values;
  for (const ladder::Run& run : outcome.runs)
    if (const auto found = run.settings.find(setting); found != run.settings.end())
      values.insert(found->second);
  return values;
}

/// What each experiment compares: a setting, and the values that its rows have.
using Compared = std::pair<std::string, std::set<std::string>>;
const std::map<std::string, std::vector<Compared>> kCompared = {
    {"streams",
     {{"measures", {"uploads", "downloads", "both ways", "kernels", "pipeline"}},
      {"streams", {"1", "2", "3", "4"}}}},
    {"pinned",
     {{"memory", {"pageable", "registered", "pinned"}},
      {"measures", {"upload", "download", "kernels", "pipeline"}}}},
    {"waits", {{"wait", {"cudaStreamWaitEvent", "cudaStreamSynchronize", "cudaDeviceSynchronize"}}}},
    {"default_stream",
     {{"streams", {"non-blocking", "blocking", "stream 0"}}, {"stray", {"no", "one a batch"}}}},
    {"events", {{"stream", {"A", "B", "C", "D"}}, {"streams", {"four, by events", "one"}}}},
    {"wake_up",
     {{"wait",
       {"a flag that the kernel writes", "cudaStreamQuery in a loop", "cudaStreamQuery and yield in a loop",
        "cudaStreamSynchronize", "cudaStreamSynchronize, ScheduleSpin",
        "cudaStreamSynchronize, ScheduleYield", "cudaStreamSynchronize, BlockingSync", "cudaEventSynchronize",
        "cudaEventSynchronize, BlockingSync", "host function, the host spins",
        "host function, the host sleeps"}}}},
    {"graph", {{"how", {"calls", "one graph"}}}},
    {"graph_update",
     {{"batch", {"plain", "kernels begin early", "memory from a pool"}},
      {"how",
       {"calls", "the same graph again", "a graph instantiated for each", "one graph, updated for each"}}}},
    {"alloc",
     {{"memory",
       {"all beforehand", "cudaMalloc, cudaFree", "cudaMalloc; cudaFree at the end",
        "cudaMallocAsync, threshold 0", "cudaMallocAsync, threshold max"}}}},
    {"stalls",
     {{"call",
       {"none", "cudaMalloc", "cudaFree", "cudaMallocAsync, pool is empty", "cudaMallocAsync, pool has it",
        "cudaFreeAsync"}}}},
    {"pinning",
     {{"call",
       {"none", "malloc, and every page written", "cudaMallocHost", "cudaFreeHost", "cudaHostRegister",
        "cudaHostUnregister", "a slot of the ring"}}}},
    {"scratch",
     {{"buffers", {"for the most rows", "from a pool"}}, {"host_waits", {"no", "after each step"}}}},
    {"recycle",
     {{"slots", {"3", "4", "6"}}, {"host_functions", {"in the batch's stream", "in a stream of their own"}}}},
    {"small_copies",
     {{"how",
       {
           "a call for each",
           "a graph",
           "the host packs, one copy",
           "a kernel reads pinned memory",
#if !defined(LADDER_CPU_DEVICE) && CUDART_VERSION >= 13000
           "cudaMemcpyBatchAsync",
#endif
       }}}},
    {"layers", {{"streams", {"1", "2"}}, {"priority", {"layer 2"}}}},
#ifdef LADDER_CPU_DEVICE  // which stops at the other
    {"arrival", {{"how", {"copy_to_device"}}}},
#else
    {"arrival", {{"how", {"cudaMemcpy", "copy_to_device"}}}},
#endif
    {"overhead", {{"how", {"one kernel that knows them all", "a launch for each", "one graph", "a queue"}}}},
    {"sharing", {{"shared_kib", {"32", "200"}}, {"streams", {"1", "2"}}, {"kernels", {"256"}}}},
    {"priority", {{"priority", {"same", "high"}}}},
    {"fragments",
     {{"requests", {"every second stays", "each is larger"}},
      {"allocator",
       {"a cache", "a cache that gives back", "pool, threshold max", "pool, threshold 0", "cudaMalloc"}}}},
    {"chunk", {{"measures", {"uploads", "downloads", "both ways", "kernels", "pipeline", "closed form"}}}}};

/// Four experiments multiply more than all others together. They have tests of their own, which ctest runs
/// side by side.
const std::set<std::string> kLong = {"chunk", "scratch", "events", "layers"};

std::vector<std::string> other_experiments() {
  std::vector<std::string> names;
  for (const Experiment* experiment : experiments())
    if (!kLong.count(experiment->name)) names.push_back(experiment->name);
  return names;
}

/// Fails the test unless the experiment runs and has a row for each way that it compares.
void check_rows(const std::string& name) {
  skip_unless_runnable();
  if (ladder::testing::breadth() == ladder::testing::Breadth::one)
    SKIP("the test of what experiments leave behind runs them, too");
  CAPTURE(name);
  for_two_schedules([&] {
    const Outcome outcome = run_small(name);
    CHECK(!outcome.text.empty());
    for (const std::string& line : ladder::split(outcome.text, '\n')) CHECK(line.size() <= 100);
    for (const auto& [setting, values] : kCompared.at(name)) {
      CAPTURE(setting);
      CHECK(values_of(outcome, setting) == values);
    }
    std::set<std::pair<std::string, ladder::Settings>> different;
    for (const ladder::Run& run : outcome.runs) {
      CHECK(run.lesson == "07_streams");
      CHECK(run.settings.at("experiment") == name);
#ifdef __SANITIZE_ADDRESS__  // Nobody counts accesses, and the kernels of these do nothing else.
      CHECK(run.time_us_median.value() >= (name == "overhead" || name == "wake_up" ? 0 : 1e-3));
#else
      CHECK(run.time_us_median.value() > 0);
#endif
      if (run.bound_us) CHECK(*run.bound_us > 0);
      different.emplace(run.shape.name(), run.settings);
    }
    CHECK(different.size() == outcome.runs.size());
  });
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

TEST_CASE("chunk and scratch run, and have rows for all that they compare") {
  check_rows(GENERATE(as<std::string>{}, "chunk", "scratch"));
}

TEST_CASE("events and layers run, and have rows for all that they compare") {
  check_rows(GENERATE(as<std::string>{}, "events", "layers"));
}

TEST_CASE("every other experiment runs, and has rows for all that it compares") {
  const std::string name = GENERATE(from_range(other_experiments()));
  if (name == "peers" || name == "allreduce" || name == "engines")
    return;  // have tests of their own: two GPUs
#ifndef LADDER_CPU_DEVICE
  if (name == "fragments") return;  // in test_without_tools.cu: it asks for more memory than there is
#endif
  check_rows(name);
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
    const StreamTimes &a = times[0], &b = times[1], &d = times[3];
    CHECK(a.end_us <= b.begin_us);
    CHECK(b.end_us <= d.begin_us);
    for (const StreamTimes& one : times) {
      CAPTURE(one.name);
      CHECK(one.begin_us >= 0);
      CHECK(one.begin_us < one.end_us);
    }
#ifdef LADDER_CPU_DEVICE  // A GPU may be done with so small a chain before the host has enqueued C.
    CHECK(times[2].begin_us < d.end_us);
#endif
  });
}

TEST_CASE("a request that grows keeps its old rows; if they are not moved, the check names one") {
  skip_unless_runnable();
  for_each_schedule(
      [&] {
        const RandomWeights weights(24, 40);
        const std::vector<ladder::Stream> streams = make_streams(2);
        const MemoryPool pool;
        Requests requests(weights, 40, streams, Requests::kSteps + 1);
        std::vector<BatchSlot> slots = make_slots(weights, 40, 2);
        requests.keep_samples();
        requests.run_in_largest(slots);
        CHECK_NOTHROW(requests.check_samples("for the most rows"));
        requests.keep_samples();
        requests.run_in_pool(pool);
        CHECK_NOTHROW(requests.check_samples("from a pool"));
        requests.keep_samples();
        requests.run_in_pool(pool, /*moves=*/false);
        CHECK_THROWS_WITH(requests.check_samples("not moved"),
                          ContainsSubstring("was there before, and had to be moved"));
      },
      1);
}

TEST_CASE("blocks of two kernels share a multiprocessor if they were there at one time") {
  const BlockRecord at_7{100, 200, 7}, at_7_later{200, 300, 7}, at_7_beside{150, 250, 7}, at_8{100, 300, 8};
  CHECK(shared_multiprocessors({at_7, at_7_later}).multiprocessors == 0);
  CHECK(shared_multiprocessors({at_7, at_8}).multiprocessors == 0);
  CHECK(!shared_multiprocessors({at_7, at_8}).longest);
  const Shared shared = shared_multiprocessors({at_7, at_8, at_7_beside, at_7_later});
  CHECK(shared.multiprocessors == 1);
  REQUIRE(shared.longest);
  CHECK(shared.longest->first.multiprocessor == 7);
  CHECK(shared.longest->second.begin_ns == 150);
  CHECK(most_at_once({at_7, at_7_later}) == 1);
  CHECK(most_at_once({at_7, at_7_later, at_7_beside, at_8}) == 3);
}

TEST_CASE("two layers in two streams make what the host makes") {
  skip_unless_runnable();
  for_each_schedule(
      [&] {
        const RandomWeights first(40, 72, 1), second(72, 40, 2);
        LayersOfOneGpu layers(first, second, 66);
        const std::vector<ladder::Stream> streams = make_streams(2);
        const ladder::Stream urgent = make_urgent_stream();
        const cudaStream_t one = streams[0].get();
        CHECK_NOTHROW(layers.check("one stream", one, one));
        CHECK_NOTHROW(layers.check("two streams", one, streams[1].get()));
        CHECK_NOTHROW(layers.check("layer 2 first", one, urgent.get()));
      },
      1);
}

TEST_CASE("a caching allocator joins neighbours, but no two segments") {
  skip_unless_runnable();
  constexpr size_t kSegment = 8 << 10;
  CachingAllocator cache(2 * kSegment, kSegment);
  std::vector<void*> pieces;
  for (int i = 0; i < 8; ++i) pieces.push_back(cache.allocate(kSegment / 4));
  CHECK(cache.reserved() == 2 * kSegment);
  CHECK(cache.used() == 2 * kSegment);
  CHECK(cache.allocate(512) == nullptr);
  for (int i = 0; i < 8; i += 2) cache.free(pieces[i]);
  CHECK(cache.used() == kSegment);
  CHECK(cache.largest_free() == kSegment / 4);
  CHECK(cache.allocate(kSegment / 2) == nullptr);  // beside twice as many free bytes
  cache.free(pieces[1]);
  CHECK(cache.largest_free() == 3 * kSegment / 4);
  CHECK(cache.allocate(kSegment / 2) == pieces[0]);
  for (const int i : {3, 5, 7}) cache.free(pieces[i]);
  CHECK(cache.largest_free() == kSegment);
  CHECK(cache.allocate(kSegment + 512) == nullptr);  // in a segment, not over its end
  cache.free(pieces[0]);
  CHECK(cache.used() == 0);
  CHECK(cache.largest_free() == kSegment);
}

TEST_CASE("a caching allocator gives back segments that are free as a whole, if it is told to") {
  skip_unless_runnable();
  constexpr size_t kSegment = 8 << 10;
  for (const bool gives_back : {false, true}) {
    CachingAllocator cache(2 * kSegment, kSegment, gives_back);
    void* const first = cache.allocate(kSegment);
    void* const second = cache.allocate(kSegment);
    cache.free(first);
    cache.free(second);
    CHECK((cache.allocate(2 * kSegment) != nullptr) == gives_back);
    CHECK(cache.reserved() == 2 * kSegment);
  }
}

TEST_CASE("each way to hand over batches does all their work once, and says what was predicted") {
  skip_unless_runnable();
  const Outcome outcome = run_small("overhead");
  const std::set<std::string> steps = values_of(outcome, "steps");
  CHECK(steps.count("0") == 1);
  CHECK(steps.size() >= 2);
  for (const char* how : {"one kernel that knows them all", "a launch for each", "one graph", "a queue"})
    for (const std::string& count : steps) {
      const ladder::Run run = row(outcome, {{"how", how}, {"steps", count}});
      CAPTURE(how, run.settings.at("steps"));
      CHECK(run.verified == true);  // else it would have thrown
      const bool predicted = run.settings.at("predicted_us") != "-";
      CHECK(predicted ==
            (run.settings.at("steps") != "0" && how != std::string("one kernel that knows them all")));
    }
}

TEST_CASE("no way to wait lets the host go on before the kernel is over") {
  skip_unless_runnable();
  const Outcome outcome = run_small("wake_up");  // throws where one does
  for (const ladder::Run& run : outcome.runs) CHECK(run.verified == true);
}

#ifndef LADDER_CPU_DEVICE
TEST_CASE("an urgent stream has the highest priority that there is, and others have not") {
  skip_unless_runnable();
  int least = 0, greatest = 0, urgent_has = 0, other_has = 0;
  CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  const ladder::Stream urgent = make_urgent_stream(), other = ladder::make_stream();
  CUDA_CHECK(cudaStreamGetPriority(urgent.get(), &urgent_has));
  CUDA_CHECK(cudaStreamGetPriority(other.get(), &other_has));
  CHECK(urgent_has == greatest);
  CHECK(urgent_has < other_has);  // lower numbers go first
}
#endif

#ifdef LADDER_CPU_DEVICE
#ifndef __SANITIZE_ADDRESS__  // which leaves nobody to see what kernels load
TEST_CASE("layers without one of their waits are reported, whatever the schedule") {
  const LeftOut left_out = GENERATE(LeftOut::until_made, LeftOut::until_used);
  for_each_schedule([&] {
    const RandomWeights first(64, 64, 1), second(64, 64, 2);
    LayersOfOneGpu layers(first, second, 40);
    const std::vector<ladder::Stream> streams = make_streams(2);
    CHECK_THROWS_WITH(layers.check("", streams[0].get(), streams[1].get(), left_out),
                      ContainsSubstring("cudaStreamWaitEvent"));
  });
}
#endif

TEST_CASE("layers without one of their waits have wrong results by some schedule") {
  const LeftOut left_out = GENERATE(LeftOut::until_made, LeftOut::until_used);
  int wrong = 0;
  for_each_schedule([&] {
    cpu_device::Options options = cpu_device::options();
    options.check_streams = false;
    options.check_races = false;
    cpu_device::set_options(options);
    const RandomWeights first(64, 64, 1), second(64, 64, 2);
    LayersOfOneGpu layers(first, second, 40);
    const std::vector<ladder::Stream> streams = make_streams(2);
    try {
      layers.check("", streams[0].get(), streams[1].get(), left_out);
    } catch (const WrongResult& result) {
      CHECK_THAT(result.what(), ContainsSubstring("must be"));
      ++wrong;
    }
  });
  CHECK(wrong > 0);
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

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("the chain without its events is reported, whatever the schedule") {
  for_each_schedule([&] {
    const RandomWeights weights(64, 64);
    Chain chain(weights, 40);
    CHECK_THROWS_WITH(chain.run(false), ContainsSubstring("cudaStreamWaitEvent"));
  });
}
#endif

TEST_CASE("on the virtual clock the experiments come out as the model says") {
  SECTION("kernels take turns, so four streams take as long as one, and the text claims no more") {
    const Outcome outcome = run_small("events");
    CHECK_THAT(us(outcome, {{"streams", "four, by events"}}),
               Catch::Matchers::WithinRel(us(outcome, {{"streams", "one"}}), 1e-6));
    CHECK_THAT(outcome.text, ContainsSubstring("kernels take turns") && !ContainsSubstring("ran beside"));
  }
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
    const Outcome outcome = run_small("chunk", 8);
    double best_us = 1e300, predicted_us = 1e300, of_predicted_us = 0;
    for (const ladder::Run& run : outcome.runs) {
      CHECK(run.shape.m == number(run, "rows"));
      if (run.settings.at("measures") != "closed form") continue;
      const double measured = us(outcome, {{"measures", "pipeline"}, {"rows", run.settings.at("rows")}});
      const double predicted = run.time_us_median.value();
      CAPTURE(run.settings.at("rows"));
      CHECK_THAT(predicted, Catch::Matchers::WithinRel(measured, 0.05));
      best_us = std::min(best_us, measured);
      if (predicted < predicted_us) {
        predicted_us = predicted;
        of_predicted_us = measured;
      }
    }
    CHECK(of_predicted_us == best_us);
  }
}

namespace {

/// Fails the test unless after the experiment there is as much of everything as before.
void check_leaves_nothing(const std::string& name) {
  CAPTURE(name);
  const cpu_device::LiveResources before = cpu_device::live_resources();
  run_small(name);
  const cpu_device::LiveResources after = cpu_device::live_resources();
  CHECK(after.device_bytes == before.device_bytes);
  CHECK(after.pinned_bytes == before.pinned_bytes);
  CHECK(after.streams == before.streams);
  CHECK(after.events == before.events);
  CHECK(after.graphs == before.graphs);
  CHECK(after.pools == before.pools);
}

}  // namespace

TEST_CASE("chunk and scratch leave no memory, streams or events behind") {
  check_leaves_nothing(GENERATE(as<std::string>{}, "chunk", "scratch"));
}

TEST_CASE("events and layers leave no memory, streams or events behind") {
  check_leaves_nothing(GENERATE(as<std::string>{}, "events", "layers"));
}

TEST_CASE("no other experiment leaves memory, streams or events behind") {
  check_leaves_nothing(GENERATE(from_range(other_experiments())));
}
#endif
