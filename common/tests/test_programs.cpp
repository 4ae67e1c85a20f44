/// @file
/// Tests of the programs as a reader meets them: what they print, and their exit codes.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <set>

#include "common/cuda/device_buffer.hpp"
#include "common/host/base/arguments.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/problem/tuned_plans.hpp"
#include "common/host/program/command_line.hpp"
#include "common/host/program/npy.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/report.hpp"
#include "common/host/program/results.hpp"
#include "common/host/program/run_lesson.hpp"
#include "common/host/verify/reference.hpp"
#include "common/ladder/commands.hpp"
#include "common/ladder/host_half.hpp"
#include "common/testing/captured_program.hpp"
#include "common/testing/gemm_checks.hpp"
#include "common/testing/temporary_directory.hpp"
#include "common/tests/fake_lesson.hpp"

using Catch::Matchers::ContainsSubstring;
using ladder::testing::Capture;
using ladder::testing::TemporaryDirectory;
using Result = ladder::testing::ProgramResult;

namespace {

template <class Main>
Result run(const Main& main, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "program");
  return ladder::testing::run_captured(main, std::move(arguments));
}

Result run_fake(const std::vector<std::string>& arguments) {
  return run([](int argc, char** argv) { return ladder::run_lesson(ladder::fake::lesson(), argc, argv); },
             arguments);
}

Result run_climb(const std::vector<std::string>& arguments) {
  return run([](int argc,
                char** argv) { return ladder::run_ladder({&ladder::fake::lesson()}, nullptr, argc, argv); },
             arguments);
}

/// Exit code 2, nothing on stdout, and one line on stderr that holds the words.
void check_bad_input(const Result& result, const std::string& words) {
  INFO("stderr: " << result.err);
  CHECK(result.exit_code == ladder::kExitBadInput);
  CHECK(result.out == "");
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK_THAT(result.err, ContainsSubstring("error: ") && ContainsSubstring(words));
}

void skip_without_device() { ladder::testing::skip_unless_runnable(ladder::fake::lesson()); }

/// The tests that run the fake lesson need the CPU device: it cannot be timed.
void skip_unless_cpu_device() {
  if (!ladder::on_cpu_device())
    SKIP("the fake lesson multiplies on the host, which cannot be timed on a GPU");
}

size_t lines_with(const std::string& text, const std::string& words) {
  size_t count = 0;
  for (const std::string& line : ladder::split(text, '\n')) count += line.find(words) != std::string::npos;
  return count;
}

/// What stands in a column of a table, in the first row that begins with the words; "" if there is no such
/// cell. A line of dashes says which characters of a line belong to which column.
std::string cell(const std::string& text, const std::string& row, const std::string& column) {
  const std::vector<std::string> lines = ladder::split(text, '\n');
  const auto dashes = std::find_if(lines.begin() + 1, lines.end(), [](const std::string& line) {
    return !line.empty() && line.find_first_not_of("- ") == std::string::npos;
  });
  const auto found =
      std::find_if(dashes, lines.end(), [&](const std::string& line) { return line.rfind(row, 0) == 0; });
  if (found == lines.end()) return "";
  const auto words_at = [](const std::string& line, size_t begin, size_t end) {
    const std::string part = begin < line.size() ? line.substr(begin, end - begin) : "";
    const size_t first = part.find_first_not_of(' ');
    return first == std::string::npos ? "" : part.substr(first, part.find_last_not_of(' ') - first + 1);
  };
  for (size_t begin = 0; begin < dashes->size();) {
    const size_t end = std::min(dashes->find(' ', begin), dashes->size());
    if (words_at(*(dashes - 1), begin, end) == column) return words_at(*found, begin, end);
    begin = std::min(dashes->find('-', end), dashes->size());
  }
  return "";
}

}  // namespace

TEST_CASE("Defaults fill in for knobs that were not chosen, and unknown ones are refused") {
  const ladder::Lesson& lesson = ladder::fake::lesson();
  CHECK(lesson.settings() == ladder::Settings{{"core", "auto"}, {"mistake", "no"}, {"slots", "2"}});
  CHECK(lesson.settings({{"slots", "3"}}).at("slots") == "3");
  CHECK_THROWS_AS(lesson.settings({{"slots", "4"}}), std::invalid_argument);
  CHECK_THROWS_AS(lesson.settings({{"depth", "2"}}), std::invalid_argument);
  CHECK(lesson.default_of("slots") == "2");
  CHECK_THROWS_AS(lesson.default_of("depth"), std::invalid_argument);
}

