/// @file
/// Lesson 07's pipeline: every number of batches at which a ring goes wrong, every number of streams, every
/// level; and that a wrong value does not pass.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <sstream>

#include "07_streams/best_kernel.hpp"
#include "07_streams/measure/bound.hpp"
#include "07_streams/tests/test_support.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/testing/gemm_checks.hpp"

using namespace lesson07;
using Catch::Matchers::ContainsSubstring;
using ladder::testing::for_each_schedule;
using ladder::testing::for_three_schedules;
using ladder::testing::trip_counts;

namespace {

/// Integers, but one element of A is another once the host has written it.
class OneWrongElement : public IntegerData {
 public:
  OneWrongElement(const TestRun& run, int batch, size_t element)
      : IntegerData(run.batches, run.host_weights.data(), kTestSeed), batch_(batch), element_(element) {}
  void fill(int batch, bf16* a) const override {
    IntegerData::fill(batch, a);
    if (batch == batch_) a[element_] = ladder::to_bf16(ladder::to_float(a[element_]) + 1);
  }

 private:
  int batch_;
  size_t element_;
};

}  // namespace

TEST_CASE("the pipeline multiplies as many batches as slots, and fewer and more") {
  skip_without_device();
  constexpr int kSlots = 3;
  for (const int count : trip_counts(kSlots)) {
    CAPTURE(count);
    for_three_schedules([&] { CHECK_NOTHROW(TestRun(ragged_rows(count), 72, 136, 2, kSlots).run()); });
  }
}

TEST_CASE("the pipeline multiplies in one to four streams, with fewer slots than streams and with more") {
  skip_without_device();
  const int streams = GENERATE(1, 2, 3, 4), slots = GENERATE(1, 2, 5);
  CAPTURE(streams, slots);
  for_three_schedules([&] { CHECK_NOTHROW(TestRun(ragged_rows(7), 72, 72, streams, slots).run()); }, 1);
}

TEST_CASE("a batch may have one row") {
  skip_without_device();
  for_each_schedule([&] { CHECK_NOTHROW(TestRun({1, 1, 1}, 8, 8, 3, 2).run()); });
}

TEST_CASE("a pipeline can be used again, with other weights and in fewer streams") {
  skip_without_device();
  for_each_schedule([&] {
    TestRun run(ragged_rows(5), 72, 72, 3, 2);
    CHECK_NOTHROW(run.run());
    fill_integers(run.host_weights.data(), run.host_weights.size(), 99);
    run.schedule.streams = 2;
    CHECK_NOTHROW(run.run());
  });
}

TEST_CASE("every level gives the right results") {
  skip_without_device();
  const int number = GENERATE(0, 1, 2, 3, 4);
  CAPTURE(number);
  const std::vector<Level> all = levels();
  if (static_cast<size_t>(number) >= all.size()) SKIP("fewer levels run here");
  const Level level = all.at(number);
  for_three_schedules(
      [&] {
        TestRun run(ragged_rows(5), 136, 72, 2, 3);
        run.kernel = level.kernel;
        run.schedule = {level.overlaps_batches ? 2 : 1, !level.overlaps_batches};
        CHECK_NOTHROW(run.run());
      },
      1);
}

TEST_CASE(
    "only levels above 0 let batches overlap; others have kernels of their own, and the last the best") {
  skip_without_device();
  const std::vector<Level> all = levels();
  REQUIRE(all.size() >= 3);
  CHECK((!ladder::on_cpu_device() || all.size() == 5));
  if (ladder::on_cpu_device()) CHECK(all.back().kernel.lesson->name == "06_clusters_dsmem");
  CHECK_FALSE(all[0].overlaps_batches);
  CHECK(all[0].kernel.lesson == all[1].kernel.lesson);
  for (size_t i = 1; i < all.size(); ++i) CHECK(all[i].overlaps_batches);
  for (size_t i = 2; i < all.size(); ++i) CHECK(all[i].kernel.lesson != all[i - 1].kernel.lesson);
}

TEST_CASE("one wrong element of one batch is found and named") {
  skip_without_device();
  TestRun run(ragged_rows(6), 72, 72, 2, 3);
  const size_t row = 100;  // of batch 3, which has 130
  CHECK_THROWS_WITH(run.run(OneWrongElement(run, 3, row * 72 + 5)),
                    ContainsSubstring("batch 3 (130 rows): C[100, "));
}

