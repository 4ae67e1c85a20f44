/// @file
/// What a learner is told: of the schedule in which a check failed, of wrong values, and of a number that is
/// not right.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/error.hpp"
#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"
#include "common/host/device/device.hpp"
#include "common/host/device/execution.hpp"
#include "common/testing/captured_program.hpp"

using Catch::Matchers::ContainsSubstring, Catch::Matchers::EndsWith;
using Catch::Matchers::Message, Catch::Matchers::MessageMatches, Catch::Matchers::StartsWith;
using ladder::exercise::all_predicted;
using ladder::exercise::Comparison, ladder::exercise::describe_unwritten;
using ladder::exercise::describe_wrong_values;
using ladder::exercise::expect, ladder::exercise::NotYet, ladder::exercise::on_every_schedule;
using ladder::exercise::expect_predicted, ladder::exercise::expect_predicted_parity;
using ladder::exercise::expect_returned;

TEST_CASE("What fails in every schedule is no matter of the schedule") {
  CHECK_THROWS_MATCHES(on_every_schedule([] { expect(false, "wrong"); }), NotYet, Message("wrong"));
}

TEST_CASE("A schedule is named if it fails where another was right") {
  if (!ladder::on_cpu_device()) SKIP("a GPU has one schedule");
  int calls = 0;
  CHECK_THROWS_MATCHES(on_every_schedule([&] { expect(++calls < 2, "wrong"); }), NotYet,
                       MessageMatches(StartsWith("wrong (schedule ")));
}

namespace {

/// What `body` prints on stderr.
std::string printed_by(const std::function<void()>& body) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file);
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

void wait_for_what_was_never_recorded() {
  const ladder::Stream stream = ladder::make_stream();
  const ladder::Event event = ladder::make_order_event();
  CUDA_CHECK(cudaStreamWaitEvent(stream.get(), event.get(), 0));
  CUDA_CHECK(cudaEventSynchronize(event.get()));
}

}  // namespace

TEST_CASE("A wait that orders nothing may be right: a check does not warn of it") {
  if (!ladder::on_cpu_device()) SKIP("a GPU never warns");
  CHECK(printed_by([] { on_every_schedule(wait_for_what_was_never_recorded); }) == "");
  ladder::use_schedule({}, "");
  CHECK_THAT(printed_by(wait_for_what_was_never_recorded),
             Catch::Matchers::ContainsSubstring("not recorded before"));
}

namespace {

/// A matrix with `columns` columns, or a vector, of values that differ; all right so far.
Comparison right_result(size_t size, size_t columns) {
  Comparison result{columns ? "C" : "y", columns, 0, std::vector<float>(size), {}};
  std::iota(result.got.begin(), result.got.end(), 1.0f);
  result.expected = result.got;
  return result;
}

}  // namespace

TEST_CASE("Of a right result nothing is said, and of one wrong element that it is the only one") {
  Comparison c = right_result(32 * 64, 64);
  CHECK(describe_wrong_values(c) == "");
  c.got[64 + 2] = 7;
  CHECK(describe_wrong_values(c) == "row 1, column 2 of C is 7, must be 67; the other 2047 are right");
  c.tolerance = 60;
  CHECK(describe_wrong_values(c) == "");
}

TEST_CASE("Wrong elements are named by what they have in common: their rows, columns or tile") {
  const auto with = [](auto is_wrong) {
    Comparison c = right_result(64 * 64, 64);
    for (size_t i = 0; i < c.got.size(); ++i)
      if (is_wrong(i / 64, i % 64)) c.got[i] = -1.5f;
    const std::string text = describe_wrong_values(c);
    return text.substr(text.find("; ") + 2);
  };
  CHECK(with([](size_t, size_t) { return true; }) == "all 4096 elements are wrong");
  CHECK(with([](size_t r, size_t) { return r == 5; }) == "64 of 4096 elements are wrong, all in row 5");
  CHECK(with([](size_t, size_t c) { return c == 5; }) == "64 of 4096 elements are wrong, all in column 5");
  CHECK(with([](size_t r, size_t c) { return r >= 16 && r < 32 && c >= 48; }) ==
        "256 of 4096 elements are wrong, all in rows 16 to 31, columns 48 to 63");
  CHECK(with([](size_t r, size_t) { return r % 16 >= 8; }) ==
        "2048 of 4096 elements are wrong, all in rows 8 to 15 of every 16");
  CHECK(with([](size_t, size_t c) { return c % 2 == 1; }) ==
        "2048 of 4096 elements are wrong, all in column 1 of every 2");
  CHECK(with([](size_t r, size_t c) { return (r * 7 + c * 3) % 11 == 0; }) ==
        "372 of 4096 elements are wrong");
}

