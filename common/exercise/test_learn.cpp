/// @file
/// `ladder learn` on exercises made up for the test, whose checks only look at the learner's file.
#include <fnmatch.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <iostream>
#include <sstream>
#include <thread>

#include "common/exercise/compile_errors.hpp"
#include "common/exercise/exercise_file.hpp"
#include "common/exercise/learn.hpp"
#include "common/host/base/text.hpp"
#include "common/testing/captured_program.hpp"
#include "common/testing/temporary_directory.hpp"

using Catch::Matchers::ContainsSubstring, Catch::Matchers::EndsWith, Catch::Matchers::StartsWith;
using ladder::Attempt;
using Lines = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

std::string description(const std::string& title, const std::string& kind, const std::string& trains) {
  return "---\ntitle: " + title + "\nkind: " + kind + "\ntrains: " + trains +
         "\npage: docs/page.md\nheader: common/header.cuh\n---\n";
}

const std::string kHints = "\n## Hint\nThink.\n\n## Hint\nThink more.\n";

std::string solution(const std::string& code) { return "\n## Solution\n```cpp\n" + code + "```\n"; }

/// What their solutions are with the starter between their marks.
const std::string kStarter = "before\n  // >>> yours\n  starter\n  // <<<\nafter\n";

/// A source tree with four exercises. A file is right when it contains the word "right", and does not compile
/// when it contains "typo".
struct FakeWorkshop {
  FakeWorkshop() {
    write("docs/page.md", "");
    write("common/header.cuh", "");
    add("02_second/exercise/2_limit", description("The limit", "predict", "say how fast it can be"));
    add("02_second/exercise/1_hang", description("It hangs", "find", "find out why"));
    add("01_first/exercise/2_beyond", description("Beyond the idea", "write", "do more"));
    add("01_first/exercise/1_idea", description("The idea", "write", "do it"));
    workshop = {tree.file(""), tree.file("state.json"), [this](const ladder::Exercise& exercise) {
                  ++checks;
                  if (during_check) during_check(exercise);
                  const std::string mine = ladder::testing::read_bytes(exercise.mine());
                  if (mine.find("typo") != std::string::npos) return Attempt::does_not_compile;
                  return mine.find("right") != std::string::npos ? Attempt::right : Attempt::wrong;
                }};
  }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(tree.file(name)).parent_path());
    ladder::testing::write_bytes(tree.file(name), text);
  }

  void add(const std::string& folder, const std::string& fields, const std::string& hints = kHints) const {
    write(folder + "/exercise.md", fields + hints +
                                       solution("before\n  // >>> yours\n  answer\n  // <<<\nafter\n") +
                                       "\n## Starter\n> not yet\n```cpp\n  starter\n```\n");
  }

  /// Runs `ladder learn` with these words; what it printed is in `text`, and on stderr in `error`.
  int learn(std::vector<std::string> words) {
    words.insert(words.begin(), "learn");
    const auto result = ladder::testing::run_captured(
        [&](int argc, char** argv) { return ladder::run_learn(workshop, std::cout, argc, argv); }, words);
    text = result.out;
    error = result.err;
    return result.exit_code;
  }

  void solve(const std::string& name) {
    during_check = [](const ladder::Exercise& exercise) {
      ladder::testing::write_bytes(exercise.mine(), "right");
    };
    CHECK(learn({name}) == 0);
    during_check = nullptr;
  }

  std::string idea(const std::string& name = "mine.cuh") const {
    return tree.file("01_first/exercise/1_idea/" + name);
  }

  ladder::testing::TemporaryDirectory tree;
  ladder::Workshop workshop;
  std::function<void(const ladder::Exercise&)> during_check;
  int checks = 0;
  std::string text, error;
};

size_t longest_line(const std::string& text) {
  size_t longest = 0;
  for (const std::string& line : ladder::split(text, '\n')) longest = std::max(longest, line.size());
  return longest;
}

Lines errors_in(const std::string& log) {
  std::istringstream lines(log);
  return ladder::first_errors(lines, "/repo", "/repo/04_x/exercise/1_y/mine.cuh");
}

/// The words before the lines that are the learner's, without the slashes of comments.
std::string words_before_marks(const std::string& starter) {
  std::istringstream words(starter.substr(0, starter.find("// >>> yours")));
  std::string said;
  for (std::string word; words >> word;)
    if (word != "//") said += word + " ";
  return said;
}

}  // namespace

TEST_CASE("ladder learn lists lessons and exercises in order, with their kinds and what is done") {
  FakeWorkshop fake;
  fake.solve("01.2");
  CHECK(fake.learn({}) == 0);
  CHECK(fake.text ==
        "                            attempts  hints\n"
        "01_first  1 of 2\n"
        "  01.1        write                          The idea\n"
        "  01.2        write    done        1         Beyond the idea\n"
        "02_second  0 of 2\n"
        "  02.1        find                           It hangs\n"
        "  02.2        predict                        The limit\n"
        "\n1 of 4 done. Next is 01.1: ladder learn next\n");
  CHECK(fake.checks == 1);
}

TEST_CASE("ladder learn keeps to 100 columns") {
  FakeWorkshop fake;
  std::string words = "a";
  for (int i = 0; i < 40; ++i) words += " title";
  fake.add("01_first/exercise/1_idea", description(words, "find", words));
  fake.learn({});
  CHECK_THAT(fake.text, ContainsSubstring("title\n" + std::string(45, ' ') + "title"));
  CHECK(longest_line(fake.text) <= 100);
  for (const std::string name : {"01.1", "01.2", "02.1", "02.2", "01.1"}) {
    fake.solve(name);
    CHECK(longest_line(fake.text) <= 100);
  }
}

