/// @file
/// Tests of output files, result files above all.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "common/host/base/atomic_file.hpp"
#include "common/host/base/json.hpp"
#include "common/host/base/text.hpp"
#include "common/host/program/results.hpp"
#include "common/testing/temporary_directory.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinRel;
using ladder::Json;
using ladder::testing::read_bytes;
using ladder::testing::TemporaryDirectory;
using ladder::testing::write_bytes;

namespace {

ladder::ResultFile example() {
  ladder::Run timed;
  timed.lesson = "03_double_buffer";
  timed.core = "wgmma";
  timed.shape = {4096, 8192, 1024};
  timed.settings = {{"slots", "3"}, {"core", "auto"}};
  timed.time_us_median = 200.5;
  timed.time_us_q1 = 199;
  timed.time_us_q3 = 202;
  timed.tflops = 342.7;
  timed.clock_mhz = 1450;
  timed.power_watts = 690;
  timed.verified = true;
  timed.rel_error = 1.7e-3;
  ladder::Run counted = timed;
  counted.time_us_median = counted.time_us_q1 = counted.time_us_q3 = counted.tflops = counted.clock_mhz =
      counted.power_watts = {};
  counted.counters = ladder::LaunchCounters{};
  counted.counters->blocks = 8;
  counted.counters->barrier_waits = 12;
  counted.counters->overlap_cycles = 0.5;
  counted.resources = ladder::Resources{"128x256", 230400, 168, 1};
  counted.global_bytes = 4e6;
  counted.bound_us = 12.5;
  return {"2026-11-21", "abc123", "NVIDIA H200", "580.159", "CUDA 13.0", {timed, counted}};
}

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("A result file has exactly the fields that were promised") {
  const Json json = ladder::parse_json(ladder::to_json(example()));
  CHECK(keys(json) == std::vector<std::string>{"date", "commit", "gpu", "driver", "toolkit", "runs"});
  const std::vector<std::string> fields = {
      "lesson",     "core",       "m",      "n",         "k",           "settings", "time_us_median",
      "time_us_q1", "time_us_q3", "tflops", "clock_mhz", "power_watts", "verified", "rel_error"};
  CHECK(keys(json["runs"][0]) == fields);
  CHECK(json["runs"][0]["m"] == 4096);
  CHECK(json["runs"][0]["settings"] == Json({{"core", "auto"}, {"slots", "3"}}));
  CHECK(json["runs"][0]["time_us_median"] == 200.5);
  CHECK(json["runs"][0]["verified"] == true);
}

TEST_CASE("What was not measured is left out, as times on the CPU device, and counters are added there") {
  const Json run = ladder::parse_json(ladder::to_json(example()))["runs"][1];
  for (const char* field :
       {"time_us_median", "time_us_q1", "time_us_q3", "tflops", "clock_mhz", "power_watts"})
    CHECK_FALSE(run.contains(field));
  CHECK(run["counters"]["blocks"] == 8);
  CHECK(run["counters"]["barrier_waits"] == 12);
  CHECK(run["counters"]["overlap_cycles"] == 0.5);
}

TEST_CASE("In a result file each run is a line, and what was measured has eight digits") {
  ladder::ResultFile file = example();
  file.runs[0].time_us_median = 27150.463104248047;
  file.runs[0].time_us_q1 = 0.000123456789;
  file.runs[0].clock_mhz = 1979.826416015625;
  file.runs[0].tflops = 704;
  file.runs[0].global_bytes = 134250496;
  const std::string text = ladder::to_json(file);
  const std::vector<std::string> lines = ladder::split(text, '\n');
  REQUIRE(lines.size() == 12);  // braces, six fields, two runs, the list's end, nothing behind the last line
  CHECK(lines[1] == R"("date":"2026-11-21",)");
  CHECK(lines[6] == R"("runs":[)");
  for (size_t run : {0u, 1u}) {
    const std::string line = lines[7 + run];
    CHECK(ladder::parse_json(run == 0 ? line.substr(0, line.size() - 1) : line) ==
          ladder::parse_json(text)["runs"][run]);
  }
  CHECK_THAT(lines[7], ContainsSubstring(
                           R"("time_us_median":27150.463,"time_us_q1":0.00012345679,"time_us_q3":202.0,)"));
  CHECK_THAT(lines[7], ContainsSubstring(R"("tflops":704.0,"clock_mhz":1979.8264,)"));
  CHECK_THAT(lines[7], ContainsSubstring(R"("global_bytes":134250496)"));

  const ladder::Run read = ladder::from_json(text).runs[0];
  CHECK_THAT(*read.time_us_median, WithinRel(*file.runs[0].time_us_median, 5e-8));
  CHECK_THAT(*read.time_us_q1, WithinRel(*file.runs[0].time_us_q1, 5e-8));
  CHECK_THAT(*read.clock_mhz, WithinRel(*file.runs[0].clock_mhz, 5e-8));
  CHECK(*read.global_bytes == 134250496);
}

TEST_CASE("Files of earlier programs, which counted less, are read") {
  std::string text = ladder::to_json(example());
  const std::string counter = R"("blocks":8,)";
  text.replace(text.find(counter), counter.size(), "");
  const ladder::Run run = ladder::from_json(text).runs[1];
  CHECK(run.counters->blocks == 0);
  CHECK(run.counters->barrier_waits == 12);
}

TEST_CASE("A run that is no product has no shape in its file, and is read as it was written") {
  ladder::ResultFile file = example();
  file.runs[0].shape = {};
  const std::string text = ladder::to_json(file);
  const Json run = ladder::parse_json(text)["runs"][0];
  for (const char* field : {"m", "n", "k"}) CHECK_FALSE(run.contains(field));
  CHECK(ladder::from_json(text).runs[0].shape == ladder::Shape{});
}

TEST_CASE("Rows of any list of a document are lines, and an empty list stays in its own") {
  CHECK(ladder::json_rows({{"a", Json::array({Json{{"x", {1, 2}}}, "b"})},
                           {"none", Json::array()},
                           {"o", {{"y", nullptr}}}}) ==
        "{\n\"a\":[\n{\"x\":[1,2]},\n\"b\"\n],\n\"none\":[],\n\"o\":{\"y\":null}\n}\n");
}

TEST_CASE("What a block takes is in the result file of lessons that say so") {
  const ladder::Run run = ladder::from_json(ladder::to_json(example())).runs[1];
  CHECK(run.resources->tile == "128x256");
  CHECK(run.resources->shared_bytes == 230400);
  CHECK(run.resources->registers == 168);
  CHECK(run.resources->blocks_per_sm == 1);
  CHECK(run.global_bytes == 4e6);
  CHECK(run.bound_us == 12.5);
  CHECK_FALSE(ladder::from_json(ladder::to_json(example())).runs[0].resources);
}

TEST_CASE("A result file is read as it was written") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("2026-11-21-h200.json");
  ladder::ResultFile file = example();
  file.runs[0].eager_us = 201.25;
  ladder::write_results("--json", path, file);
  CHECK(ladder::to_json(ladder::read_results("--results", path)) == ladder::to_json(file));
  CHECK(ladder::read_results("--results", path).runs[0].eager_us == 201.25);
}