TEST_CASE("a stamp of another batch is found and named") {
  skip_without_device();
  /// Batch 4 is sent with the stamp of batch 2, as if its upload had read the slot too early.
  class Stale : public StampedData {
   public:
    using StampedData::StampedData;
    void fill(int batch, bf16* a) const override { StampedData::fill(batch == 4 ? 2 : batch, a); }
  };
  TestRun run({64, 64, 64, 64, 64, 64}, 72, 72, 2, 3);
  // Finite data in all slots, as in a timed run.
  CHECK_NOTHROW(run.run());
  CHECK_NOTHROW(run.run(StampedData(run.batches, run.host_weights.data())));
  CHECK_THROWS_WITH(run.run(Stale(run.batches, run.host_weights.data())),
                    ContainsSubstring("batch 4 (64 rows): C[63, "));
}

TEST_CASE("NaN does not pass for a result") {
  const Batches batches{8, 8, {2}};
  std::vector<bf16> weights(64, ladder::to_bf16(1)), c(16, ladder::to_bf16(NAN));
  CHECK_FALSE(IntegerData(batches, weights.data(), 1).complaint(0, c.data()).empty());
  CHECK_FALSE(StampedData(batches, weights.data()).complaint(0, c.data()).empty());
}

TEST_CASE("large batches are compared at their edges, and stamps differ from batch to batch") {
  const Batches batches{1024, 256, {300, 300}};
  std::vector<bf16> weights(size_t(256) * 1024);
  fill_integers(weights.data(), weights.size(), 1);
  const IntegerData data(batches, weights.data(), 1);
  std::vector<bf16> a(batches.a_elements(0)), c(batches.c_elements(0));
  data.fill(0, a.data());
  for (int i = 0; i < 300; ++i)
    for (int j = 0; j < 1024; ++j) {
      float sum = 0;
      for (int p = 0; p < 256; ++p)
        sum += ladder::to_float(a[size_t(i) * 256 + p]) * ladder::to_float(weights[size_t(p) * 1024 + j]);
      c[size_t(i) * 1024 + j] = ladder::to_bf16(sum);
    }
  CHECK(data.complaint(0, c.data()).empty());
  CHECK_FALSE(data.complaint(1, c.data()).empty());
  for (const int column : {0, 255, 768, 1023}) {
    std::vector<bf16> wrong = c;
    wrong[size_t(299) * 1024 + column] = ladder::to_bf16(12345);
    CHECK_THAT(data.complaint(0, wrong.data()), ContainsSubstring("C[299, " + std::to_string(column) + "]"));
  }
}

TEST_CASE("sizes of batches follow the seed and stay within a quarter of the average") {
  const Batches batches = make_batches({100, 8, 8}, 200, 3);
  CHECK(batches.count() == 200);
  CHECK(batches.rows == make_batches({100, 8, 8}, 200, 3).rows);
  CHECK(batches.rows != make_batches({100, 8, 8}, 200, 4).rows);
  for (const int rows : batches.rows) CHECK((75 <= rows && rows <= 125));
  CHECK(batches.most_rows() > 120);
  CHECK(make_batches({1, 8, 8}, 3, 1).rows == std::vector<int>{1, 1, 1});
}

TEST_CASE("the bound is that of the slowest engine") {
  CHECK(Bound{3, 2, 1}.us() == 3);
  CHECK(Bound{3, 2, 1}.engine() == "upload");
  CHECK(Bound{1, 2, 1}.engine() == "compute");
  CHECK(Bound{1, 2, 3}.engine() == "download");
}

TEST_CASE("the table of levels has a row for each level, verified, with its bound") {
  skip_without_device();
  std::ostringstream out;
  ladder::ResultFile results;
  const int last = levels().back().number;
  run_levels({out, results, {80, 72, 72}, 5, 2, 2, 3}, {0, 1, last}, 1);
  REQUIRE(results.runs.size() == 3);
  for (const ladder::Run& run : results.runs) {
    CHECK(run.lesson == "07_streams");
    CHECK(run.settings.at("experiment") == "levels");
    CHECK(run.verified == true);
    CHECK(run.time_us_median.value() > 0);
    CHECK(run.bound_us.value() > 0);
  }
  CHECK(results.runs[0].settings.at("level") == "0");
  CHECK(results.runs[0].settings.at("streams") == "1");
  CHECK(results.runs[2].settings.at("kernel") == levels().back().kernel.lesson->name);
  CHECK_THAT(out.str(), ContainsSubstring("x bound") && ContainsSubstring(levels().back().added));
}