TEST_CASE("ladder learn says every time what to read and to edit") {
  FakeWorkshop fake;
  const std::string head =
      "01.1  The idea\n"
      "Read  docs/page.md\n"
      "      common/header.cuh\n"
      "Edit  01_first/exercise/1_idea/mine.cuh\n"
      "Write the lines between '>>> yours' and '<<<'.\n\n";
  CHECK(fake.learn({"next"}) == 1);
  CHECK(fake.text == head + "ladder learn 01.1 --hint gives a hint; 2 left.\n");
  CHECK(ladder::testing::read_bytes(fake.idea()) == kStarter);

  ladder::testing::write_bytes(fake.idea(), "right");
  CHECK(fake.learn({"next"}) == 0);
  CHECK(fake.text == head +
                         "One solution\n  answer\n\nYou can now do it.\n01_first  1 of 2 done. Next is 01.2: "
                         "ladder learn 01.2\n");
  CHECK(ladder::testing::read_bytes(fake.idea()) == "right");
}

TEST_CASE("Each command that ladder learn prints can be typed where it was run") {
  FakeWorkshop fake;
  fake.workshop.ladder = "build/bin/ladder";
  CHECK(fake.learn({}) == 0);
  CHECK_THAT(fake.text, EndsWith("Next is 01.1: build/bin/ladder learn next\n"));
  CHECK(fake.learn({"02.1", "--hint"}) == 0);
  CHECK(fake.learn({"02.1", "--hints"}) == 0);
  CHECK_THAT(fake.text, EndsWith("1 left: build/bin/ladder learn 02.1 --hint\n"));
  fake.solve("02.1");
  CHECK_THAT(fake.text, EndsWith("Next is 02.2: build/bin/ladder learn 02.2\n"));
}

TEST_CASE("ladder learn says what to do with the marked lines, for each kind of exercise") {
  FakeWorkshop fake;
  fake.learn({"01.1"});
  CHECK_THAT(fake.text, ContainsSubstring("\nWrite the lines between '>>> yours' and '<<<'.\n"));
  fake.learn({"02.1"});
  CHECK_THAT(fake.text, ContainsSubstring("\nOne mistake is planted between '>>> yours' and '<<<': find it"));
  fake.learn({"02.2"});
  CHECK_THAT(fake.text, ContainsSubstring("\nWork out the numbers between '>>> yours' and '<<<'; the check"));
}

TEST_CASE("After an exercise the next of its lesson comes first, then what was left out before") {
  FakeWorkshop fake;
  fake.solve("02.1");
  CHECK_THAT(fake.text, EndsWith("02_second  1 of 2 done. Next is 02.2: ladder learn 02.2\n"));
  fake.solve("02.2");
  CHECK_THAT(fake.text, EndsWith("02_second  2 of 2 done. Next is 01.1: ladder learn 01.1\n"));
}

TEST_CASE("After the last exercise ladder learn says all that one can do now") {
  FakeWorkshop fake;
  const std::string closing =
      "All 4 exercises are done. You can now\n"
      "  01.1  do it\n"
      "  01.2  do more\n"
      "  02.1  find out why\n"
      "  02.2  say how fast it can be\n"
      "What is left has no starter and no hints: the changes at the end of each lesson's README, and a\n"
      "kernel of your own, which ladder check runs.\n";
  for (int i = 0; i < 4; ++i) fake.solve("next");
  CHECK_THAT(fake.text, EndsWith("You can now say how fast it can be.\n\n" + closing));
  CHECK(fake.learn({"next"}) == 0);
  CHECK(fake.text == closing);
  CHECK(fake.learn({}) == 0);
  CHECK_THAT(fake.text, EndsWith("4 of 4 done. ladder learn next says what you can do now.\n"));
  CHECK(fake.checks == 4);
}

TEST_CASE("An exercise has short names, and a lesson's means its first that is not done") {
  FakeWorkshop fake;
  const auto opens = [&](const std::string& name) {
    CHECK(fake.learn({name}) == 1);
    return fake.text.substr(0, 4);
  };
  for (const std::string name : {"02.2", "2.2", "2.02", "2.limit", "02.2_limit", "02_second.limit"})
    CHECK(opens(name) == "02.2");
  for (const std::string name : {"02", "2", "02_second"}) CHECK(opens(name) == "02.1");
  fake.solve("2");
  CHECK(opens("2") == "02.2");
  fake.solve("2");
  CHECK(fake.learn({"2"}) == 0);
  CHECK(fake.text == "02_second  2 of 2 done. To see one again name it, for example 02.1.\n");
}

TEST_CASE("ladder learn answers an unknown name with one line") {
  FakeWorkshop fake;
  for (const std::string name : {"09.9", "2.3", "2.", "2.lim", ".2", ".", "0", "00.1", "limit"}) {
    CHECK(fake.learn({name}) == 2);
    CHECK(fake.error ==
          "ladder learn: error: '" + name + "': no such exercise or lesson; ladder learn lists them\n");
  }
  CHECK(fake.checks == 0);
}