TEST_CASE("Bad arguments of a lesson give one line and exit code 2") {
  check_bad_input(run_fake({"--size", "0"}), "--size '0': must be a whole number from 1");
  check_bad_input(run_fake({"--size", "99999999999"}), "--size '99999999999'");
  check_bad_input(run_fake({"--size", "100000"}), "fewer than 2^31 elements");
  check_bad_input(run_fake({"--size"}), "--size");
  check_bad_input(run_fake({"--shape", "3x4"}), "--shape '3x4'");
  check_bad_input(run_fake({"--slots", "9"}), "--slots 9: must be one of 2, 1, 3");
  check_bad_input(run_fake({"--slots", "1,,2"}), "--slots");
  check_bad_input(run_fake({"--nonsense", "1"}), "--nonsense");
  check_bad_input(run_fake({"stray"}), "stray");
  check_bad_input(run_fake({"--data-seed", "x"}), "--data-seed 'x'");
  check_bad_input(run_fake({"--json", "/nonexistent/x.json"}), "--json '/nonexistent/x.json'");
  check_bad_input(run_fake({"--a", "a.npy"}), "--b: is missing");
  check_bad_input(run_fake({"--trace-blocks", "0"}), "--trace-blocks '0': must be a whole number from 1");
  check_bad_input(run_fake({"--trace-blocks", "2"}), "--trace-blocks 2: needs --trace");
  if (ladder::on_cpu_device()) {
    check_bad_input(run_fake({"--schedule", "al"}), "or all; did you mean all?");
    check_bad_input(run_fake({"--seed", "1-"}), "--seed '1-': the last seed of the range is missing");
  }
  check_bad_input(run_fake({"--dtype", "f3"}), "--dtype f3: must be one of f4");
}

TEST_CASE("Bad arguments of ladder give one line and exit code 2") {
  check_bad_input(run_climb({"--lessons", "98"}), "--lessons '98': no such lesson; there are 99");
  check_bad_input(run_climb({"--lesson", "99"}), "--lesson 99");
  check_bad_input(run_climb({"--lessons", "99", "--size", "-3"}), "--size '-3'");
  check_bad_input(run([](int argc, char** argv) { return ladder::run_ladder({}, nullptr, argc, argv); }, {}),
                  "without lessons");
}

TEST_CASE("On the CPU device options of measurements are refused, as nothing is timed there") {
  skip_unless_cpu_device();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--rounds", "5"},
                                                {"--sample-ms", "50"},
                                                {"--inputs", "hot"},
                                                {"--energy"},
                                                {"--no-library"}}) {
    const std::string answer = words[0] + ": only on a GPU: the CPU device measures no time\n";
    check_bad_input(run_fake(words), answer);
    check_bad_input(run_climb(words), answer);
  }
}

TEST_CASE("A shape that the lesson cannot run gives the lesson's own words and exit code 2") {
  skip_without_device();
  check_bad_input(run_fake({"--shape", "4x3x4"}),
                  "99_fake cannot run 4x3x4: n is 3; must be a multiple of 2");
  check_bad_input(run_climb({"--shape", "4x4x3"}),
                  "99_fake cannot run 4x4x3: k is 3; must be a multiple of 2");
}

TEST_CASE("A device is asked once what it is") {
  skip_without_device();
  CHECK(&ladder::device_info() == &ladder::device_info());
}

TEST_CASE("A GPU build without a GPU says what to do") {
  if (ladder::on_cpu_device()) SKIP("the CPU device is always there");
  try {
    ladder::require_device();
    SKIP("there is a GPU");
  } catch (const ladder::BadInput&) {
    check_bad_input(run_fake({"--size", "8"}), "configure with -DLADDER_DEVICE=cpu");
    check_bad_input(run_climb({"--size", "8"}), "configure with -DLADDER_DEVICE=cpu");
  }
}

TEST_CASE("cuBLAS runs beside the lesson, unless with --no-library") {
  if (ladder::on_cpu_device()) SKIP("the CPU device has no libraries");
  skip_without_device();
  const ladder::Shape shape{256, 256, 256};
  ladder::Contender lesson = ladder::baselines(shape).front();
  lesson.lesson = "99_fake";
  for (const bool with_library : {true, false}) {
    ladder::CommonOptions options;
    ladder::Arguments arguments("", "program");
    options.add_to(arguments);
    std::vector<const char*> words{"program", "--size", "256", "--rounds", "1", "--sample-ms", "1"};
    if (!with_library) words.push_back("--no-library");
    CHECK(arguments.parse(static_cast<int>(words.size()), words.data()));
    options.check();
    std::vector<std::string> rows;
    const Capture out(std::cout), err(std::cerr);
    const ladder::Report report{"program", "title", {{"lesson", 16}}, [&](const ladder::Outcome& outcome) {
                                  rows.push_back(outcome.run.lesson);
                                  return std::vector{rows.back()};
                                }};
    CHECK(ladder::report_comparisons(report, {lesson}, options) == ladder::kExitOk);
    CHECK(rows.size() == (with_library ? 5 : 1));
    CHECK(rows.front() == "99_fake");
  }
}

