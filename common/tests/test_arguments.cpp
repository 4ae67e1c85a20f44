/// @file
/// Tests of command lines: what is read, and what is refused.
#include "common/host/base/arguments.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/host/base/text.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;
using Catch::Matchers::MessageMatches;
using ladder::Arguments;
using ladder::BadArguments;

namespace {

bool parse_words(Arguments& arguments, std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  return arguments.parse(static_cast<int>(words.size()), words.data());
}

void check_refused(Arguments& arguments, const std::vector<const char*>& words, const std::string& reason) {
  CHECK_THROWS_MATCHES(parse_words(arguments, words), BadArguments,
                       MessageMatches(ContainsSubstring(reason)));
}

}  // namespace

TEST_CASE("Help fits a terminal 100 columns wide, also where it is long") {
  std::string value;
  bool flag = false;
  Arguments arguments("", "program");
  std::string help = "what it is good for";
  for (int i = 0; i < 20; ++i) help += ", and for that";
  arguments.add_option("--value", value, "CHOICE", help);
  arguments.add_flag("--flag", flag, help);
  std::ostringstream said;
  std::streambuf* const before = std::cout.rdbuf(said.rdbuf());
  const bool goes_on = parse_words(arguments, {"--help"});
  std::cout.rdbuf(before);
  CHECK(!goes_on);
  CHECK_THAT(said.str(), ContainsSubstring("and for that"));
  for (const std::string& line : ladder::split(said.str(), '\n')) CHECK(line.size() <= 100);
}

TEST_CASE("Options, flags and words known by their place are read as they are given") {
  std::string output, exercise;
  std::vector<std::string> sizes;
  double load = 0;
  std::optional<double> interval, hidden;
  bool list = false, again = false;
  int calls = 0;
  Arguments arguments("", "program");
  arguments.add_option("-o,--output", output, "PATH", "");
  arguments.add_option("exercise", exercise, "NAME", "");
  arguments.add_option("--size", sizes, "N", "");
  arguments.add_option("--load", load, "TIME", "");
  arguments.add_option("--interval", interval, "TIME", "");
  arguments.add_hidden_option("--hidden", hidden);
  arguments.add_flag("--list", list, "");
  arguments.add_flag("--again", again, "");
  arguments.add_flag(
      "--count", [&] { ++calls; }, "");
  CHECK(parse_words(arguments, {"--size", "1,2", "03.1", "-o", "x y", "--size=3", "--load", "1.5", "--hidden",
                                "2", "--list", "--count"}));
  CHECK(output == "x y");
  CHECK(exercise == "03.1");
  CHECK(sizes == std::vector<std::string>{"1,2", "3"});
  CHECK(load == 1.5);
  CHECK(interval == std::nullopt);
  CHECK(hidden == 2);
  CHECK(list);
  CHECK_FALSE(again);
  CHECK(calls == 1);
  CHECK(arguments.has("--load"));
  CHECK_FALSE(arguments.has("--interval"));
}

TEST_CASE("A command line that does not fit the program is refused, naming the option") {
  std::string lesson, trace;
  double load = 0;
  bool lessons = false;
  Arguments arguments("", "program");
  arguments.add_option("lesson", lesson, "NN", "");
  arguments.require("lesson");
  arguments.add_option("--trace", trace, "PATH", "");
  arguments.add_option("--load", load, "TIME", "");
  arguments.add_flag("--lessons", lessons, "");
  arguments.exclude("--trace", "--lessons");
  check_refused(arguments, {}, "lesson");
  check_refused(arguments, {"03", "04"}, "04");
  check_refused(arguments, {"03", "--traces", "x"},
                "--traces: there is no such option; did you mean --trace?");
  check_refused(arguments, {"03", "--trces=x"}, "--trces: there is no such option; did you mean --trace?");
  check_refused(arguments, {"03", "--timeline"},
                "--timeline: there is no such option; --help lists what there is");
  arguments.suggest("--timeline", "--trace");
  arguments.suggest("learn", "learn");
  for (const char* const word : {"--timeline", "--timelines", "--timeline=x"})
    check_refused(arguments, {"03", word}, "there is no such option; did you mean --trace?");
  check_refused(arguments, {"03", "lern"}, "lern: there is no such word; did you mean learn?");
  check_refused(arguments, {"03", "--trace"}, "--trace");
  check_refused(arguments, {"03", "--trace", "x", "--trace", "y"}, "--trace");
  check_refused(arguments, {"03", "--load", "soon"}, "--load");
  check_refused(arguments, {"03", "--trace", "x", "--lessons"}, "--trace excludes --lessons");
}

TEST_CASE("An option that is refused is told why, with a value or without") {
  bool list = false;
  Arguments arguments("", "program");
  arguments.add_flag("--list", list, "");
  arguments.refuse("--rounds", "only on a GPU");
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"--rounds"}, {"--rounds", "5"}, {"--rounds=5"}, {"--list", "--rounds", "5"}})
    CHECK_THROWS_MATCHES(parse_words(arguments, words), std::invalid_argument,
                         MessageMatches(Equals("--rounds: only on a GPU")));
  check_refused(arguments, {"--rundes", "5"},
                "--rundes: there is no such option; --help lists what there is");
  CHECK(parse_words(arguments, {"--list"}));
}

TEST_CASE("A command has arguments of its own") {
  std::string file, json;
  Arguments arguments("", "program");
  arguments.add_option("--json", json, "PATH", "");
  Arguments compare = arguments.add_command("compare", "");
  compare.add_option("file", file, "PATH", "");
  compare.require("file");
  check_refused(arguments, {"compare"}, "file");
  check_refused(arguments, {"compare", "x", "--json", "y"}, "--json");
  check_refused(arguments, {"compere", "x"}, "compere: there is no such word; did you mean compare?");
  CHECK(parse_words(arguments, {"compare", "x"}));
  CHECK(compare.chosen());
  CHECK(file == "x");
  CHECK(parse_words(arguments, {"--json", "y"}));
  CHECK_FALSE(compare.chosen());
  CHECK(json == "y");
}