TEST_CASE("ladder learn --hint gives the next hint only, and --hints those that were given") {
  FakeWorkshop fake;
  CHECK(fake.learn({"02.1", "--hints"}) == 0);
  CHECK(fake.text == "2 left: ladder learn 02.1 --hint\n");
  CHECK(fake.learn({"02.1", "--hint"}) == 0);
  CHECK(fake.text == "Hint 1 of 2\nThink.\n\n1 left.\n");
  CHECK(fake.learn({"02.1", "--hints"}) == 0);
  CHECK(fake.text == "Hint 1 of 2\nThink.\n\n1 left: ladder learn 02.1 --hint\n");
  CHECK(fake.learn({"02.1", "--hint"}) == 0);
  CHECK(fake.text ==
        "Hint 2 of 2\nThink more.\n\nNo hint is left; ladder learn 02.1 --hints shows them again.\n");
  CHECK(fake.learn({"02.1", "--hint"}) == 0);
  CHECK(fake.text == "No hint is left; ladder learn 02.1 --hints shows them again.\n");
  CHECK(fake.learn({"02.1", "--hints"}) == 0);
  CHECK(fake.text == "Hint 1 of 2\nThink.\n\nHint 2 of 2\nThink more.\n\nNone left.\n");
  CHECK(fake.checks == 0);
  CHECK(fake.learn({"02.1"}) == 1);
  CHECK_THAT(fake.text, EndsWith("\n\nNo hint is left; ladder learn 02.1 --hints shows them again.\n"));

  fake.add("02_second/exercise/1_hang", description("It hangs", "find", "find out why"), "");
  CHECK(fake.learn({"02.1", "--hint"}) == 0);
  CHECK(fake.text == "There are no hints for 02.1.\n");
  CHECK(fake.learn({"02.1", "--hints"}) == 0);
  CHECK(fake.text == "There are no hints for 02.1.\n");
}

TEST_CASE("ladder learn --watch checks again when the file changes, until it is right") {
  FakeWorkshop fake;
  const auto check = fake.workshop.check;
  fake.workshop.check = [&](const ladder::Exercise& exercise) {
    const Attempt attempt = check(exercise);
    if (fake.checks < 3) {  // saved while the check runs, after that has read the file
      const auto started = fs::last_write_time(exercise.mine());
      ladder::testing::write_bytes(exercise.mine(), fake.checks == 1 ? "typo" : "right");
      fs::last_write_time(exercise.mine(), started + std::chrono::seconds(1));
    }
    return attempt;
  };
  CHECK(fake.learn({"01.1", "--watch"}) == 0);
  CHECK(fake.checks == 3);
  CHECK_THAT(fake.text, ContainsSubstring("waiting for the file to change; Ctrl-C ends\n"));
  CHECK_THAT(fake.text, ContainsSubstring("\nYou can now do it.\n"));
}

TEST_CASE("ladder learn --watch waits while an editor replaces the file") {
  FakeWorkshop fake;
  std::thread editor;
  fake.during_check = [&](const ladder::Exercise& exercise) {
    if (fake.checks > 1) return;
    editor = std::thread([mine = exercise.mine()] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      fs::remove(mine);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      ladder::testing::write_bytes(mine.string() + ".new", "right");
      fs::rename(mine.string() + ".new", mine);
    });
  };
  CHECK(fake.learn({"01.1", "--watch"}) == 0);
  editor.join();
  CHECK(fake.checks == 2);
}

TEST_CASE("ladder learn --again keeps the learner's file, and opens the exercise anew") {
  FakeWorkshop fake;
  fake.learn({"01.1", "--hint"});
  fake.solve("01.1");
  CHECK(fake.learn({"01.1", "--again"}) == 1);
  CHECK_THAT(fake.text, StartsWith("Your file is kept as 01_first/exercise/1_idea/mine.1.cuh.\n"));
  CHECK(ladder::testing::read_bytes(fake.idea("mine.1.cuh")) == "right");
  CHECK(ladder::testing::read_bytes(fake.idea()) == kStarter);
  CHECK_THAT(fake.text, !ContainsSubstring("was done"));
  fake.learn({"01.1", "--hints"});
  CHECK_THAT(fake.text, StartsWith("2 left"));
  fake.learn({});
  CHECK_THAT(fake.text, EndsWith("0 of 4 done. Next is 01.1: ladder learn next\n"));

  ladder::testing::write_bytes(fake.idea(), "another");
  fake.learn({"01.1", "--again"});
  CHECK(ladder::testing::read_bytes(fake.idea("mine.1.cuh")) == "right");
  CHECK(ladder::testing::read_bytes(fake.idea("mine.2.cuh")) == "another");
  fake.learn({"01.1", "--again"});
  CHECK_THAT(fake.text, StartsWith("01.1"));
  CHECK_FALSE(fs::exists(fake.idea("mine.3.cuh")));
}

TEST_CASE("git ignores what a learner writes, and what --again keeps of it") {
  const Lines patterns = ladder::split(ladder::testing::read_bytes(LADDER_SOURCE_DIR "/.gitignore"), '\n');
  const auto ignored = [&](const char* file) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), file, FNM_PATHNAME) == 0;
    });
  };
  CHECK(ignored("/04_warp_specialized/exercise/1_storer/mine.cuh"));
  CHECK(ignored("/04_warp_specialized/exercise/1_storer/mine.12.cuh"));
  CHECK(ignored("/.learn.json"));
  CHECK_FALSE(ignored("/04_warp_specialized/exercise/1_storer/check.cu"));
}

TEST_CASE("An exercise whose file became wrong is no longer done") {
  FakeWorkshop fake;
  for (const std::string now : {"a muddle", "a typo"}) {
    fake.solve("01.1");
    ladder::testing::write_bytes(fake.idea(), now);
    CHECK(fake.learn({"01.1"}) == 1);
    CHECK_THAT(fake.text, ContainsSubstring("\n01.1 was done, and no longer is.\n"));
    CHECK(fake.learn({"01.1"}) == 1);
    CHECK_THAT(fake.text, !ContainsSubstring("was done"));
    fake.learn({});
    CHECK_THAT(fake.text, EndsWith("0 of 4 done. Next is 01.1: ladder learn next\n"));
  }
}

TEST_CASE("A file that does not compile gets no offer of a hint") {
  FakeWorkshop fake;
  fake.learn({"01.1"});
  ladder::testing::write_bytes(fake.idea(), "typo");
  CHECK(fake.learn({"01.1"}) == 1);
  CHECK_THAT(fake.text, EndsWith("'<<<'.\n\n"));
}