TEST_CASE("The choices of the CPU device are checked") {
  skip_unless_cpu_device();
  check_bad_input(run_fake({"--schedule", "nonsense"}), "--schedule 'nonsense'");
  check_bad_input(run_fake({"--seed", "1", "--schedule", "all"}), "--seed 1");
  check_bad_input(run_fake({"--seed", "x"}), "--seed 'x'");
  check_bad_input(run_fake({"--seed=-1"}), "--seed '-1'");
  check_bad_input(run_fake({"--seed", "2-1"}), "--seed 2-1");
  check_bad_input(run_fake({"--seed", "0-18446744073709551615"}), "seeds at most");
  check_bad_input(run_fake({"--threads", "0"}), "--threads '0'");
}

TEST_CASE("Help and the list of knobs are no errors") {
  const Result help = run_fake({"--help"});
  CHECK(help.exit_code == 0);
  CHECK_THAT(help.out, ContainsSubstring("--slots"));
  CHECK(help.err == "");
  const Result list = run_fake({"--list"});
  CHECK(list.exit_code == 0);
  CHECK_THAT(list.out, ContainsSubstring("--slots 2,1,3") && ContainsSubstring("llama3-70b-up"));
}

TEST_CASE("A list for a knob or a shape gives a row for every combination") {
  skip_unless_cpu_device();
  const Result result = run_fake({"--slots", "1,3", "--core", "fma,auto", "--size", "8,16"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(lines_with(result.out, "yes") == 8);
  CHECK(lines_with(result.out, "core=fma slots=3") == 2);
  CHECK(lines_with(result.out, "16x16x16") == 4);
}

TEST_CASE("No line of a table is longer than 100 characters") {
  skip_unless_cpu_device();
  for (const Result& result : {run_fake({"--size", "8", "--slots", "1"}), run_climb({"--size", "8"})})
    for (const std::string& line : ladder::split(result.out, '\n')) CHECK(line.size() <= 100);
}

TEST_CASE("A lesson that says what its blocks take gets a column for it and a table for each shape") {
  skip_unless_cpu_device();
  ladder::Lesson lesson = ladder::fake::lesson();
  lesson.resources = [](const ladder::Settings& settings) {
    return ladder::Resources{"8x8", 1024 * std::stoul(settings.at("slots"))};
  };
  const Result result = run([&](int argc, char** argv) { return ladder::run_lesson(lesson, argc, argv); },
                            {"--slots", "1,3", "--size", "8,16"});
  CHECK(result.exit_code == 0);
  CHECK(lines_with(result.out, "smem KB") == 2);
  CHECK(lines_with(result.out, "16x16x16 (M x N x K)") == 1);
  CHECK(lines_with(result.out, " 3.0  yes") == 2);
  for (const std::string& line : ladder::split(result.out, '\n')) CHECK(line.size() <= 100);
}

TEST_CASE("A lesson that chooses says what, and with --explain only why") {
  skip_unless_cpu_device();
  ladder::Lesson lesson = ladder::fake::lesson();
  lesson.choice = [](const ladder::Shape& shape, const ladder::Settings&) {
    return shape.m > 8 ? "a choice with the longest of all names" : "few";
  };
  lesson.explain = [](const ladder::Shape& shape, const ladder::Settings&) {
    return "because of " + shape.name() + "\n";
  };
  const auto run_with = [&](const std::vector<std::string>& arguments) {
    return run([&](int argc, char** argv) { return ladder::run_lesson(lesson, argc, argv); }, arguments);
  };
  const Result shown = run_with({"--slots", "1,3", "--size", "8,16"});
  CHECK(shown.exit_code == 0);
  CHECK(lines_with(shown.out, " a choice with the longest of all names ") == 2);
  CHECK(lines_with(shown.out, " few ") == 2);
  std::set<size_t> ends;  // the last cell's, of all rows
  for (const std::string& line : ladder::split(shown.out, '\n')) {
    CHECK(line.size() <= 100);
    if (line.rfind("slots=", 0) == 0) ends.insert(line.rfind("yes"));
  }
  CHECK(ends.size() == 1);

  const Result explained = run_with({"--explain", "--size", "8,16"});
  CHECK(explained.exit_code == 0);
  CHECK(lines_with(explained.out, "because of") == 2);
  CHECK(lines_with(explained.out, "yes") == 0);
  const Result many = run_with({"--explain", "--slots", "1,3", "--size", "8"});
  CHECK(lines_with(many.out, "slots=1") == 1);
  CHECK(lines_with(many.out, "slots=3") == 1);

  for (const std::vector<std::string>& more : {std::vector<std::string>{"--json", "x.json"},
                                               {"--trace", "x.json"},
                                               {"--a", "a.npy", "--b", "b.npy", "-o", "c.npy"}}) {
    std::vector<std::string> words{"--explain"};
    words.insert(words.end(), more.begin(), more.end());
    check_bad_input(run_with(words), more.front());
  }
}

TEST_CASE("Alternatives to a lesson have their own launch, and results tell them from the lesson") {
  ladder::Lesson lesson = ladder::fake::lesson();
  CHECK(ladder::alternatives_to(lesson, "slots=3", {{"slots", "3"}}).empty());
  lesson.alternatives = [](const ladder::Settings& settings) {
    ladder::Alternative alternative;
    alternative.label = "on " + settings.at("slots") + " slots elsewhere";
    return std::vector<ladder::Alternative>{alternative};
  };
  const auto others = ladder::alternatives_to(lesson, "slots=3", {{"slots", "3"}, {"core", "fma"}});
  REQUIRE(others.size() == 1);
  CHECK(others[0].label == "slots=3, on 3 slots elsewhere");
  CHECK(others[0].settings.at("instead") == "on 3 slots elsewhere");
  CHECK_FALSE(others[0].launch);
}

TEST_CASE("How many rows a sample has is said of each shape") {
  const auto said_of = [](const ladder::Shape& shape) {
    ladder::Outcome outcome;
    outcome.run.shape = shape;
    outcome.rows = ladder::rows_to_compare(shape, 1).size();
    outcome.sampled = outcome.rows < static_cast<size_t>(shape.m);
    return ladder::sample_of(outcome);
  };
  // One row in 4, and one in 16; the first and the last rows may come to that.
  CHECK_THAT(said_of({1024, 64, 64}), Catch::Matchers::Matches("25[678] of 1024 rows of 1024x64x64"));
  CHECK_THAT(said_of({8192, 64, 64}), Catch::Matchers::Matches("51[234] of 8192 rows of 8192x64x64"));
  CHECK(said_of({256, 64, 64}) == "");
}

TEST_CASE("Flops for a byte that are less than one have two digits") {
  ladder::Run run;
  run.shape = {256, 256, 256};
  const auto cell_of = [&](uint64_t bytes_of_an_output) {
    run.counters.emplace().global_read_sectors = bytes_of_an_output * 256 * 256 / 32;
    return ladder::flops_per_byte_cell(run);
  };
  CHECK(cell_of(8448) == "0.06");
  CHECK(cell_of(768) == "0.67");
  CHECK(cell_of(8) == "64.0");
}

TEST_CASE("A list of schedules gives a row for each") {
  skip_unless_cpu_device();
  CHECK(lines_with(run_fake({"--size", "8", "--schedule", "all"}).out, "yes") == 6);
  CHECK(lines_with(run_fake({"--size", "8", "--seed", "17"}).out, "random:17") == 1);
  const Result seeds = run_fake({"--size", "8", "--seed", "8-10"});
  CHECK(lines_with(seeds.out, "yes") == 3);
  for (const char* schedule : {"random:8 ", "random:9 ", "random:10 "})
    CHECK(lines_with(seeds.out, schedule) == 1);
}

TEST_CASE("A wrong result gives exit code 1 and says where") {
  skip_unless_cpu_device();
  const Result result = run_fake({"--size", "16", "--mistake", "no,yes"});
  CHECK(result.exit_code == ladder::kExitFailure);
  CHECK(lines_with(result.out, "mistake=no") == 1);
  CHECK(lines_with(result.out, "NO") == 1);
  CHECK_THAT(result.err, ContainsSubstring("wrong result of 99_fake (mistake=yes): row 15, column 15"));
  const Result unverified = run_fake({"--size", "16", "--mistake", "yes", "--no-verify"});
  CHECK(unverified.exit_code == 0);
}

TEST_CASE("The ladder runs every rung and writes what it found") {
  skip_unless_cpu_device();
  const TemporaryDirectory directory;
  const Result result = run_climb({"--size", "16", "--json", directory.file("r.json")});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out,
             ContainsSubstring("99 fake, CUDA cores") && ContainsSubstring("99 fake, three slots"));
  const ladder::ResultFile file = ladder::read_results("--results", directory.file("r.json"));
  CHECK(file.gpu == "CPU device");
  REQUIRE(file.runs.size() == 2);
  CHECK(file.runs[0].core == "fma");
  CHECK(file.runs[1].settings.at("slots") == "3");
  CHECK(file.runs[1].verified == true);
  CHECK_FALSE(file.runs[1].tflops);
}

TEST_CASE("The ladder ends with the host's half, if that was chosen") {
  skip_unless_cpu_device();
  const TemporaryDirectory directory;
  ladder::HostHalf half;
  half.lesson = "98_host";
  half.levels = [] { return std::vector<std::string>{"0 nothing", "1 streams"}; };
  half.shapes = {{4, 8, 8}};
  half.run = [](const ladder::Shape& shape, int) {
    std::vector<ladder::Run> runs(2);
    for (ladder::Run& run : runs) {
      run.lesson = "98_host";
      run.shape = shape;
      run.settings["level"] = std::to_string(&run - runs.data());
    }
    return runs;
  };
  const auto climb = [&](const std::vector<std::string>& arguments) {
    return run([&](int argc,
                   char** argv) { return ladder::run_ladder({&ladder::fake::lesson()}, &half, argc, argv); },
               arguments);
  };
  const Result all = climb({"--size", "8", "--json", directory.file("r.json")});
  CHECK(all.exit_code == 0);
  CHECK(lines_with(all.out, "99 fake, three slots") == 1);
  CHECK(lines_with(all.out, "From host memory to host memory (98)") == 1);
  CHECK(lines_with(all.out.substr(0, all.out.find("Measured on")), "1 streams") == 1);
  CHECK(ladder::read_results("--results", directory.file("r.json")).runs.size() == 4);
  const Result alone = climb({"--lessons", "98"});
  CHECK(alone.exit_code == 0);
  CHECK(lines_with(alone.out, "fake") == 0);
  CHECK(cell(alone.out, "0 nothing", "verified") == "yes");
  CHECK(lines_with(climb({"--lessons", "99", "--size", "8"}).out, "host memory") == 0);
  half.run = [](const ladder::Shape&, int) -> std::vector<ladder::Run> {
    throw std::runtime_error("level 1: wrong");
  };
  CHECK(climb({"--lessons", "98"}).exit_code == ladder::kExitFailure);
}

TEST_CASE("Where CUDA cores multiply, the host's half has its quickest shape alone") {
  ladder::HostHalf half;
  CHECK(ladder::shapes_in_minutes(half, "fma").empty());
  half.shapes = {{4, 8, 8}, {4, 16, 16}};
  const auto count = [&](const std::string& core) { return ladder::shapes_in_minutes(half, core).size(); };
  CHECK(count("wgmma") == 2);
  CHECK(count("mma_sync") == 2);
  REQUIRE(count("fma") == 1);
  CHECK(ladder::shapes_in_minutes(half, "fma").front().k == 8);
}

TEST_CASE("ladder compare refuses what is no result file in one line") {
  const TemporaryDirectory directory;
  std::ofstream(directory.file("bad.json")) << "{}";
  check_bad_input(run_climb({"compare", directory.file("bad.json"), directory.file("bad.json")}), "bad.json");
  check_bad_input(run_climb({"compare", "/nonexistent.json", "/nonexistent.json"}), "/nonexistent.json");
  check_bad_input(run_climb({"compare", "/nonexistent.json"}), "after is required");
}

TEST_CASE("Without a GPU the ladder shows recorded figures, labelled as such") {
  skip_unless_cpu_device();
  const TemporaryDirectory directory;
  ladder::ResultFile recorded{"2026-11-21", "abc", "NVIDIA H200", "580", "CUDA 13.0", {}};
  ladder::Run rung;
  rung.lesson = "99_fake";
  rung.core = "fma";
  rung.shape = {4096, 4096, 4096};
  rung.settings = {{"core", "fma"}};  // recorded before the other knobs came
  rung.tflops = 123.4;
  ladder::Run cublas = rung;
  cublas.lesson = "cublas_gemmex";
  cublas.core = "cublas";
  cublas.tflops = 500;
  ladder::Run faster = cublas;
  faster.lesson = "cublaslt";
  faster.tflops = 617;
  recorded.runs = {rung, cublas, faster};
  ladder::write_results("--json", directory.file("r.json"), recorded);

  const Result result = run_climb({"--size", "16", "--results", directory.file("r.json")});
  CHECK(result.exit_code == 0);
  const size_t recorded_at =
      result.out.find("Measured on an NVIDIA H200, 2026-11-21, at 4096x4096x4096 (M x N x K):");
  REQUIRE(recorded_at != std::string::npos);
  const std::string here = result.out.substr(0, recorded_at), there = result.out.substr(recorded_at);
  CHECK(cell(here, "99 fake", "verified") == "yes");
  CHECK(cell(here, "99 fake", "TFLOP/s").empty());
  CHECK(cell(there, "99 fake", "TFLOP/s") == "123.4");
  CHECK(cell(there, "99 fake", "% library") == "20.0");
  // A rung that was not measured is not in the second table.
  CHECK(lines_with(here, "99 fake, three slots") == 1);
  CHECK(cell(there, "99 fake, three slots", "TFLOP/s").empty());
  check_bad_input(run_climb({"--size", "16", "--results", "/nonexistent.json"}),
                  "--results '/nonexistent.json'");
}

TEST_CASE("A rung that is slower than what it builds on is named") {
  skip_unless_cpu_device();
  const TemporaryDirectory directory;
  const auto climb = [&](double first_tflops, double second_tflops) {
    ladder::ResultFile recorded{"2026-11-21", "abc", "NVIDIA H200", "580", "CUDA 13.0", {}};
    ladder::Run rung;
    rung.lesson = "99_fake";
    rung.shape = {4096, 4096, 4096};
    rung.settings = {{"core", "fma"}};
    rung.tflops = first_tflops;
    recorded.runs.push_back(rung);
    rung.settings = {{"slots", "3"}};
    rung.tflops = second_tflops;
    recorded.runs.push_back(rung);
    ladder::write_results("--json", directory.file("r.json"), recorded);
    return run_climb({"--size", "8,16", "--results", directory.file("r.json")}).out;
  };
  CHECK(lines_with(climb(500, 454), "is slower than") == 1);
  CHECK_THAT(
      climb(500, 454),
      ContainsSubstring("99 fake, three slots is slower than 99 fake, CUDA cores at 4096x4096x4096\n"));
  CHECK(lines_with(climb(500, 499), "is slower than") == 0);
  CHECK(lines_with(climb(454, 500), "is slower than") == 0);
}

TEST_CASE("What has been measured is in the result file when a later shape fails") {
  skip_unless_cpu_device();
  const TemporaryDirectory directory;
  const std::string path = directory.file("r.json");
  ladder::Lesson lesson = ladder::fake::lesson();
  lesson.launch = [&](const ladder::Gemm& gemm, const ladder::Settings& settings, cudaStream_t stream) {
    if (gemm.m == 32) throw ladder::OutOfDeviceMemory(1);
    ladder::fake::lesson().launch(gemm, settings, stream);
  };
  const Result result = run([&](int argc, char** argv) { return ladder::run_lesson(lesson, argc, argv); },
                            {"--size", "8,16,32", "--json", path});
  CHECK(result.exit_code == ladder::kExitBadInput);
  const std::vector<ladder::Run> runs = ladder::read_results("--json", path).runs;
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].shape == ladder::Shape{16, 16, 16});
}

