/// @file
/// Writes a program that holds the checks of many exercises, each with an answer of its own: one program for
/// many compiles in a quarter of the time that one for each takes.
///
///     write_checks <program.cu> <folder> solutions|wrong <exercise.md>...
///
/// The first argument of the program is the name of one of them: of an exercise's solution its folder,
/// a_parity; of the starter and of wrong answers a_parity_starter and the like. Stages of the capstone are
/// stage_3 and stage_3_<name>. Each answer becomes a file in <folder>.
#include <fmt/core.h>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <set>
#include <stdexcept>

#include "common/exercise/exercise_file.hpp"
#include "common/host/base/json.hpp"
#include "common/host/base/text.hpp"

namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

/// A check with a file for EXERCISE, and the arguments of the check, run_check() says which.
struct Check {
  std::string name;
  fs::path source, answer;
  int stage;  ///< 0 where there are none
  Words arguments;
};

std::string read(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Leaves a file alone that holds the text already, so that nothing is compiled again.
void write(const fs::path& file, const std::string& text) {
  if (!fs::exists(file) || read(file) != text) std::ofstream(file) << text;
}

/// What the check must say of the starter.
Words arguments_of_starter(const ladder::ExerciseFile& exercise) {
  // A planted mistake is reported by the device, not in a sentence.
  Words arguments = {exercise.field("kind") == "find" ? "--wrong" : "--starter"};
  arguments.insert(arguments.end(), exercise.starter->says.begin(), exercise.starter->says.end());
  return arguments;
}

/// What the check must say of a wrong answer, and what it must not, as it says that of others.
Words arguments_of(const ladder::ExerciseFile& exercise, const ladder::Answer& answer) {
  Words arguments = {"--wrong"};
  arguments.insert(arguments.end(), answer.says.begin(), answer.says.end());
  arguments.push_back("--not");
  for (const ladder::Answer& other : exercise.wrong)
    if (std::find(arguments.begin(), arguments.end(), other.says.front()) == arguments.end())
      arguments.push_back(other.says.front());
  return arguments;
}

class Program {
 public:
  Program(fs::path folder, bool of_wrong) : folder_(std::move(folder)), of_wrong_(of_wrong) {}

  void add(const fs::path& description) {
    if (description.filename() == "exercise.md")
      add_exercise(description);
    else
      add_stage(description);
  }

  std::string text() const {
    std::string includes = "#include <string>\n#include <vector>\n", checks, calls;
    for (const Check& check : checks_) {
      for (const fs::path& file : {check.answer, check.source}) includes += includes_of(read(file));
      checks +=
          fmt::format("\nnamespace of_{} {{\n#define EXERCISE \"{}\"\n", check.name, check.answer.string());
      if (check.stage > 0) checks += fmt::format("#define STAGE {}\n", check.stage);
      checks += fmt::format("#include \"{}\"\n#undef STAGE\n#undef EXERCISE\n}}\n", check.source.string());
      calls += fmt::format("  if (name == \"{}\") return run(of_{}::main, {{", check.name, check.name);
      for (const std::string& argument : check.arguments) calls += ladder::json_text(argument) + ", ";
      calls += "});\n";
    }
    return includes + checks + R"(
int run(int (*check)(int, char**), std::vector<std::string> words) {
  words.insert(words.begin(), "check");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return check(static_cast<int>(argv.size()), argv.data());
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
)" + calls +
           "  return 1;\n}\n";
  }

 private:
  void add_exercise(const fs::path& description) {
    const fs::path directory = description.parent_path(), check = directory / "check.cu";
    const ladder::ExerciseFile exercise = ladder::read_exercise_file(description);
    const std::string name = directory.filename();
    const ladder::MarkedText solution = exercise.marked_solution();
    if (!of_wrong_) return add_solution(name, check, 0, exercise.solution);
    if (!exercise.starter) exercise.complain("has no section '## Starter'");
    add_wrong(exercise, name, check, 0, solution);
  }

  void add_stage(const fs::path& description) {
    const fs::path directory = description.parent_path();
    const int stage = std::stoi(description.filename());
    const std::string name = "stage_" + std::to_string(stage);
    const std::string reference = ladder::stage_text(read(directory / "stages.cuh"), stage);
    if (of_wrong_)
      return add_wrong(ladder::read_exercise_file(description), name, directory / "check.cu", stage,
                       {"", reference, ""});
    add_solution(name, directory / "check.cu", stage, reference);
  }

  void add_solution(const std::string& name, const fs::path& source, int stage, const std::string& text) {
    checks_.push_back({name, source, folder_ / (name + ".cuh"), stage, {}});
    write(checks_.back().answer, text);
  }

  void add_wrong(const ladder::ExerciseFile& exercise, const std::string& name, const fs::path& source,
                 int stage, const ladder::MarkedText& solution) {
    constexpr size_t kFewest = 3;
    if (exercise.wrong.size() < kFewest) exercise.complain("needs three wrong answers at least");
    std::set<std::string> texts = {solution.marked};
    const auto add_one = [&](const ladder::Answer& answer, const Words& arguments) {
      const std::string text = ladder::lines_of(exercise, answer, solution.marked);
      // `#pragma once` may take two files with one text for the same file.
      if (!texts.insert(text).second)
        exercise.complain(answer.name + " is the same as the solution, the starter or another wrong answer");
      const std::string full_name = name + "_" + answer.name;
      checks_.push_back({full_name, source, folder_ / (full_name + ".cuh"), stage, arguments});
      write(checks_.back().answer, solution.before + text + solution.after);
    };
    if (exercise.starter) add_one(*exercise.starter, arguments_of_starter(exercise));
    for (const ladder::Answer& answer : exercise.wrong) add_one(answer, arguments_of(exercise, answer));
  }

  /// What a file includes, to be included before the namespace in which the file comes.
  static std::string includes_of(const std::string& text) {
    static const std::regex kWanted("#(include [<\"]|if|else|endif).*");
    std::string lines;
    for (const std::string& line : ladder::split(text, '\n'))
      if (std::regex_match(line, kWanted)) lines += line + "\n";
    return lines;
  }

  fs::path folder_;
  bool of_wrong_;
  std::vector<Check> checks_;
};

}  // namespace

int main(int argc, char** argv) try {
  const Words arguments(argv + 1, argv + argc);
  if (arguments.size() < 4 || (arguments[2] != "solutions" && arguments[2] != "wrong"))
    throw std::invalid_argument("write_checks: needs <program.cu> <folder> solutions|wrong <exercise.md>...");
  Program program(arguments[1], arguments[2] == "wrong");
  for (size_t i = 3; i < arguments.size(); ++i) program.add(arguments[i]);
  write(arguments[0], program.text());
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