TEST_CASE("ladder learn refuses options that do not go together, and a state that it cannot read") {
  FakeWorkshop fake;
  for (const std::string option : {"--hint", "--hints", "--watch", "--again"})
    CHECK(fake.learn({option}) == 2);
  CHECK(fake.learn({"01.1", "--no-such-option"}) == 2);
  for (const std::string option : {"--hints", "--watch", "--again", "--diff", "--list"}) {
    CHECK(fake.learn({"01.1", "--hint", option}) == 2);
    CHECK_THAT(fake.error, EndsWith("exclude each other\n"));
  }
  ladder::testing::write_bytes(fake.tree.file("state.json"), "not JSON");
  CHECK(fake.learn({}) == 2);
  CHECK(fake.checks == 0);
}

TEST_CASE("A mistake in exercise.md is one line that names the file and the field or the line") {
  const auto complaint_about = [](const std::string& text) {
    FakeWorkshop fake;
    fake.write("02_second/exercise/1_hang/exercise.md", text);
    CHECK(fake.learn({}) == 2);
    CHECK_THAT(fake.error, ContainsSubstring("02_second/exercise/1_hang/exercise.md: "));
    CHECK(std::count(fake.error.begin(), fake.error.end(), '\n') == 1);
    return fake.error.substr(fake.error.find(".md: ") + 5);
  };
  const auto fields = [](const std::string& lines) { return "---\n" + lines + "---\n"; };
  CHECK(complaint_about("title: T\n") == "line 1 must begin with a line '---'\n");
  CHECK(complaint_about("---\ntitle: T\n") == "line 2 must have a second line '---'\n");
  CHECK(complaint_about(fields("title T\n")) == "line 2 must be 'field: text'\n");
  CHECK(complaint_about(fields("title: T\ntitle: U\n")) == "line 3 has the field for the second time\n");
  CHECK(complaint_about(fields("title: T\n")) == "\"kind\" is missing\n");
  CHECK(complaint_about(fields("kind: find\n")) == "\"title\" is missing\n");
  CHECK(complaint_about(description("", "write", "do it")) == "line 2 must be 'field: text'\n");
  CHECK(complaint_about(description("T", "guess", "do it")) ==
        "\"kind\" must be write, find or predict, not 'guess'\n");
  for (const std::string trains : {"Do it", "do it."})
    CHECK(complaint_about(description("T", "write", trains)) ==
          "\"trains\" must complete 'You can now ...', without a capital and a full stop\n");
  const std::string begin = "title: T\nkind: find\ntrains: t\npage: docs/";
  CHECK(complaint_about(fields(begin + "none.md\n")) == "\"page\" names 'docs/none.md', which is no file\n");
  CHECK(complaint_about(fields(begin + "page.md\nheader: docs\n")) ==
        "\"header\" names 'docs', which is no file\n");

  const auto section = [&](const std::string& lines) {
    return complaint_about(description("T", "find", "do it") + lines);
  };
  const std::string sections =
      "'## Hint', '## Contract', '## Solution', '## Starter' or '## Wrong: a_name'\n";
  CHECK(section("## Hints\n") == "line 8 must be " + sections);
  CHECK(section("Words\n") == "line 8 must be a section: " + sections);
  CHECK(section("## Solution\n\n```diff\n```\n") == "line 10 must be ```cpp\n");
  CHECK(section("## Solution\n```cpp\nx\n") == "line 10 must be a line '```'\n");
  CHECK(section("## Solution\n```cpp\nx\n```\n\nWords\n") == "line 13 must be a section: " + sections);
  CHECK(section(solution("x\n") + solution("x\n")) == "line 14 is the second solution\n");
  CHECK(section("\n## Wrong: late\n> too late\n\n## Hint\n") == "line 9 late has no code\n");
  CHECK(section("## Wrong: late\n```cpp\n```\n") ==
        "line 8 late needs a line '> ...': what the check says of it\n");
  CHECK(section("## Wrong: late\n```c\n```\n") ==
        "line 9 must be ```cpp, ```diff or ```diff of the starter\n");
  CHECK(section("## Wrong: late\n```cpp\nx\n") == "line 10 must be a line '```'\n");
  CHECK(section("## Wrong: late\n```cpp\n```\n```cpp\n```\n") == "line 11 is the second code of late\n");
  const std::string starter = "## Starter\n> no\n```cpp\n```\n";
  CHECK(section(starter + starter) == "line 12 is the second starter\n");
}

TEST_CASE("An answer is whole, or changes lines of the solution or of the starter") {
  const ladder::testing::TemporaryDirectory directory;
  const fs::path path = directory.file("exercise.md");
  ladder::testing::write_bytes(path.string(),
                               "---\ntitle: T\n---\n## Starter\n> no\n```diff\n-b\n+s\n```\n"
                               "\n## Wrong: whole\nWhy.\n> one\n> two\n```cpp\nw\n\nw\n```\n"
                               "\n## Wrong: change\n> no\n```diff\n a\n-b\n\n+n\n...\n-c\n```\n"
                               "\n## Wrong: of_starter\n> no\n```diff of the starter\n-s\n+t\n```\n"
                               "\n## Wrong: gone\n> no\n```diff\n-s\n+t\n```\n");
  const ladder::ExerciseFile exercise = ladder::read_exercise_file(path);
  const std::string solution = "a\nb\n\nc\n";
  const auto lines = [&](size_t i) { return ladder::lines_of(exercise, exercise.wrong.at(i), solution); };
  CHECK(ladder::lines_of(exercise, *exercise.starter, solution) == "a\ns\n\nc\n");
  CHECK(exercise.wrong[0].says == Lines{"one", "two"});
  CHECK(lines(0) == "w\n\nw\n");
  CHECK(lines(1) == "a\n\nn\n");
  CHECK(lines(2) == "a\nt\n\nc\n");
  CHECK_THROWS_WITH(lines(3),
                    path.string() + ": gone: the change that begins with 's' must fit exactly once");

  CHECK_THROWS_WITH(ladder::patched("a\na\n", "-a\n"),
                    "the change that begins with 'a' must fit exactly once");
  CHECK_THROWS_WITH(ladder::patched("a\n", "+b\n"), "a change needs a line that is there already");
  CHECK_THROWS_WITH(ladder::patched("a\n", "a\n"), "'a' must begin with a blank, '-' or '+'");
}