TEST_CASE("The settings of a contender are read before its first launch, and in no later one") {
  skip_unless_cpu_device();
  ladder::Lesson lesson = ladder::fake::lesson();
  int reads = 0;
  lesson.launch = [&](const ladder::Settings& settings) -> ladder::Launcher {
    ++reads;
    return ladder::fake::lesson().launch.launcher_of(settings);
  };
  const ladder::Contender contender = ladder::contender_of(lesson, "", {});
  CHECK(reads == 0);  // words that cannot run here are refused by the launch
  ladder::DeviceBuffer<__nv_bfloat16> a(4), b(4), c(4);
  for (int i = 0; i < 3; ++i)
    contender.launch({.a = a.data(), .b = b.data(), .c = c.data(), .m = 2, .n = 2, .k = 2}, nullptr);
  CHECK(reads == 1);
}

TEST_CASE("A wrong result is named also where a later shape fails") {
  skip_unless_cpu_device();
  ladder::Lesson lesson = ladder::fake::lesson();
  lesson.launch = [&](const ladder::Gemm& gemm, const ladder::Settings& settings, cudaStream_t stream) {
    if (gemm.m == 16) throw ladder::OutOfDeviceMemory(1);
    ladder::fake::lesson().launch(gemm, settings, stream);
  };
  const Result result = run([&](int argc, char** argv) { return ladder::run_lesson(lesson, argc, argv); },
                            {"--size", "8,16", "--mistake", "yes"});
  CHECK(result.exit_code == ladder::kExitBadInput);
  CHECK(lines_with(result.err, "wrong result of 99_fake") == 1);
  CHECK(lines_with(result.err, "memory") == 1);
}