TEST_CASE("Elements that were never written are placed like wrong ones") {
  const auto with = [](auto is_written) {
    std::vector<bool> written;
    for (size_t i = 0; i < size_t{64 * 64}; ++i) written.push_back(is_written(i / 64, i % 64));
    return describe_unwritten(right_result(64 * 64, 64), written);
  };
  CHECK(with([](size_t r, size_t c) { return r != 3 || c != 5; }) ==
        "row 3, column 5 of C was never written");
  CHECK(with([](size_t r, size_t) { return r < 32; }) ==
        "row 32, column 0 of C was never written; 2048 of 4096 elements were not, all in rows 32 to 63");
  CHECK(with([](size_t, size_t c) { return c % 16 < 8; }) ==
        "row 0, column 8 of C was never written; 2048 of 4096 elements were not, all in columns 8 to 15 of "
        "every "
        "16");
}

TEST_CASE("Memory that was never written is called so, and counted") {
  Comparison c = right_result(128, 0);
  for (size_t i = 64; i < 128; ++i) c.got[i] = NAN;
  CHECK(describe_wrong_values(c) ==
        "element 64 of y is NaN, which marks memory that was never written, must be 65; "
        "64 of 128 elements are wrong, all in elements 64 to 127");
}

TEST_CASE("Values of another row, column or part are named by that") {
  Comparison rows = right_result(32 * 64, 64);
  for (size_t c = 8; c < 16; ++c) rows.got[3 * 64 + c] = rows.expected[17 * 64 + c];
  CHECK_THAT(describe_wrong_values(rows),
             EndsWith("all in row 3, columns 8 to 15; row 3 holds what row 17 must hold"));
  Comparison columns = right_result(32 * 64, 64);
  for (size_t r = 0; r < 32; ++r) columns.got[r * 64 + 5] = columns.expected[r * 64 + 4];
  CHECK_THAT(describe_wrong_values(columns),
             EndsWith("all in column 5; column 5 holds what column 4 must hold"));
  Comparison square = right_result(16 * 16, 16);
  for (size_t i = 0; i < 256; ++i) square.got[i] = square.expected[i % 16 * 16 + i / 16];
  CHECK_THAT(describe_wrong_values(square), EndsWith("240 of 256 elements are wrong; C is transposed"));
  Comparison part = right_result(256, 0);
  std::copy_n(part.expected.begin(), 64, part.got.begin() + 128);
  CHECK_THAT(describe_wrong_values(part),
             EndsWith("elements 128 to 191 hold what elements 0 to 63 must hold"));
}

TEST_CASE("What a known mistake makes is named only where it makes all wrong elements") {
  Comparison c = right_result(8 * 8, 8);
  c.alternatives = {{"each of them is squared", [&](size_t i) { return c.expected[i] * c.expected[i]; }},
                    {"each of them is its number", [](size_t i) { return static_cast<float>(i); }}};
  for (size_t i = 16; i < 32; ++i) c.got[i] = c.expected[i] * c.expected[i];
  CHECK_THAT(describe_wrong_values(c), EndsWith("all in rows 2 to 3; each of them is squared"));
  c.got[40] = -1.5f;  // which it does not make
  CHECK_THAT(describe_wrong_values(c), !ContainsSubstring("squared"));
  c.got = c.expected;
  c.got[16] = c.expected[16] * c.expected[16];  // one may be so by chance
  CHECK_THAT(describe_wrong_values(c), !ContainsSubstring("squared"));
  CHECK(describe_wrong_values({c.name, c.columns, 0, c.expected, c.expected, c.alternatives}).empty());
}