TEST_CASE("The exercises of the repository are described, have hints, and say what to read") {
  const std::vector<ladder::Exercise> exercises = ladder::find_exercises(LADDER_SOURCE_DIR);
  CHECK(exercises.size() >= 16);
  for (const ladder::Exercise& exercise : exercises) {
    INFO(exercise.id);
    CHECK(exercise.hints.size() >= 2);
    if (exercise.is_stage()) continue;
    CHECK_THAT(words_before_marks(exercise.starter()),
               EndsWith(" Read " + exercise.page + " and " + exercise.header + ". "));
  }
}

TEST_CASE("ladder learn names a solution from which no starter can be made") {
  FakeWorkshop fake;
  const std::string file = "01_first/exercise/1_idea/exercise.md",
                    fields = description("The idea", "write", "do it"),
                    starter = "\n## Starter\n> not yet\n```cpp\n```\n";
  for (const auto& [text, complaint] : std::map<std::string, std::string>{
           {"", "exercise.md: has no section '## Solution'"},
           {"// <<<\n", "exercise.md: the solution: must have one line '// >>> yours'"},
           {"// >>> yours\n// <<<\n// <<<\n", "exercise.md: the solution: must have one line '// <<<'"},
           {"// <<<\n// >>> yours\n",
            "exercise.md: the solution: '// <<<' must come after '// >>> yours'"}}) {
    fake.write(file, fields + solution(text) + starter);
    CHECK(fake.learn({"01.1"}) == 2);
    CHECK_THAT(fake.error, ContainsSubstring(complaint));
  }
  fake.write(file, fields + solution("// >>> yours\n// <<<\n"));
  CHECK(fake.learn({"01.1"}) == 2);
  CHECK_THAT(fake.error, ContainsSubstring("exercise.md: has no section '## Starter'"));
}

TEST_CASE("ladder learn counts attempts until one is right, of files that compile and are no starter") {
  FakeWorkshop fake;
  const auto listed = [&] {
    fake.learn({"01", "--list"});
    const size_t row = fake.text.find("01.1 ");
    return fake.text.substr(row, fake.text.find('\n', row) - row);
  };
  fake.learn({"01.1"});
  CHECK(listed() == "01.1        write                          The idea");
  for (const std::string answer : {"wrong", "typo", "wrong again", "right", "right, too"}) {
    ladder::testing::write_bytes(fake.idea(), answer);
    fake.learn({"01.1"});
  }
  fake.learn({"01.1", "--hint"});
  CHECK(listed() == "01.1        write    done        3      1  The idea");
  CHECK_THAT(fake.text, !ContainsSubstring("02_second"));
  CHECK(fake.learn({"03", "--list"}) == 2);
  CHECK_THAT(fake.error, EndsWith("--list: '03' is no lesson\n"));
  ladder::testing::write_bytes(fake.tree.file("state.json"), R"({"done": ["01.2"], "hints_shown": {}})");
  CHECK(listed() == "01.1        write                          The idea");
}

TEST_CASE("A right answer is shown beside the solution, or above it where columns are few") {
  FakeWorkshop fake;
  const auto answer = [&](const std::string& lines) {
    ladder::testing::write_bytes(fake.idea(), "before\n// >>> yours\n" + lines + "  // <<<\nafter\n");
    CHECK(fake.learn({"01.1"}) == 0);
    return fake.text.substr(fake.text.find("'<<<'.\n\n") + 8);
  };
  const std::string bar = std::string(32, ' ') + "      | ",
                    long_line = "  right" + std::string(50, '!') + "\n";
  CHECK_THAT(answer("  right\n  or so\n"), StartsWith("Your answer" + bar + "One solution\n  right    " +
                                                      bar + "  answer\n  or so" + bar.substr(0, 37)));
  CHECK_THAT(answer(long_line),
             StartsWith("Your answer\n" + long_line + "\nOne solution\n  answer\n\nYou can"));
  const auto check = fake.workshop.check;
  fake.workshop.check = [](const ladder::Exercise&) { return Attempt::right; };
  CHECK_THAT(answer("  answer\n"), StartsWith("You can now"));
}

TEST_CASE("ladder learn --diff shows what the learner changed") {
  FakeWorkshop fake;
  CHECK(fake.learn({"01.1", "--diff"}) == 2);
  CHECK_THAT(fake.error, EndsWith("--diff: 01.1 is not begun yet\n"));
  fake.learn({"01.1"});
  CHECK(fake.learn({"01.1", "--diff"}) == 0);
  CHECK(fake.text == "01_first/exercise/1_idea/mine.cuh is as the starter.\n");
  ladder::testing::write_bytes(fake.idea(), "before\n  // >>> yours\n  mine\n  // <<<\nafter\n");
  CHECK(fake.learn({"01.1", "--diff"}) == 0);
  CHECK(fake.text ==
        "From the starter to 01_first/exercise/1_idea/mine.cuh:\n\n before\n   // >>> yours\n-  starter\n"
        "+  mine\n   // <<<\n after\n");
  CHECK(fake.checks == 1);
}

