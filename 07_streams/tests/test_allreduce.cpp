/// @file
/// A product that is split over GPUs: the same sum on each, on two and on four devices.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "07_streams/experiments/gpus/split_product.hpp"
#include "07_streams/tests/several_gpus_test.hpp"
#ifdef LADDER_CPU_DEVICE
#include "common/cpu_device/cpu_device.hpp"
#endif

using namespace lesson07;
using Catch::Matchers::ContainsSubstring;
using ladder::testing::for_each_schedule;
using ladder::testing::for_three_schedules;

namespace {

constexpr int kBatches = 5;

}  // namespace

TEST_CASE("a product that is split over GPUs has the same sum on each, with and without overlap") {
  const int devices = GENERATE(2, 4);
  skip_unless_devices(devices);
  constexpr ladder::Shape kShape{70, 136, 128};
  for_three_schedules(
      [&] {
        SplitProduct product(kShape, devices);
        Communicators communicators(devices, 0);
        product.fill_exactly(kDataSeed);
        for (const bool overlaps : {false, true}) {
          CAPTURE(overlaps);
          std::deque<SampledRows> sampled;  // one for each device
          std::vector<SampledRows*> pointers;
          for (int device = 0; device < devices; ++device)
            pointers.push_back(&sampled.emplace_back(kShape.m, kShape.n, kBatches));
          product.run(kBatches, {.overlaps = overlaps}, communicators, pointers);
          for (int b = 0; b < kBatches; ++b) {
            const std::vector<float> expected = product.expected_rows(kDataSeed, b, sampled[0].rows());
            for (const SampledRows& of_device : sampled) CHECK_NOTHROW(of_device.check("", b, expected));
          }
        }
      },
      2);
}

#ifdef LADDER_CPU_DEVICE
TEST_CASE("an all-reduce in another stream that does not wait, or is not waited for, is reported") {
  for_each_schedule(
      [&] {
        for (const SplitSchedule& mistake :
             {SplitSchedule{.waits_until_multiplied = false}, SplitSchedule{.waits_until_reduced = false}}) {
          SplitProduct product({70, 136, 128}, 2);
          Communicators communicators(2, 0);
          product.fill_exactly(kDataSeed);
          CHECK_THROWS_WITH(product.run(kBatches, mistake, communicators),
                            ContainsSubstring("cudaStreamWaitEvent"));
        }
      },
      2);
}
#endif

TEST_CASE("after an all-reduce that is refused no group is open, and the next one brings the sum") {
  skip_unless_devices(2);
  constexpr ladder::Shape kShape{70, 136, 128};
  SplitProduct product(kShape, 2);
  Communicators communicators(2, 0);
  product.fill_exactly(kDataSeed);
  const ladder::Stream stream = ladder::make_stream();
  CHECK_THROWS_AS(communicators.all_reduce({nullptr, nullptr}, 8, {stream.get(), stream.get()}), NcclError);
  std::deque<SampledRows> sampled;
  for (int device = 0; device < 2; ++device) sampled.emplace_back(kShape.m, kShape.n, 1);
  product.run(1, {}, communicators, {&sampled[0], &sampled[1]});
  const std::vector<float> expected = product.expected_rows(kDataSeed, 0, sampled[0].rows());
  for (const SampledRows& of_device : sampled) CHECK_NOTHROW(of_device.check("", 0, expected));
}

#ifdef LADDER_CPU_DEVICE
TEST_CASE("a wait for all-reduces has a limit, after which their streams end") {
  cpu_device::Options options;
  options.schedule = cpu_device::Schedule::parse("round-robin/late");
  cpu_device::set_options(options);
  ladder::DeviceBuffer<__nv_bfloat16> first(8), second;
  const ladder::Stream stream = ladder::make_stream();
  ladder::Stream other;
  {
    const OnDevice current(1);
    second = ladder::DeviceBuffer<__nv_bfloat16>(8);
    other = ladder::make_stream();
  }
  Communicators communicators(2, 0);
  for (int i = 0; i < 3; ++i)
    communicators.all_reduce({first.data(), second.data()}, 8, {stream.get(), other.get()});
  CHECK_THROWS_WITH(communicators.wait({stream.get(), other.get()}, std::chrono::milliseconds(-1)),
                    ContainsSubstring("has waited"));
  CHECK_NOTHROW(CUDA_CHECK(cudaStreamSynchronize(stream.get())));
  CHECK_NOTHROW(CUDA_CHECK(cudaStreamSynchronize(other.get())));
}
#endif

TEST_CASE("a K that GPUs cannot share in multiples of 8 is refused") {
  skip_unless_devices(2);
  CHECK_THROWS_WITH(SplitProduct({64, 64, 72}, 2), ContainsSubstring("k = 72 must be a multiple of 8"));
}

TEST_CASE("allreduce has a row for each schedule and each number of spare SMs") {
  skip_unless_devices(2);
  Output output;
  allreduce_experiment().run(output.context({64, 128, 256}));
  std::map<std::string, std::set<std::string>> schedules;  // by the number of spare SMs
  for (const ladder::Run& run : output.results.runs) {
    CHECK(run.settings.at("experiment") == "allreduce");
    CHECK(run.time_us_median.value() > 0);
    CHECK(schedules[run.settings.at("spare_sms")].insert(run.settings.at("schedule")).second);
  }
  CHECK(schedules.size() >= 2);
  CHECK(schedules.count("0") == 1);
  for (const auto& [spare_sms, all] : schedules) {
    CAPTURE(spare_sms);
    CHECK(all == std::set<std::string>{"product alone", "all-reduce alone", "sequential", "overlapped"});
  }
  CHECK_THAT(output.text.str(), ContainsSubstring("hidden %"));
}