TEST_CASE("Results that the disk has no room for are a failure, and each is in the table") {
  skip_unless_cpu_device();
  const Result result = run_fake({"--size", "8", "--json", "/dev/full"});
  CHECK(result.exit_code == ladder::kExitFailure);
  CHECK(lines_with(result.out, "8x8x8") == 1);
  CHECK(result.err == "99_fake: error: --json '/dev/full': cannot be written: No space left on device\n");
}

TEST_CASE("A reader's own matrices are multiplied, through a lesson or the ladder") {
  skip_without_device();
  const TemporaryDirectory directory;
  const std::string a = directory.file("a.npy"), b = directory.file("b.npy"), c = directory.file("c.npy");
  ladder::write_npy("", a, {2, 2, {1, 2, 3, 4}}, "f4");
  ladder::write_npy("", b, {2, 4, {1, 0, 2, 0, 0, 1, 0, 2}}, "f2");
  const auto check_product = [&](const Result& result) {
    CHECK(result.err == "");
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.out, ContainsSubstring("2 x 4, f4; verified, relative error 0"));
    CHECK(ladder::read_npy("", c).values == std::vector<float>{1, 2, 2, 4, 3, 4, 6, 8});
    std::filesystem::remove(c);
  };
  check_product(run_fake({"--a", a, "--b", b, "-o", c, "--slots", "3"}));
  check_product(run_climb({"--a", a, "--b", b, "-o", c, "--lesson", "99"}));
}