TEST_CASE("Of a compiler's log a learner sees the errors of the own file, by its short name") {
  CHECK(errors_in("In file included from ../04_x/exercise/1_y/check.cu:3:\n"
                  "/repo/04_x/exercise/1_y/mine.cuh: In function ‘void f()’:\n"
                  "/repo/04_x/exercise/1_y/mine.cuh:52:11: error: ‘tile’ was not declared in this scope\n"
                  "   52 |   int x = tile;\n"
                  "../common/device/pipeline.cuh:87:39: note: candidate: ‘Consumer’\n"
                  "../04_x/exercise/1_y/mine.cuh:5:10: fatal error: /repo/none.cuh: No such file\n"
                  "../common/device/pipeline.cuh:90:1: error: another\n") ==
        Lines{"mine.cuh:52: error: ‘tile’ was not declared in this scope",
              "mine.cuh:5: fatal error: none.cuh: No such file"});
  const std::string nvcc = "/repo/04_x/exercise/1_y/mine.cuh(12): error: identifier \"x\" is undefined\n";
  CHECK(errors_in(nvcc + nvcc) == Lines{"mine.cuh:12: error: identifier \"x\" is undefined"});
  CHECK(errors_in("/usr/bin/ld: check.cu.o: in function `f()':\n"
                  "/repo/04_x/exercise/1_y/mine.cuh:7: undefined reference to `g()'\n") ==
        Lines{"mine.cuh:7: undefined reference to `g()'"});
}

TEST_CASE("An error in a template is one of the learner's line that instantiates it") {
  CHECK(errors_in("../common/device/tile.cuh: In instantiation of ‘struct Tile<3>’:\n"
                  "/repo/04_x/exercise/1_y/mine.cuh:55:30:   required from here\n"
                  "../common/device/tile.cuh:17:31: error: static assertion failed\n"
                  "../common/device/tile.cuh:30:1: error: not because of the learner\n") ==
        Lines{"mine.cuh:55: error: static assertion failed (in common/device/tile.cuh:17)"});
  CHECK(errors_in("../common/device/tile.cuh: In instantiation of ‘struct Tile<3>’:\n"
                  "/repo/04_x/exercise/1_y/mine.cuh:55:30:   required from ‘void kernel() [with int n = 3]’\n"
                  "/repo/04_x/exercise/1_y/mine.cuh:80:9:   required from here\n"
                  "../common/device/tile.cuh:17:31: error: static assertion failed\n") ==
        Lines{"mine.cuh:55: error: static assertion failed (in common/device/tile.cuh:17)"});
  CHECK(errors_in("/repo/common/device/tile.cuh(17): error: static assertion failed\n"
                  "    static_assert(kRows % 8 == 0);\n"
                  "          detected during:\n"
                  "            instantiation of class \"Tile<n> [with n=3]\" at line 20\n"
                  "            instantiation of \"void f<n>() [with n=3]\" at line 55 of "
                  "/repo/04_x/exercise/1_y/mine.cuh\n") ==
        Lines{"mine.cuh:55: error: static assertion failed (in common/device/tile.cuh:17)"});
}

TEST_CASE("Where the learner's file has no error, those of others are shown, or else the log's end") {
  CHECK(errors_in("../common/device/tile.cuh:30:1: error: no ‘x’\nninja: build stopped: cannot go on.\n") ==
        Lines{"common/device/tile.cuh:30: error: no ‘x’"});
  CHECK(errors_in("/repo/04_x/exercise/1_y/mine.cuh:55:30:   required from here\n"
                  "../common/device/tile.cuh:17:31: warning: is unused\n"
                  "../common/device/tile.cuh:30:1: error: no ‘x’\n") ==
        Lines{"common/device/tile.cuh:30: error: no ‘x’"});
  CHECK(errors_in("c++: fatal error: no memory\n") == Lines{"c++: fatal error: no memory"});
  CHECK(errors_in("first\n\nninja: cannot go on\n") == Lines{"first", "ninja: cannot go on"});
  std::string many, errors;
  for (int i = 0; i < 20; ++i) {
    many += "line " + std::to_string(i) + "\n";
    errors += "/repo/04_x/exercise/1_y/mine.cuh:" + std::to_string(i) + ":1: error: e\n";
  }
  CHECK(errors_in(many).size() == 8);
  CHECK(errors_in(many).back() == "line 19");
  CHECK(errors_in(errors).size() == 8);
  CHECK(errors_in(errors).front() == "mine.cuh:0: error: e");
}

TEST_CASE("A check that hangs is stopped, and one line says so") {
  const ladder::testing::TemporaryDirectory directory;
  const auto passes = [&](const std::string& script, int limit_s) {
    const fs::path program = directory.file("it's a check");
    ladder::testing::write_bytes(program.string(), "#!/bin/sh\n" + script + "\n");
    fs::permissions(program, fs::perms::owner_all);
    std::ostringstream out;
    return std::pair{ladder::passes(program, out, limit_s), out.str()};
  };
  CHECK(passes("exit 0", 3600) == std::pair{true, std::string()});
  CHECK(passes("exit 1", 3600) == std::pair{false, std::string()});

  // Slept to its end it would outlast this test's time.
  const auto [passed, said] = passes("exec sleep 3600", 1);
  CHECK_FALSE(passed);
  CHECK(said == "not yet: it had not ended after 1 s and was stopped; does a loop or a wait never end?\n");
}

