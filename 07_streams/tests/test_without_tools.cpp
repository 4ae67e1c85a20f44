/// @file
/// Experiments whose outcome would be another under compute-sanitizer, which lets kernels run one at a time
/// and counts a refused allocation as an error: when kernels share a multiprocessor, when memory goes back,
/// and when an allocator is out of memory.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

#include "07_streams/experiments/sharing.hpp"
#include "07_streams/tests/experiment_outcome.hpp"
#include "common/host/device/device.hpp"

using namespace lesson07;

/// For the CPU device, before this program makes its first call, so that `fragments` can fill it; GPUs do not
/// care.
[[maybe_unused]] static const int kSmallDevice = setenv("LADDER_CPU_DEVICE_MIB", "64", 1);

TEST_CASE("a pool with threshold 0 gives its memory back when the host waits; one without a limit keeps it") {
  skip_unless_runnable();
  const Outcome outcome = run_small("alloc");
  const ladder::Run& releases = row(outcome, {{"memory", "cudaMallocAsync, threshold 0"}});
  const ladder::Run& keeps = row(outcome, {{"memory", "cudaMallocAsync, threshold max"}});
  for (const ladder::Run* run : {&releases, &keeps}) {
    const double taken = number(*run, "reserved_mb_taken");
    CHECK(taken > 0);
    CHECK(number(*run, "reserved_mb_freed") == taken);  // the host has not waited yet
    CHECK(number(*run, "reserved_mb_taken_again") == taken);
    CHECK(number(*run, "reserved_mb_trimmed") == 0);
    const double waited = run == &releases ? 0 : taken;
    CHECK(number(*run, "reserved_mb_predicted") == waited);
    CHECK(number(*run, "reserved_mb_waited") == waited);
    CHECK(number(*run, "reserved_mb_waited_again") == waited);
  }
}

TEST_CASE(
    "two kernels share every multiprocessor if both fit, and no more kernels run than the limit allows") {
  skip_unless_runnable();
  const Outcome outcome = run_small("sharing");
  for (const char* streams : {"1", "2"})
    for (const char* kib : {"32", "200"}) {
      CAPTURE(streams, kib);
      const ladder::Run& run = row(outcome, {{"shared_kib", kib}, {"streams", streams}});
      CHECK(run.settings.at("multiprocessors_shared") == run.settings.at("shared_predicted"));
    }
  const ladder::Run& beside = row(outcome, {{"shared_kib", "32"}, {"streams", "2"}});
  const ladder::Run& many = row(outcome, {{"kernels", "256"}});
  CHECK(many.settings.at("most_at_once") == many.settings.at("predicted_at_once"));
#ifdef LADDER_CPU_DEVICE  // which runs one kernel at a time
  CHECK(number(beside, "multiprocessors_shared") == 0);
  CHECK(number(many, "most_at_once") == 1);
#else
  CHECK(number(beside, "multiprocessors_shared") > 0);
  CHECK(beside.settings.contains("on_one_multiprocessor"));
  CHECK(number(many, "most_at_once") == 128);
#endif
}

#ifndef LADDER_CPU_DEVICE  // which has no priorities
TEST_CASE(
    "a kernel in an urgent stream overtakes blocks that have not begun; another waits for all of them") {
  skip_unless_runnable();
  const Outcome outcome = run_small("priority");
  const ladder::Run& same = row(outcome, {{"priority", "same"}});
  const ladder::Run& high = row(outcome, {{"priority", "high"}});
  CHECK(number(same, "ends_us") >= number(same, "long_one_ends_us"));
  CHECK(number(high, "ends_us") < 0.5 * number(high, "long_one_ends_us"));
}
#endif

TEST_CASE("a cache is out of memory beside free bytes, and keeps them from others; cudaMalloc is not") {
  skip_unless_runnable();
  const Outcome outcome = run_small("fragments");
  const auto fragments = [&](const char* requests, const char* allocator) {
    return row(outcome, {{"requests", requests}, {"allocator", allocator}});
  };
  for (const ladder::Run& run : outcome.runs) {
    CAPTURE(run.settings.at("requests"), run.settings.at("allocator"));
    // What the driver's pools do is the question on a GPU.
    if (ladder::on_cpu_device() || !run.settings.at("allocator").starts_with("pool"))
      CHECK(run.settings.at("gets_it") == run.settings.at("predicted"));
  }
  for (const char* requests : {"every second stays", "each is larger"}) {
    const ladder::Run& cache = fragments(requests, "a cache");
    CHECK(number(cache, "free_mb") >= number(cache, "asked_mb"));
    CHECK(number(cache, "largest_free_mb") < number(cache, "asked_mb"));
    CHECK(number(cache, "kept_from_others_mb") > 0.5 * number(cache, "budget_mb"));
    CHECK(number(fragments(requests, "pool, threshold 0"), "kept_from_others_mb") <
          0.01 * number(cache, "budget_mb"));
    CHECK(number(fragments(requests, "pool, threshold max"), "kept_from_others_mb") >
          0.3 * number(cache, "budget_mb"));
    CHECK(number(fragments(requests, "cudaMalloc"), "kept_from_others_mb") <
          0.01 * number(cache, "budget_mb"));
    // So the device has the budget alone, and refuses what is beyond it.
    CHECK(number(cache, "filled_mb") == 0);
    CHECK(number(fragments(requests, "cudaMalloc"), "filled_mb") > number(cache, "budget_mb"));
  }
}
