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

using namespace lesson07;
using Catch::Matchers::ContainsSubstring;
using ladder::testing::for_each_schedule;

namespace {

constexpr int kBatches = 5;

}  // namespace

TEST_CASE("a product that is split over GPUs has the same sum on each, with and without overlap") {
  const int devices = GENERATE(2, 4);
  skip_unless_devices(devices);
  constexpr ladder::Shape kShape{70, 136, 128};
  for_each_schedule(
      [&] {
        SplitProduct product(kShape, devices);
        const Communicators communicators(devices, 0);
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
          const Communicators communicators(2, 0);
          product.fill_exactly(kDataSeed);
          CHECK_THROWS_WITH(product.run(kBatches, mistake, communicators),
                            ContainsSubstring("cudaStreamWaitEvent"));
        }
      },
      2);
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
