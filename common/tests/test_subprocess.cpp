/// @file
/// Tests of running other programs.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <filesystem>
#include <stdexcept>

#include "common/host/base/subprocess.hpp"
#include "common/testing/temporary_directory.hpp"

using Catch::Matchers::Message, Catch::Matchers::MessageMatches, Catch::Matchers::StartsWith;
using ladder::run_subprocess;
using ladder::testing::read_bytes, ladder::testing::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

/// A shell script, in a file whose name a shell would take apart.
std::string script(const TemporaryDirectory& directory, const std::string& lines) {
  const fs::path path = directory.file("it's a \"$program\"");
  ladder::testing::write_bytes(path.string(), "#!/bin/sh\n" + lines + "\n");
  fs::permissions(path, fs::perms::owner_all);
  return path.string();
}

}  // namespace

TEST_CASE("A program's exit code comes back, and 128 and its number for a signal") {
  const TemporaryDirectory directory;
  CHECK(run_subprocess({script(directory, "exit 0")}).exit_code == 0);
  CHECK(run_subprocess({script(directory, "exit 3")}).exit_code == 3);
  CHECK(run_subprocess({script(directory, "kill -9 $$")}).exit_code == 128 + SIGKILL);
  CHECK_FALSE(run_subprocess({"true"}).stopped_at_limit);
}

TEST_CASE("Words reach the program as they are") {
  const TemporaryDirectory directory;
  const std::string output = directory.file("it's a log");
  const std::string program = script(directory, "for word; do echo \"<$word>\"; done; echo no >&2");
  CHECK(run_subprocess({program, "it's", "two words", "", "$HOME *"}, {.output = output}).exit_code == 0);
  CHECK(read_bytes(output) == "<it's>\n<two words>\n<>\n<$HOME *>\n");
}

TEST_CASE("What a program prints on stderr goes to its log as well") {
  const TemporaryDirectory directory;
  const std::string log = directory.file("it's a log");
  ladder::testing::write_bytes(log, "what was there before, which is longer");
  const std::string program = script(directory, "echo one; echo two >&2; exit 3");
  CHECK(run_subprocess({program}, {.output = log, .errors_too = true}).exit_code == 3);
  CHECK(read_bytes(log) == "one\ntwo\n");
}

TEST_CASE("A program that does not exist, and a file that cannot be written, are named") {
  const TemporaryDirectory directory;
  CHECK_THROWS_MATCHES(run_subprocess({"/nonexistent/it's"}), std::runtime_error,
                       Message("cannot start '/nonexistent/it's': No such file or directory"));
  CHECK_THROWS_MATCHES(run_subprocess({"no-program-is-called-so"}), std::runtime_error,
                       MessageMatches(StartsWith("cannot start 'no-program-is-called-so': ")));
  CHECK_THROWS_MATCHES(run_subprocess({"true"}, {.output = "/nonexistent/log"}), std::runtime_error,
                       Message("cannot write '/nonexistent/log': No such file or directory"));
  CHECK_THROWS_AS(run_subprocess({}), std::invalid_argument);
}

TEST_CASE("A program is told to end at its limit") {
  // Slept to its end it would outlast this test's time.
  const ladder::SubprocessEnd end = run_subprocess({"sleep", "3600"}, {.limit = std::chrono::seconds(1)});
  CHECK(end.stopped_at_limit);
  CHECK(end.exit_code == 128 + SIGTERM);
  CHECK_FALSE(run_subprocess({"true"}, {.limit = std::chrono::hours(1)}).stopped_at_limit);
}

TEST_CASE("Ctrl-C ends the program that runs in the foreground, and not this one") {
  const TemporaryDirectory directory;
  const auto handler = [](int) {};
  const auto before = std::signal(SIGINT, handler);
  // The shell's parent is this program; a key would reach both.
  const ladder::SubprocessEnd end =
      run_subprocess({script(directory, "kill -INT $PPID; kill -INT $$; sleep 30")});
  CHECK(end.exit_code == 128 + SIGINT);
  CHECK(std::signal(SIGINT, before) == static_cast<void (*)(int)>(handler));
}