TEST_CASE("Values that differ by one or two steps of bf16 are called rounded") {
  const auto with = [](size_t count, float steps) {
    Comparison c = right_result(64, 8);
    for (size_t i = 0; i < 64; ++i) {
      c.expected[i] = c.got[i] = 1024 + 32 * static_cast<float>(i % 8);  // a step is 8
      if (i < count) c.got[i] += (i % 2 ? -8 : 8) * steps;
    }
    return describe_wrong_values(c);
  };
  const char* const rounded = "; each is off by its last bits: is something rounded twice?";
  CHECK_THAT(with(20, 1), EndsWith(rounded));
  CHECK_THAT(with(20, 2), EndsWith(rounded));
  CHECK_THAT(with(20, 3), !EndsWith(rounded));
  CHECK_THAT(with(7, 1), !EndsWith(rounded));  // too few to tell
}

TEST_CASE("A multiple of the right values, and a constant too much, are named") {
  const auto with = [](auto change) {
    Comparison c = right_result(64, 8);
    for (float& value : c.got) value = change(value);
    const std::string text = describe_wrong_values(c);
    return text.substr(text.rfind("; ") + 2);
  };
  CHECK(with([](float v) { return 2 * v; }) == "each of them is twice what it must be");
  CHECK(with([](float v) { return v / 2; }) == "each of them is half what it must be");
  CHECK(with([](float v) { return 3 * v; }) == "each of them is 3 times what it must be");
  CHECK(with([](float v) { return -v; }) == "each of them has the wrong sign");
  CHECK(with([](float) { return 0.0f; }) == "each of them is 0");
  CHECK(with([](float v) { return v + 1.5f; }) == "each of them is 1.5 too large");
  CHECK(with([](float v) { return v * v + 0.5f; }) == "all 64 elements are wrong");
}