TEST_CASE("A file of whole numbers is refused in one line; with a flag it holds the bits of bf16") {
  skip_without_device();
  const TemporaryDirectory directory;
  const std::string a = directory.file("a.npy"), c = directory.file("c.npy");
  ladder::write_npy("", a, {2, 2, {1, 2, 3, 4}}, "bf16");
  std::string bytes = ladder::testing::read_bytes(a);
  bytes.replace(bytes.find("|V2"), 3, "<u2");
  ladder::testing::write_bytes(a, bytes);
  check_bad_input(run_fake({"--a", a, "--b", a, "-o", c}), "--bf16-as-uint16");
  CHECK_FALSE(std::filesystem::exists(c));
  const Result result = run_fake({"--a", a, "--b", a, "-o", c, "--bf16-as-uint16"});
  CHECK(result.exit_code == 0);
  CHECK(ladder::read_npy("", c).values == std::vector<float>{7, 10, 15, 22});
  check_bad_input(run_fake({"--bf16-as-uint16"}), "--bf16-as-uint16: needs --a");
}

TEST_CASE("A lesson with two B is called by its program's name and takes no matrices from files") {
  skip_without_device();
  ladder::Lesson lesson = ladder::fake::lesson();
  lesson.b_matrices = 2;
  lesson.program = "99_two";
  const Result result = run([&](int argc, char** argv) { return ladder::run_lesson(lesson, argc, argv); },
                            {"--a", "a.npy", "--b", "b.npy", "-o", TemporaryDirectory().file("c.npy")});
  check_bad_input(result, "99_two multiplies by 2 matrices");
  CHECK_THAT(result.err, ContainsSubstring("99_two: error: --b b.npy"));
}

