/// @file
/// Two layers on two GPUs, and what the experiments with several GPUs stand on. A machine with fewer GPUs
/// skips what it cannot run.
#include <fmt/core.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "07_streams/experiments/gpus/peers.hpp"
#include "07_streams/tests/several_gpus_test.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/bf16.hpp"

using namespace lesson07;
using Catch::Matchers::ContainsSubstring;
using ladder::testing::for_each_schedule;

namespace {

constexpr int kBatches = 5;

}  // namespace

TEST_CASE("an experiment that needs more GPUs than there are says so in one line") {
  skip_unless_devices(1);
  Output output;
  const int found = count_devices();
  CHECK(has_devices(output.context({}), "peers", found));
  CHECK(output.text.str().empty());
  CHECK_FALSE(has_devices(output.context({}), "peers", found + 1));
  const std::string remedy =
      ladder::on_cpu_device() ? fmt::format("; LADDER_CPU_DEVICES={} makes as many", found + 1) : "";
  CHECK(output.text.str() == fmt::format("peers: needs {} GPUs, found {}{}\n", found + 1, found, remedy));
}

TEST_CASE("a device is current for the lifetime of OnDevice") {
  skip_unless_devices(2);
  int current = -1;
  {
    const OnDevice second(1);
    CUDA_CHECK(cudaGetDevice(&current));
    CHECK(current == 1);
  }
  CUDA_CHECK(cudaGetDevice(&current));
  CHECK(current == 0);
}

TEST_CASE("peer access is on, both ways, where CUDA says that it is possible, and may be enabled twice",
          "[provokes_errors]") {
  skip_unless_devices(2);
  int there = 0, back = 0;
  CUDA_CHECK(cudaDeviceCanAccessPeer(&there, 0, 1));
  CUDA_CHECK(cudaDeviceCanAccessPeer(&back, 1, 0));
  const bool possible = there && back;
  CHECK(enable_peer_access(0, 1) == possible);
  CHECK(enable_peer_access(0, 1) == possible);
  for (const int device : {0, 1}) {
    const OnDevice current(device);
    // CUDA itself says whether it was on before this call.
    CHECK((cudaDeviceEnablePeerAccess(1 - device, 0) == cudaErrorPeerAccessAlreadyEnabled) == possible);
    (void)cudaGetLastError();
  }
}

TEST_CASE("exact products are those of the definition") {
  const ladder::IntegerValues b = exact_weights(kDataSeed);
  const std::vector<float> product = multiply_exactly({1, 0, -1, 2, 0, 0}, b, 3, 5);
  REQUIRE(product.size() == 2 * 5);
  for (int column = 0; column < 5; ++column) {
    CHECK(product[column] == ladder::to_float(b(column)) - ladder::to_float(b(10 + column)));
    CHECK(product[5 + column] == 2 * ladder::to_float(b(column)));
  }
}

TEST_CASE("a sampled row with a wrong value is named") {
  skip_unless_devices(1);
  constexpr int kRows = 20, kColumns = 8;
  std::vector<bf16> values(kRows * kColumns, ladder::to_bf16(3));
  values[19 * kColumns + 2] = ladder::to_bf16(4);
  const ladder::DeviceBuffer<bf16> result(values);
  const ladder::Stream stream = ladder::make_stream();
  SampledRows sampled(kRows, kColumns, 2);
  REQUIRE(sampled.rows().front() == 0);
  REQUIRE(sampled.rows().back() == 19);
  sampled.take(1, result.data(), stream.get());
  CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  std::vector<float> expected(sampled.rows().size() * kColumns, 3);
  CHECK_THROWS_WITH(sampled.check("someone", 1, expected),
                    ContainsSubstring("someone: batch 1, row 19, column 2: is 4"));
  expected[(sampled.rows().size() - 1) * kColumns + 2] = 4;
  CHECK_NOTHROW(sampled.check("someone", 1, expected));
}

TEST_CASE("two layers give the same on one GPU and on two, whoever orders them") {
  skip_unless_devices(2);
  enable_peer_access(0, 1);
  constexpr ladder::Shape kShape{70, 136, 72};
  for_each_schedule([&] {
    TwoLayers layers(kShape);
    layers.fill_exactly(kDataSeed);
    const auto check = [&](const auto& run) {
      SampledRows sampled(kShape.m, kShape.k, kBatches);
      run(&sampled);
      for (int b = 0; b < kBatches; ++b)
        CHECK_NOTHROW(sampled.check("", b, layers.expected_rows(kDataSeed, b, sampled.rows())));
    };
    check([&](SampledRows* sampled) { layers.run_on_one(kBatches, sampled); });
    check([&](SampledRows* sampled) { layers.run_on_two(kBatches, HandOff::events, sampled); });
    check([&](SampledRows* sampled) { layers.run_on_two(kBatches, HandOff::host, sampled); });
  });
}

#ifdef LADDER_CPU_DEVICE
TEST_CASE("a hand-over between GPUs that nobody waits for is reported, whatever the schedule") {
  enable_peer_access(0, 1);
  for_each_schedule([&] {
    for (const HandOff missing : {HandOff::nobody_until_copied, HandOff::nobody_until_consumed}) {
      TwoLayers layers({70, 136, 72});
      layers.fill_exactly(kDataSeed);
      CHECK_THROWS_WITH(layers.run_on_two(kBatches, missing), ContainsSubstring("cudaStreamWaitEvent"));
    }
  });
}
#endif

TEST_CASE("peers has a row for each schedule") {
  skip_unless_devices(2);
  Output output;
  peers_experiment().run(output.context({64, 128, 64}));
  std::vector<std::string> schedules;
  for (const ladder::Run& run : output.results.runs) {
    CHECK(run.settings.at("experiment") == "peers");
    CHECK(run.time_us_median.value() > 0);
    schedules.push_back(run.settings.at("schedule"));
  }
  std::sort(schedules.begin(), schedules.end());
  CHECK(schedules == std::vector<std::string>{"layer 1 alone", "layer 2 alone", "one GPU, both layers",
                                              "peer copy alone", "two GPUs, events",
                                              "two GPUs, the host waits"});
  CHECK_THAT(output.text.str(), ContainsSubstring("two GPUs, events"));
}

TEST_CASE("an upload, a download, a peer copy and kernels take as long as the longest of them") {
  skip_unless_devices(2);
  Output output;
  engines_experiment().run(output.context({128, 128, 128}));
  REQUIRE(output.results.runs.size() == 6);
  for (const ladder::Run& run : output.results.runs) {
    CHECK(run.settings.at("experiment") == "engines");
    CHECK(run.verified == true);
  }
  CHECK(output.results.runs.back().settings.at("work") == "all four");
  CHECK_THAT(output.text.str(), ContainsSubstring("all four are at work"));
#ifdef LADDER_CPU_DEVICE  // by whose model of an H200 they are engines of their own
  double longest_us = 0;
  for (size_t engine = 0; engine < 4; ++engine)
    longest_us = std::max(longest_us, output.results.runs[engine].time_us_median.value());
  CHECK(output.results.runs.back().time_us_median.value() <= 1.01 * longest_us);
#endif
}
