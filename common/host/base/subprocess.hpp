/// @file
/// Runs other programs, without a shell: a path may hold blanks and quotes.
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ladder {

struct SubprocessOptions {
  std::filesystem::path output =
      {};                   ///< takes what the program prints; without it, this program's own stdout
  bool errors_too = false;  ///< what it prints on stderr goes to `output` as well
  /// After this time the program is told to end. The programs that it has started are not: they may go on,
  /// and write to `output`.
  std::optional<std::chrono::seconds> limit = {};
};

struct SubprocessEnd {
  int exit_code;          ///< as a shell has it: 128 and the signal's number where one ended it
  bool stopped_at_limit;  ///< its limit had passed
};

/// Runs `command`, a program's path (or its name, looked up in PATH) and its arguments, and waits for its
/// end. It stays in the foreground: Ctrl-C ends it, and this program goes on.
/// @throws std::runtime_error if the program cannot be started, or `output` not be written
/// @throws std::invalid_argument if `command` is empty
SubprocessEnd run_subprocess(const std::vector<std::string>& command, const SubprocessOptions& options = {});

}  // namespace ladder