TEST_CASE("NaN in a reader's matrices is passed through, and the product is not called verified") {
  skip_without_device();
  const TemporaryDirectory directory;
  const std::string a = directory.file("a.npy"), c = directory.file("c.npy");
  ladder::write_npy("", a, {2, 2, {NAN, 0, 0, 1}}, "f4");
  const Result result = run_fake({"--a", a, "--b", a, "-o", c});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("not verified: the inputs hold NaN or infinity"));
  CHECK(std::isnan(ladder::read_npy("", c).values.at(0)));
  CHECK(ladder::read_npy("", c).values.at(3) == 1);
}

TEST_CASE("A wrong product of a reader's matrices is not written") {
  skip_without_device();
  const TemporaryDirectory directory;
  const std::string a = directory.file("a.npy"), c = directory.file("c.npy");
  ladder::write_npy("", a, {2, 2, {1, 2, 3, 4}}, "f4");
  const Result result = run_fake({"--a", a, "--b", a, "-o", c, "--mistake", "yes"});
  CHECK(result.exit_code == ladder::kExitFailure);
  CHECK_THAT(result.err, ContainsSubstring("nothing is written: row 1, column 1: expected 22, got 23"));
  CHECK(directory.names() == std::vector<std::string>{"a.npy"});
}

TEST_CASE("Matrices that do not fit, or that the lesson cannot run, are refused and nothing is written") {
  skip_without_device();
  const TemporaryDirectory directory;
  const std::string a = directory.file("a.npy"), odd = directory.file("odd.npy"),
                    empty = directory.file("empty.npy"), c = directory.file("c.npy");
  ladder::write_npy("", a, {2, 4, std::vector<float>(8)}, "f4");
  ladder::write_npy("", odd, {4, 3, std::vector<float>(12)}, "f4");
  ladder::write_npy("", empty, {0, 4, {}}, "f4");
  check_bad_input(run_fake({"--a", a, "--b", a, "-o", c}),
                  "is 2 x 4 and A is 2 x 4; B must have as many rows");
  check_bad_input(run_fake({"--a", a, "--b", odd, "-o", c}), "n is 3; must be a multiple of 2");
  check_bad_input(run_fake({"--a", empty, "--b", odd, "-o", c}), "A is 0 x 4; sizes must be at least 1");
  check_bad_input(run_fake({"--a", a, "--b", odd, "-o", c, "--size", "4"}), "cannot be combined");
  check_bad_input(run_fake({"--a", a, "--b", odd, "-o", c, "--slots", "1,2"}), "only one value");
  check_bad_input(run_fake({"--a", a, "--b", odd, "-o", directory.file("")}), "--output");
  const std::string same = directory.file("./odd.npy");
  check_bad_input(run_fake({"--a", a, "--b", odd, "-o", a}), "is the file of --a, which it would overwrite");
  check_bad_input(run_fake({"--a", a, "--b", odd, "-o", same}),
                  "is the file of --b, which it would overwrite");
  CHECK_FALSE(std::filesystem::exists(c));
}