TEST_CASE("A wrong answer must be refused with its own words, and without those of another") {
  const auto checked = [](const std::vector<std::string>& arguments, const std::function<void()>& check) {
    std::vector<std::string> words = {"check"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return ladder::testing::run_captured(
        [&](int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }, words);
  };
  const auto late = [] { throw ladder::exercise::NotYet("it is late, as B is missing"); };
  const auto hangs = [] { throw std::runtime_error("deadlock\nof all"); };
  if (const auto result = checked({}, late); result.exit_code == 4) SKIP(result.out);
  CHECK(checked({}, late).out == "not yet: it is late, as B is missing\n");
  CHECK(checked({"--wrong", "late"}, late).exit_code == 0);
  CHECK(checked({"--wrong", "late", "missing", "--not", "early"}, late).exit_code == 0);
  CHECK(checked({"--wrong", "late", "lost"}, late).err == "error: the check does not say 'lost'\n");
  CHECK(checked({"--wrong", "late", "--not", "early", "B is"}, late).err ==
        "error: the check says 'B is', which is what it must say of another wrong answer\n");
  CHECK(checked({"--wrong", "late"}, [] {}).err == "error: the check accepts it\n");
  CHECK(checked({"--wrong", "deadlock", "--not", "of all"}, hangs).exit_code == 0);
  CHECK(checked({"--wrong", "of all", "--not", "deadlock"}, hangs).exit_code == 1);
  CHECK(checked({"--starter", "late"}, late).exit_code == 0);
  CHECK(checked({"--wrong", "deadlock"}, hangs).exit_code == 0);
  CHECK(checked({"--starter", "deadlock"}, hangs).err == "error: the check does not say it in a sentence\n");
}

TEST_CASE("A right number is accepted, and one within the tolerance") {
  expect_predicted("kX", 7, 7, {{7, "no slip can be right"}});
  expect_predicted("kX", 0, 0, {});
  expect_predicted("kX", 95, 100, {}, 0.05);
  CHECK_THROWS_AS(expect_predicted("kX", 94, 100, {}, 0.05), NotYet);
}

TEST_CASE("A 0 is not filled in, unless it is a slip") {
  CHECK_THROWS_MATCHES(expect_predicted("kX", 0, 7, {{1, "that is one"}, {"how many are there?"}}), NotYet,
                       Message("kX is 0: write your prediction in the marked lines"));
  CHECK_THROWS_MATCHES(expect_predicted("kLaps", 0, 1, {{0, "that is the first lap"}}), NotYet,
                       Message("kLaps is 0, too small: that is the first lap"));
}

TEST_CASE("What is said of a wrong number does not give the right one away") {
  const auto says = [](double predicted, double right, const char* sentence) {
    CHECK_THROWS_MATCHES(expect_predicted("kX", predicted, right, {}), NotYet, Message(sentence));
  };
  says(1, 960, "kX is 1, too small, less than a tenth");
  says(9601, 960, "kX is 9601, too large, more than ten times");
  says(240, 960, "kX is 240, too small, several times");
  says(960, 240, "kX is 960, too large, several times");
  says(40, 90, "kX is 40, too small, less than half");
  says(90, 40, "kX is 90, too large, more than twice");
  says(60, 90, "kX is 60, too small");
  says(90, 60, "kX is 90, too large");
  says(73728, 74752, "kX is 73728, too small, but within 5 %");
  says(796.6, 700, "kX is 796.6, too large, but within a quarter");
  says(1, 4, "kX is 1, too small");
  says(5, 4, "kX is 5, too large");
  says(-5, 100, "kX is -5, too small");
}

TEST_CASE("Of a wrong parity nothing is said but what to ask") {
  expect_predicted_parity("kParity", 0, 0, "which lap is it?");
  const auto says = [](int predicted, int right, const char* sentence) {
    CHECK_THROWS_MATCHES(expect_predicted_parity("kParity", predicted, right, "which lap is it?"), NotYet,
                         Message(sentence));
  };
  says(0, 1, "kParity is not the parity that the role waits for: which lap is it?");
  says(1, 0, "kParity is not the parity that the role waits for: which lap is it?");
  says(2, 0, "kParity is 2, but a parity is 0 or 1");
}

TEST_CASE("The first slip that matches says what was forgotten") {
  const auto says = [](double predicted, const char* sentence) {
    CHECK_THROWS_MATCHES(
        expect_predicted("kX", predicted, 100,
                         {{50, "you forgot B"}, {50.5, "you forgot C"}, {"what is added up?"}}, 0.02),
        NotYet, Message(sentence));
  };
  says(51, "kX is 51, too small: you forgot B");
  says(51.2, "kX is 51.2, too small: you forgot C");
  says(90, "kX is 90, too small, but within a quarter: what is added up?");
}

TEST_CASE("All wrong numbers are said at once, and parities when every number is filled in") {
  const auto says = [](double x, double y, double z, int parity, const char* sentences) {
    const auto predict = [&] {
      expect_predicted("kX", x, 10, {});
      expect_predicted("kY", y, 20, {{30, "you forgot B"}});
      expect_predicted("kZ", z, 30, {});
      expect_predicted_parity("kParity", parity, 1, "which lap is it?");
    };
    CHECK_THROWS_MATCHES(all_predicted(predict), NotYet, Message(sentences));
  };
  all_predicted([] { expect_predicted("kX", 10, 10, {}); });
  says(0, 0, 0, 0, "kX, kY and kZ are 0: write your predictions in the marked lines");
  says(0, 30, 30, 0,
       "kX is 0: write your prediction in the marked lines\n         kY is 30, too large: you forgot B");
  says(11, 30, 30, 0,
       "kX is 11, too large\n         kY is 30, too large: you forgot B\n"
       "         kParity is not the parity that the role waits for: which lap is it?");
  says(10, 20, 30, 2, "kParity is 2, but a parity is 0 or 1");
  CHECK_THROWS_MATCHES(expect_predicted("kX", 11, 10, {}), NotYet, Message("kX is 11, too large"));
  CHECK_THROWS_AS(all_predicted([] { throw std::logic_error("the device's"); }), std::logic_error);
  CHECK_THROWS_AS(expect_predicted("kX", 11, 10, {}), NotYet);
}

TEST_CASE("Of a function's value is said what it must be, and which slip it is") {
  expect_returned("f(1)", 7, 7, {{7, "no slip can be right"}});
  CHECK_THROWS_MATCHES(expect_returned("f(1)", 3, 7), NotYet, Message("f(1) is 3, must be 7"));
  CHECK_THROWS_MATCHES(expect_returned("f(1)", 3, 7, {{2, "two"}, {3, "three"}}), NotYet,
                       Message("f(1) is 3, must be 7: three"));
  CHECK_THROWS_MATCHES(expect_returned("f(1)", 4, 7, {{2, "two"}, {"how many?"}}), NotYet,
                       Message("f(1) is 4, must be 7: how many?"));
}