TEST_CASE("Of a file of several records one is read by its name") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("h200-05.json"), text = ladder::to_json(example());
  write_bytes(path, R"({"records":[{"record":"a"},{"record":"b",)" + text.substr(1) + "]}");
  CHECK(ladder::to_json(ladder::read_results("compare", path + "#b")) == text);
  for (const std::string name : {"#c", "#a", ""})
    CHECK_THROWS_AS(ladder::read_results("compare", path + name), std::invalid_argument);
  CHECK_THROWS_WITH(ladder::read_results("compare", path + "#c"),
                    "compare '" + path + "#c': holds no record 'c'");
  write_bytes(path, text);
  CHECK_THROWS_AS(ladder::read_results("compare", path + "#b"), std::invalid_argument);
}

TEST_CASE("A file that is no result file is refused by name") {
  const TemporaryDirectory directory;
  for (const char* text :
       {"", "{", "[]", "{}", R"({"date": 3})", R"({"date":"","commit":"","gpu":"","driver":"",
                           "toolkit":"","runs":[{"lesson":"01"}]})"}) {
    write_bytes(directory.file("x.json"), text);
    CHECK_THROWS_MATCHES(
        ladder::read_results("--results", directory.file("x.json")), std::invalid_argument,
        MessageMatches(ContainsSubstring("--results '") && ContainsSubstring("not a result file")));
  }
  CHECK_THROWS_MATCHES(ladder::read_results("--results", directory.file("none.json")), std::invalid_argument,
                       MessageMatches(ContainsSubstring("cannot be read")));
}

TEST_CASE("The newest result file is the one with the last date in its name") {
  const TemporaryDirectory directory;
  CHECK_FALSE(ladder::newest_result_file(directory.file("missing")));
  CHECK_FALSE(ladder::newest_result_file(directory.file("")));
  for (const char* name : {"2026-11-21-h200.json", "2027-01-02-h200.json", "2026-12-31-h100.json", "zzz.txt"})
    write_bytes(directory.file(name), "{}");
  CHECK(ladder::newest_result_file(directory.file("")) == directory.file("2027-01-02-h200.json"));
  CHECK(ladder::newest_result_file(directory.file(""), "-h100.json") ==
        directory.file("2026-12-31-h100.json"));
}

TEST_CASE("A file appears whole: when writing fails, the old one stays and nothing else is left") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("out.json");
  write_bytes(path, "old");
  CHECK_THROWS_AS(ladder::write_file_atomically("--json", path,
                                                [](std::ostream& file) {
                                                  file << "half of it";
                                                  throw std::runtime_error("interrupted");
                                                }),
                  std::runtime_error);
  CHECK(read_bytes(path) == "old");
  CHECK_THROWS_AS(ladder::write_file_atomically("--json", path,
                                                [](std::ostream& file) { file.setstate(std::ios::badbit); }),
                  std::runtime_error);
  CHECK(read_bytes(path) == "old");
  CHECK(directory.names() == std::vector<std::string>{"out.json"});

  ladder::write_file_atomically("--json", path, [](std::ostream& file) { file << "new"; });
  CHECK(read_bytes(path) == "new");
  CHECK(directory.names() == std::vector<std::string>{"out.json"});
}