TEST_CASE("the stages of a capstone are taken from one marked source") {
  const std::string marked =
      "first\n#if STAGE >= 2\ntwo on\n#if STAGE == 2 || STAGE == 4\ntwo and four\n#else\nothers\n#endif\n"
      "#endif\n#if STAGE >= 1 && STAGE <= 3\nup to three\n#endif\n#ifdef NDEBUG\nkept\n#endif\n\n\nlast\n";
  CHECK(ladder::stage_text(marked, 1) == "first\nup to three\n#ifdef NDEBUG\nkept\n#endif\n\nlast\n");
  CHECK(ladder::stage_text(marked, 3) ==
        "first\ntwo on\nothers\nup to three\n#ifdef NDEBUG\nkept\n#endif\n\nlast\n");
  CHECK(ladder::stage_text(marked, 4) ==
        "first\ntwo on\ntwo and four\n#ifdef NDEBUG\nkept\n#endif\n\nlast\n");
  CHECK_THROWS_WITH(ladder::stage_text("#if STAGE != 2\n", 1),
                    "'#if STAGE != 2': a stage is compared by ==, >= or <=");
  CHECK_THROWS_WITH(ladder::stage_text("#if STAGE >= two\n", 1),
                    "'#if STAGE >= two': must compare STAGE with a number");
}

TEST_CASE("a diff shows what is new, what goes, and a little of what stays") {
  CHECK(ladder::line_diff("1\n2\n3\n4\n5\n6\n", "1\n2\nnew\n3\n4\n5\n", 1) == " 2\n+new\n 3\n...\n 5\n-6\n");
  CHECK(ladder::line_diff("same\n", "same\n").empty());
}

namespace {

/// A capstone of two stages in lesson 01 of the workshop.
struct CapstoneWorkshop : FakeWorkshop {
  CapstoneWorkshop() {
    write(folder + "/1_begin.md", stage("It is right.") + "\n## Hint\nThink.\n");
    write(folder + "/2_end.md", stage("It is right again."));
    write(folder + "/stages.cuh", "begin\n#if STAGE >= 2\nend\n#endif\n");
    workshop.climb = [this](const ladder::Exercise& exercise) {
      climbed = exercise.mine().filename();
      return true;
    };
  }

  static std::string stage(const std::string& contract, const std::string& more_fields = "") {
    return "---\ntitle: A stage\ntrains: grow\npage: docs/page.md\nheader: common/header.cuh\n" +
           more_fields + "---\n\n## Contract\n" + contract + "\n";
  }

  std::string mine(const std::string& name = "my_gemm.cuh") const { return tree.file(folder + "/" + name); }

  const std::string folder = "01_first/exercise/capstone";
  std::string climbed;
};

}  // namespace

TEST_CASE("ladder learn capstone goes from stage to stage in one file, which begins empty") {
  CapstoneWorkshop fake;
  CHECK(fake.learn({"capstone"}) == 1);
  CHECK_THAT(fake.text, ContainsSubstring("It is right.") && ContainsSubstring("not yet: the file is empty"));
  CHECK(fake.checks == 0);
  ladder::testing::write_bytes(fake.mine(), "right");
  CHECK(fake.learn({"capstone"}) == 0);
  CHECK_THAT(fake.text, ContainsSubstring("Next is capstone.2"));
  CHECK_THAT(fake.text, ContainsSubstring("capstone.1 --show shows what the reference has in its place.\n"));
  CHECK(fake.learn({"capstone.2", "--diff"}) == 0);
  CHECK_THAT(fake.text,
             ContainsSubstring("my_gemm.cuh is as 01_first/exercise/capstone/my_gemm.stage_1.cuh.\n"));
  CHECK(fake.learn({"capstone"}) == 0);
  CHECK_THAT(fake.text, ContainsSubstring("It is right again."));

  CHECK(ladder::testing::read_bytes(fake.mine("my_gemm.stage_1.cuh")) == "right");
  CHECK(fake.learn({"capstone.2"}) == 0);
  CHECK_THAT(fake.text, ContainsSubstring("ladder learn capstone --run runs your kernel beside lesson 05"));

  CHECK(fake.learn({"capstone.1", "--again"}) == 1);
  CHECK(ladder::testing::read_bytes(fake.mine("my_gemm.1.cuh")) == "right");
  CHECK(ladder::testing::read_bytes(fake.mine()).empty());
  CHECK(fake.learn({}) == 0);
  CHECK_THAT(fake.text, ContainsSubstring("capstone  0 of 2"));
}

TEST_CASE("a stage of the capstone stays done while a later one is, and what was kept of it stays") {
  CapstoneWorkshop fake;
  fake.write(fake.folder + "/5_loop.md", fake.stage("It loops."));
  const auto check = [&](const std::string& name, const std::string& kernel) {
    ladder::testing::write_bytes(fake.mine(), kernel);
    return fake.learn({name});
  };
  const auto kept = [&](const std::string& name) { return ladder::testing::read_bytes(fake.mine(name)); };

  CHECK_FALSE(fs::exists(fake.mine("my_gemm.stage_1.cuh")));
  CHECK(check("capstone.1", "right 1") == 0);
  CHECK_THAT(fake.text,
             ContainsSubstring("Your file is kept as 01_first/exercise/capstone/my_gemm.stage_1.cuh.\n"));
  CHECK(check("capstone.2", "right 2") == 0);
  CHECK(check("capstone.5", "right 5") == 0);
  CHECK_THAT(fake.text, ContainsSubstring("my_gemm.stage_5.cuh,\nfor ladder ablate capstone.\n"));

  CHECK(check("capstone.1", "grown") == 1);
  CHECK_THAT(fake.text, ContainsSubstring("capstone.1 stays done, as capstone.2 is done, too.\n"));
  CHECK_THAT(fake.text, !ContainsSubstring("hint"));
  CHECK(check("capstone.2", "right and grown") == 0);
  CHECK_THAT(fake.text,
             ContainsSubstring("my_gemm.stage_2.cuh stays as it was when the stage was done first"));
  CHECK(kept("my_gemm.stage_1.cuh") == "right 1");
  CHECK(kept("my_gemm.stage_2.cuh") == "right 2");
  CHECK(fake.learn({}) == 0);
  CHECK_THAT(fake.text, ContainsSubstring("capstone  3 of 3"));

  CHECK(check("capstone.5", "broken") == 1);  // the last stage that is done
  CHECK_THAT(fake.text, ContainsSubstring("capstone.5 was done, and no longer is"));

  CHECK(fake.learn({"capstone.1", "--again"}) == 1);
  CHECK(kept("my_gemm.stage_1.1.cuh") == "right 1");
  CHECK_FALSE(fs::exists(fake.mine("my_gemm.stage_1.cuh")));
  CHECK(check("capstone.1", "right again") == 0);
  CHECK(kept("my_gemm.stage_1.cuh") == "right again");
}

