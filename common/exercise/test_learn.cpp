/// @file
/// `ladder learn` on exercises made up for the test, whose checks only look at the learner's file.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <sstream>

#include "common/exercise/learn.hpp"
#include "common/testing/temporary_directory.hpp"

using Catch::Matchers::ContainsSubstring, Catch::Matchers::EndsWith, Catch::Matchers::StartsWith;
namespace fs = std::filesystem;

namespace {

/// A source tree with three exercises. A file is right when it contains the word "right".
struct FakeWorkshop {
  FakeWorkshop() {
    add("02_second/exercise/1_only", "The only one");
    add("01_first/exercise/2_beyond", "Beyond the idea");
    add("01_first/exercise/1_idea", "The idea");
    workshop = {tree.file(""), tree.file("state.json"), [this](const ladder::Exercise& exercise) {
                  ++checks;
                  if (during_check) during_check(exercise);
                  return ladder::testing::read_bytes(exercise.mine()).find("right") != std::string::npos;
                }};
  }

  void add(const std::string& folder, const std::string& title) const {
    fs::create_directories(tree.file(folder));
    ladder::testing::write_bytes(tree.file(folder + "/exercise.json"), "{\"title\": \"" + title + "\"}");
    ladder::testing::write_bytes(tree.file(folder + "/starter.cuh"), "starter");
    ladder::testing::write_bytes(tree.file(folder + "/hints.md"),
                                 "# Hints\n\n## 1\n\nThink.\n\n## 2\n\nThink more.\n");
  }

  /// Runs `ladder learn` with these words; what it printed is in `text`.
  int learn(std::vector<std::string> words) {
    words.insert(words.begin(), "learn");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    std::ostringstream out;
    const int code = ladder::run_learn(workshop, out, static_cast<int>(argv.size()), argv.data());
    text = out.str();
    return code;
  }

  std::string idea() const { return tree.file("01_first/exercise/1_idea/mine.cuh"); }

  ladder::testing::TemporaryDirectory tree;
  ladder::Workshop workshop;
  std::function<void(const ladder::Exercise&)> during_check;
  int checks = 0;
  std::string text;
};

}  // namespace

TEST_CASE("ladder learn lists lessons and exercises in order") {
  FakeWorkshop fake;
  CHECK(fake.learn({}) == 0);
  CHECK(fake.text ==
        "01_first\n  01.1        The idea\n  01.2        Beyond the idea\n"
        "02_second\n  02.1        The only one\n\nNext is 01.1: ladder learn next\n");
  CHECK(fake.checks == 0);
}

TEST_CASE("ladder learn next begins with the starter, and goes on when the file is right") {
  FakeWorkshop fake;
  CHECK(fake.learn({"next"}) == 1);
  CHECK_THAT(fake.text,
             ContainsSubstring("Lesson: 01_first/README.md\nEdit 01_first/exercise/1_idea/mine.cuh"));
  CHECK_THAT(fake.text, EndsWith("ladder learn 01.1 --hint gives a hint.\n"));
  CHECK(ladder::testing::read_bytes(fake.idea()) == "starter");

  ladder::testing::write_bytes(fake.idea(), "right");
  CHECK(fake.learn({"next"}) == 0);
  CHECK(fake.text == "01.1 The idea\nNext is 01.2: ladder learn next\n");
  CHECK(ladder::testing::read_bytes(fake.idea()) == "right");
  CHECK(fake.learn({}) == 0);
  CHECK_THAT(fake.text, ContainsSubstring("01.1  done  The idea"));
  CHECK_THAT(fake.text, ContainsSubstring("Next is 01.2"));
}

TEST_CASE("ladder learn next says so when all is done") {
  FakeWorkshop fake;
  fake.during_check = [](const ladder::Exercise& exercise) {
    ladder::testing::write_bytes(exercise.mine(), "right");
  };
  for (int i = 0; i < 3; ++i) CHECK(fake.learn({"next"}) == 0);
  CHECK_THAT(fake.text, ContainsSubstring("All exercises are done."));
  CHECK(fake.learn({"next"}) == 0);
  CHECK_THAT(fake.text, StartsWith("All exercises are done."));
  CHECK(fake.checks == 3);
}

TEST_CASE("ladder learn --hint gives one hint after another, and checks nothing") {
  FakeWorkshop fake;
  CHECK(fake.learn({"02.1", "--hint"}) == 0);
  CHECK(fake.text == "Hint 1 of 2\nThink.\n\n\n");
  CHECK(fake.learn({"02.1", "--hint"}) == 0);
  CHECK_THAT(fake.text, ContainsSubstring("Hint 2 of 2\nThink more."));
  CHECK(fake.learn({"02.1", "--hint"}) == 0);
  CHECK_THAT(fake.text, ContainsSubstring("Hint 2 of 2"));
  CHECK(fake.checks == 0);
}

TEST_CASE("ladder learn --watch checks again when the file changes, until it is right") {
  FakeWorkshop fake;
  const auto check = fake.workshop.check;
  fake.workshop.check = [&](const ladder::Exercise& exercise) {
    const bool right = check(exercise);
    if (fake.checks == 1) {  // saved while the first check runs, after that has read the file
      const auto started = fs::last_write_time(exercise.mine());
      ladder::testing::write_bytes(exercise.mine(), "right");
      fs::last_write_time(exercise.mine(), started + std::chrono::seconds(1));
    }
    return right;
  };
  CHECK(fake.learn({"01.1", "--watch"}) == 0);
  CHECK(fake.checks == 2);
}

TEST_CASE("ladder learn --again begins with the starter") {
  FakeWorkshop fake;
  fake.learn({"01.1"});
  ladder::testing::write_bytes(fake.idea(), "a muddle");
  CHECK(fake.learn({"01.1", "--again"}) == 1);
  CHECK(ladder::testing::read_bytes(fake.idea()) == "starter");
}

TEST_CASE("ladder learn refuses what it does not know") {
  FakeWorkshop fake;
  CHECK(fake.learn({"09.9"}) == 2);
  CHECK(fake.learn({"--hint"}) == 2);
  CHECK(fake.learn({"01.1", "--no-such-option"}) == 2);
  ladder::testing::write_bytes(fake.tree.file("state.json"), "not JSON");
  CHECK(fake.learn({}) == 2);
  CHECK(fake.checks == 0);
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
  CHECK(passes("exit 0", 30) == std::pair{true, std::string()});
  CHECK(passes("exit 1", 30) == std::pair{false, std::string()});

  const auto begin = std::chrono::steady_clock::now();
  const auto [passed, said] = passes("exec sleep 30", 1);
  CHECK_FALSE(passed);
  CHECK(said == "not yet: it had not ended after 1 s and was stopped; does a thread wait for ever?\n");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}