TEST_CASE("A pipe and a device are written to where they are, and nothing takes their place") {
  const TemporaryDirectory directory;
  const std::string pipe = directory.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  // The reader comes first and does not wait, so that opening the other end does not, either.
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  CHECK_NOTHROW(ladder::check_writable("--json", pipe));
  CHECK_FALSE(ladder::can_be_rewritten(pipe));
  ladder::write_results_so_far("--json", pipe, example());  // There will be more: not yet.
  ladder::write_file_atomically("--json", pipe, [](std::ostream& file) { file << "through the pipe"; });
  char text[64] = {};
  CHECK(read(reader, text, sizeof text - 1) == 16);
  CHECK(std::string(text) == "through the pipe");
  close(reader);
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(directory.names() == std::vector<std::string>{"pipe"});

  REQUIRE(std::filesystem::is_character_file("/dev/null"));
  ladder::write_results("--json", "/dev/null", example());
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("Of a symbolic link the target is replaced, and the link stays") {
  const TemporaryDirectory directory;
  const std::string target = directory.file("target"), link = directory.file("link"),
                    second = directory.file("second"), nowhere = directory.file("nowhere");
  write_bytes(target, "old");
  std::filesystem::create_symlink("target", link);
  std::filesystem::create_symlink(link, second);
  for (const std::string& path : {link, second}) {
    ladder::write_file_atomically("-o", path, [&](std::ostream& file) { file << "through " << path; });
    CHECK(read_bytes(target) == "through " + path);
    CHECK(std::filesystem::is_symlink(path));
    CHECK(ladder::can_be_rewritten(path));
  }
  // Where the target is not there yet, it is made.
  std::filesystem::create_symlink("not_yet", nowhere);
  ladder::write_file_atomically("-o", nowhere, [](std::ostream& file) { file << "new"; });
  CHECK(std::filesystem::is_symlink(nowhere));
  CHECK(read_bytes(directory.file("not_yet")) == "new");

  std::filesystem::create_symlink("no/such", directory.file("lost"));
  CHECK_THROWS_MATCHES(ladder::check_writable("-o", directory.file("lost")), std::invalid_argument,
                       MessageMatches(ContainsSubstring("does not exist")));
  std::filesystem::create_symlink("circle", directory.file("circle"));
  CHECK_THROWS_MATCHES(ladder::check_writable("-o", directory.file("circle")), std::invalid_argument,
                       MessageMatches(ContainsSubstring("symbolic links")));
}

TEST_CASE("A file that is replaced keeps its permissions") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("private");
  write_bytes(path, "old");
  const auto mode = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  std::filesystem::permissions(path, mode);
  ladder::write_file_atomically("-o", path, [](std::ostream& file) { file << "new"; });
  CHECK(std::filesystem::status(path).permissions() == mode);
}

TEST_CASE("A large file arrives whole, in whatever pieces it is written") {
  const TemporaryDirectory directory;
  std::string expected;
  ladder::write_file_atomically("-o", directory.file("large"), [&](std::ostream& file) {
    for (size_t length : {1, 1000, 65'535, 65'536, 65'537, 300'000, 3}) {
      const std::string piece(length, static_cast<char>('a' + expected.size() % 7));
      file << piece << '.';
      expected += piece + '.';
    }
  });
  CHECK(read_bytes(directory.file("large")) == expected);
}

TEST_CASE("A full disk is a failure that is named, and not bad input") {
  const auto full_disk = [](const std::function<void()>& writes) {
    CHECK_THROWS_MATCHES(writes(), std::runtime_error,
                         MessageMatches(ContainsSubstring("--json '/dev/full': cannot be written: ") &&
                                        ContainsSubstring("No space left on device")));
  };
  CHECK_NOTHROW(ladder::check_writable("--json", "/dev/full"));
  full_disk([] { ladder::write_results("--json", "/dev/full", example()); });
  full_disk([] {
    ladder::write_file_atomically("--json", "/dev/full",
                                  [](std::ostream& file) { file << std::string(1'000'000, 'x'); });
  });
  CHECK(std::filesystem::is_character_file("/dev/full"));
}

TEST_CASE("A path that cannot be written is refused before any work is done") {
  const TemporaryDirectory directory;
  CHECK_THROWS_MATCHES(ladder::check_writable("--json", directory.file("no/such/x.json")),
                       std::invalid_argument,
                       MessageMatches(ContainsSubstring("--json '") && ContainsSubstring("does not exist")));
  CHECK_THROWS_MATCHES(ladder::check_writable("--json", directory.file("")), std::invalid_argument,
                       MessageMatches(ContainsSubstring("must be the name of a file")));
  CHECK_THROWS_MATCHES(ladder::check_writable("--json", directory.file(std::string(1000, 'x'))),
                       std::invalid_argument, MessageMatches(ContainsSubstring("name too long")));
  CHECK_NOTHROW(ladder::check_writable("--json", directory.file("x.json")));
}