TEST_CASE("ladder learn capstone --show prints what the next stage adds, and --run climbs") {
  CapstoneWorkshop fake;
  CHECK(fake.learn({"capstone.2", "--show"}) == 0);
  CHECK(fake.text == "From the stage before to capstone.2:\n\n begin\n+end\n");
  CHECK(fake.learn({"capstone", "--run"}) == 2);
  CHECK_THAT(fake.error, ContainsSubstring("there is no kernel yet"));
  fake.learn({"capstone"});
  CHECK(fake.learn({"capstone", "--run"}) == 0);
  CHECK(fake.climbed == "my_gemm.cuh");
  CHECK(fake.learn({"01.1", "--show"}) == 2);
  CHECK_THAT(fake.error, ContainsSubstring("--show: only stages of the capstone have it, not 01.1"));
  CHECK(fake.learn({"01.1", "--run"}) == 2);
  CHECK_THAT(fake.error, ContainsSubstring("--run: only ladder learn capstone has it"));
}

TEST_CASE("a stage may name several headers to read") {
  CapstoneWorkshop fake;
  const auto with_more = [&](const std::string& headers) {
    fake.write(fake.folder + "/1_begin.md", fake.stage("It is right.", "more_headers: " + headers + "\n"));
    return fake.learn({"capstone"});
  };
  fake.write("common/other.hpp", "");
  fake.write("common/third.hpp", "");
  CHECK(with_more("common/other.hpp common/third.hpp") == 1);
  CHECK_THAT(
      fake.text,
      ContainsSubstring("\n      common/header.cuh\n      common/other.hpp\n      common/third.hpp\nEdit"));
  CHECK(with_more("common/none.hpp") == 2);
  CHECK_THAT(fake.error, ContainsSubstring("\"more_headers\" names 'common/none.hpp', which is no file"));
}

TEST_CASE("a contract has 80 words at most") {
  CapstoneWorkshop fake;
  std::string words = "word";
  for (int i = 0; i < 80; ++i) words += " word";
  fake.write(fake.folder + "/2_end.md", fake.stage(words));
  CHECK(fake.learn({"capstone"}) == 2);
  CHECK_THAT(fake.error, ContainsSubstring("the contract has 81 words; 80 are the limit"));
  fake.write(fake.folder + "/2_end.md", fake.stage(""));
  CHECK(fake.learn({"capstone"}) == 2);
  CHECK_THAT(fake.error, ContainsSubstring("2_end.md: has no section '## Contract'"));
}

TEST_CASE("the last stage of the capstone is the kernel of lesson 05") {
  /// Code without comments, blanks and the first lines, with the number of slots as a constant.
  const auto code = [](std::string text, const Lines& left_out) {
    for (const auto& [what, with] :
         std::map<std::string, std::string>{{"<kSlots>", ""},
                                            {"05_ws_double_buffer", "my_gemm"},
                                            {"template <class Smem>\n", ""},
                                            {"Smem& smem", "SharedStorage& smem"}}) {
      const std::string kept = "Pipeline<kSlots>";
      for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;)
        if (at >= 8 && text.compare(at - 8, kept.size(), kept) == 0)
          ++at;
        else
          text.replace(at, what.size(), with);
    }
    std::string result;
    for (std::string line : ladder::split(text.substr(text.find("constexpr TileShape")), '\n')) {
      if (const size_t comment = line.find("//"); comment != std::string::npos) line.resize(comment);
      line.erase(std::remove(line.begin(), line.end(), ' '), line.end());
      if (std::find(left_out.begin(), left_out.end(), line) == left_out.end()) result += line;
    }
    return result;
  };
  const fs::path lesson = fs::path(LADDER_SOURCE_DIR) / "05_ws_double_buffer";
  const auto read = [](const fs::path& file) { return ladder::testing::read_bytes(file.string()); };
  const std::string mine = ladder::stage_text(read(lesson / "exercise/capstone/stages.cuh"), 8);
  const std::string theirs = read(lesson / "gemm.cuh");
  CHECK(
      code(mine, {"constexprintkSlots=4;", "}", "inlinevoidlaunch_gemm(constGemm&p,cudaStream_tstream){"}) ==
      code(theirs, {"template<intkSlots>", "}", "voidlaunch_gemm(constGemm&p,cudaStream_tstream){"}));
}

TEST_CASE("short exercises have letters, and come first") {
  FakeWorkshop fake;
  fake.add("01_first/exercise/b_short", description("Also short", "write", "do little"));
  fake.add("01_first/exercise/a_shorter", description("Short", "write", "do less"));
  CHECK(fake.learn({"01"}) == 1);
  CHECK_THAT(fake.text, StartsWith("01.a  Short"));
  fake.solve("1.a");
  CHECK_THAT(fake.text, ContainsSubstring("Next is 01.b"));
  fake.solve("1.short");
  CHECK_THAT(fake.text, ContainsSubstring("Next is 01.1"));
}