TEST_CASE("What a program throws decides its exit code") {
  const auto exit_code = [](const std::function<int()>& body) {
    return run([&](int, char**) { return ladder::run_program("p", body); }, {}).exit_code;
  };
  CHECK(exit_code([] { return 0; }) == 0);
  CHECK(exit_code([]() -> int { throw std::invalid_argument("--x"); }) == ladder::kExitBadInput);
  CHECK(exit_code([]() -> int { throw ladder::OutOfDeviceMemory(1); }) == ladder::kExitBadInput);
  CHECK(exit_code([]() -> int { throw std::bad_alloc(); }) == ladder::kExitBadInput);
  CHECK(exit_code([]() -> int { throw std::runtime_error("the device failed"); }) == ladder::kExitFailure);
}

TEST_CASE("On the CPU device a lesson adds rows of its own that choose more than the reader") {
  skip_unless_cpu_device();
  ladder::Lesson lesson = ladder::fake::lesson();
  lesson.cpu_rows = {{{"slots", "2"}}, {{"slots", "3"}}};
  const auto allowed = lesson.check;
  lesson.check = [&](const ladder::Gemm& gemm, const ladder::Settings& settings) {
    allowed(gemm, settings);
    if (gemm.m < 8 && settings.at("slots") == "3") throw std::invalid_argument("too few rows");
  };
  const auto rows_with = [&](const std::vector<std::string>& arguments) {
    const Result result =
        run([&](int argc, char** argv) { return ladder::run_lesson(lesson, argc, argv); }, arguments);
    CHECK(result.exit_code == 0);
    return lines_with(result.out, "  yes");
  };
  CHECK(rows_with({"--size", "8"}) == 3);
  CHECK(rows_with({"--size", "8,16"}) == 6);
  CHECK(rows_with({"--shape", "4x8x8"}) == 2);  // which the last row does not allow
  CHECK(rows_with({"--size", "8", "--slots", "1"}) == 1);
  CHECK(rows_with({"--size", "8", "--core", "fma"}) == 1);
  lesson.cpu_rows.push_back({{"slots", "2"}, {"mistake", "no"}});  // more than the reader chooses, not else
  CHECK(rows_with({"--size", "8", "--slots", "2"}) == 2);
  CHECK(rows_with({"--size", "8", "--slots", "1"}) == 1);
}

TEST_CASE("A plan whose result is wrong is shown, and what is remembered is the fastest of the others") {
  skip_unless_cpu_device();
  const TemporaryDirectory directory;
  setenv("XDG_CACHE_HOME", directory.file("").c_str(), 1);
  ladder::Lesson lesson = ladder::fake::lesson();
  lesson.choice = [](const ladder::Shape&, const ladder::Settings& settings) {
    return settings.at("slots") + " slots";
  };
  lesson.candidates = [&](const ladder::Shape& shape, const ladder::Settings&) {
    return std::vector<ladder::Settings>{
        lesson.settings({{"mistake", "yes"}}),
        lesson.settings({{"slots", "3"}, {"mistake", shape.m < 16 ? "yes" : "no"}})};
  };
  const auto tune = [&](const std::vector<std::string>& arguments) {
    return run([&](int argc, char** argv) { return ladder::run_tune({&lesson}, argc, argv); }, arguments);
  };
  const Result result = tune({"--size", "8,16"});
  CHECK(result.exit_code == ladder::kExitFailure);
  CHECK(lines_with(result.out, " NO") == 3);
  CHECK(lines_with(result.err, "wrong result of 99_fake") == 3);
  CHECK_THAT(result.out, ContainsSubstring("8x8x8: none of these plans gave a right result."));
  CHECK_THAT(result.out, ContainsSubstring("16x16x16: 3 slots is "));
  const auto plans = ladder::read_tuned_plans(ladder::tuned_plans_path());
  REQUIRE(plans.size() == 1);
  CHECK(plans.front().shape == ladder::Shape{16, 16, 16});
  CHECK(plans.front().settings == ladder::Settings{{"slots", "3"}});
  unsetenv("XDG_CACHE_HOME");

  const Result none =
      run([](int argc, char** argv) { return ladder::run_tune({&ladder::fake::lesson()}, argc, argv); }, {});
  check_bad_input(none, "without a lesson that chooses a plan");
}
