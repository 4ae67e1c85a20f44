/// @file
/// Tests of the part of timing that needs no device: statistics, and whose turn it is.
#include <atomic>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/host/base/progress.hpp"
#include "common/host/base/statistics.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/measure/run.hpp"
#include "common/host/measure/timing.hpp"

using Catch::Approx;

TEST_CASE("Quartiles are interpolated between neighbours, whatever the order of the samples") {
  const ladder::Quartiles four = ladder::quartiles({4, 1, 3, 2});
  CHECK(four.q1 == Approx(1.75));
  CHECK(four.median == Approx(2.5));
  CHECK(four.q3 == Approx(3.25));
  const ladder::Quartiles one = ladder::quartiles({7});
  CHECK(one.q1 == 7);
  CHECK(one.median == 7);
  CHECK(one.q3 == 7);
  CHECK_THROWS_AS(ladder::quartiles({}), std::invalid_argument);
}

TEST_CASE("Every contender has one turn in a round, and follows each of the others in some") {
  constexpr size_t kContenders = 3;
  constexpr int kRounds = 20;
  std::vector<size_t> turns;
  const auto samples = ladder::interleave(kContenders, kRounds, [&](size_t contender) {
    turns.push_back(contender);
    return static_cast<double>(contender);
  });
  REQUIRE(turns.size() == kContenders * kRounds);
  for (size_t round = 0; round < kRounds; ++round) {
    const auto begin = turns.begin() + static_cast<long>(round * kContenders);
    CHECK(std::set<size_t>(begin, begin + kContenders).size() == kContenders);
  }
  std::set<std::pair<size_t, size_t>> neighbours;
  for (size_t i = 1; i < turns.size(); ++i) neighbours.insert({turns[i - 1], turns[i]});
  for (size_t first = 0; first < kContenders; ++first)
    for (size_t second = 0; second < kContenders; ++second)
      if (first != second) CHECK(neighbours.count({first, second}) == 1);
  for (size_t contender = 0; contender < kContenders; ++contender)
    CHECK(samples[contender] == std::vector<double>(kRounds, static_cast<double>(contender)));
}

TEST_CASE("A GPU that slows down during a run slows all contenders alike") {
  // The clock drops from 2 to 1 over the run; contender 1 does twice the work of contender 0.
  double turn = 0;
  const auto samples = ladder::interleave(2, 10, [&](size_t contender) {
    const double clock = 2 - turn++ / 20;
    return static_cast<double>(contender + 1) / clock;
  });
  const double ratio = ladder::quartiles(samples[1]).median / ladder::quartiles(samples[0]).median;
  CHECK(ratio == Approx(2).epsilon(0.05));
}

TEST_CASE("A contender with candidates launches the one that is fastest in a run of its own") {
  int launched = -1;
  const auto launch = [&](int number) {
    return [&launched, number](const ladder::Gemm&, cudaStream_t) { launched = number; };
  };
  ladder::Contender plain, library;
  plain.launch = launch(9);
  library.candidates = {launch(0), launch(1), launch(2)};
  library.launch = library.candidates.front();
  int runs = 0;
  const auto chosen =
      ladder::with_fastest_candidates({plain, library}, [&](const std::vector<ladder::Contender>& each) {
        ++runs;
        std::vector<ladder::Timing> timings;
        for (const ladder::Contender& candidate : each) {
          candidate.launch({}, nullptr);
          timings.push_back({{0, launched == 1 ? 1.0 : 2.0, 3}, {}, {}});
        }
        REQUIRE(timings.size() == 3);
        return timings;
      });
  CHECK(runs == 1);  // all candidates take turns in it
  chosen[0].launch({}, nullptr);
  CHECK(launched == 9);
  chosen[1].launch({}, nullptr);
  CHECK(launched == 1);
}

TEST_CASE("A library without a candidate for a problem is left out, which one line says") {
  ladder::Contender able, unable;
  able.label = "able";
  int launched = -1;
  able.candidates = {[&](const ladder::Gemm&, cudaStream_t) { launched = 0; },
                     [&](const ladder::Gemm&, cudaStream_t) { launched = 1; }};
  unable.label = "cublasLt, B transposed";
  std::vector<ladder::Contender> contenders;
  std::ostringstream said;
  std::streambuf* const before = std::cerr.rdbuf(said.rdbuf());
  ladder::add_library(contenders, unable, {8, 16, 24});
  ladder::add_library(contenders, able, {8, 16, 24});
  std::cerr.rdbuf(before);
  CHECK(said.str() == "warning: cublasLt, B transposed: no algorithm for 8x16x24; left out\n");
  REQUIRE(contenders.size() == 1);
  CHECK(contenders[0].label == "able");
  contenders[0].launch({}, nullptr);
  CHECK(launched == 0);
}

TEST_CASE("The library to compare with is its fastest variant at that shape") {
  const auto run = [](const std::string& core, int size, std::optional<double> tflops) {
    ladder::Run result;
    result.core = core;
    result.shape = {size, size, size};
    result.tflops = tflops;
    return result;
  };
  const std::vector<ladder::Run> runs = {run("wgmma", 64, 9),   run("cublas", 64, 5),
                                         run("cublas", 64, 7),  run("cublas", 64, 6),
                                         run("cublas", 128, 8), run("cublas", 256, std::nullopt)};
  CHECK(ladder::fastest_library(runs, {64, 64, 64}) == &runs[2]);
  CHECK(ladder::fastest_library(runs, {256, 256, 256}) == nullptr);
}

TEST_CASE("Inputs rotate where a problem would stay in the L2 cache, and do not where it cannot") {
  constexpr size_t kL2 = 50 << 20;
  CHECK(ladder::input_sets({8192, 8192, 8192}, kL2) == 1);
  const int sets = ladder::input_sets({1024, 1024, 1024}, kL2);
  CHECK(sets * ladder::Shape{1024, 1024, 1024}.bytes() >= 2.0 * kL2);
  CHECK(ladder::input_sets({8, 8, 8}, kL2) == 256);
}

TEST_CASE("Where a device says how far its launch is, what takes long is said off a terminal, too") {
  std::ostringstream said;
  std::streambuf* const before = std::cerr.rdbuf(said.rdbuf());
  const auto of_launch = ladder::Progress::of_launch;
  static std::atomic<int> asked;
  asked = 0;
  ladder::Progress::of_launch = [] {
    ++asked;
    return std::string("1 of 2 blocks");
  };
  {
    constexpr std::chrono::milliseconds kPatience(100);
    ladder::Progress progress(kPatience);
    const auto begin = std::chrono::steady_clock::now();
    progress.show("quick");
    progress.clear();
    const bool was_quick = std::chrono::steady_clock::now() - begin < kPatience;  // not on a busy machine
    std::this_thread::sleep_for(2 * kPatience);
    CHECK((asked == 0 || !was_quick));
    asked = 0;
    progress.show("slow");
    while (!asked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ladder::Progress::of_launch = of_launch;
  std::cerr.rdbuf(before);
  CHECK_THAT(said.str(), Catch::Matchers::ContainsSubstring("slow, 0 s: 1 of 2 blocks"));
}
