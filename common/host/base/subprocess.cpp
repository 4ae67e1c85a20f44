/// @file
/// Runs other programs, by posix_spawn.
#include "common/host/base/subprocess.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace ladder {
namespace {
using Clock = std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::seconds(5);  ///< for a program that was told to end
constexpr auto kPollInterval = std::chrono::milliseconds(10);

/// The file that takes the output of a program; descriptor -1 for none.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path) {
    if (path.empty()) return;
    descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
      throw std::runtime_error(fmt::format("cannot write '{}': {}", path.string(), std::strerror(errno)));
  }
  ~OutputFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// While a program has the foreground, the keys that end it do not end this one: what system() does, too.
class IgnoredKeys {
 public:
  IgnoredKeys() : interrupt_(std::signal(SIGINT, SIG_IGN)), quit_(std::signal(SIGQUIT, SIG_IGN)) {}
  ~IgnoredKeys() {
    std::signal(SIGINT, interrupt_);
    std::signal(SIGQUIT, quit_);
  }
  IgnoredKeys(const IgnoredKeys&) = delete;
  IgnoredKeys& operator=(const IgnoredKeys&) = delete;

 private:
  void (*interrupt_)(int);
  void (*quit_)(int);
};

/// What posix_spawn wants to know.
class SpawnSettings {
 public:
  SpawnSettings(const OutputFile& output, bool errors_too) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    if (output.descriptor() >= 0) {
      posix_spawn_file_actions_adddup2(&actions_, output.descriptor(), STDOUT_FILENO);
      if (errors_too) posix_spawn_file_actions_adddup2(&actions_, output.descriptor(), STDERR_FILENO);
    }
    sigset_t keys;
    sigemptyset(&keys);
    sigaddset(&keys, SIGINT);
    sigaddset(&keys, SIGQUIT);
    posix_spawnattr_setsigdefault(&attributes_, &keys);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  /// @throws std::runtime_error
  pid_t start(const std::vector<std::string>& command) const {
    if (command.empty()) throw std::invalid_argument("no program to start");
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t program = 0;
    const int error =
        posix_spawnp(&program, arguments[0], &actions_, &attributes_, arguments.data(), environ);
    if (error)
      throw std::runtime_error(fmt::format("cannot start '{}': {}", command[0], std::strerror(error)));
    return program;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// Like waitpid(), whatever signals arrive.
pid_t wait_for(pid_t program, int& status, int flags) {
  pid_t result;
  do result = waitpid(program, &status, flags);
  while (result < 0 && errno == EINTR);
  if (result < 0)
    throw std::runtime_error(fmt::format("cannot wait for a program: {}", std::strerror(errno)));
  return result;
}

/// @returns whether the program has ended before `end`
bool ends_until(Clock::time_point end, pid_t program, int& status) {
  while (wait_for(program, status, WNOHANG) == 0) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
  return true;
}

}  // namespace

SubprocessEnd run_subprocess(const std::vector<std::string>& command, const SubprocessOptions& options) {
  const OutputFile output(options.output);
  const IgnoredKeys ignored;
  const pid_t program = SpawnSettings(output, options.errors_too).start(command);
  int status = 0;
  const bool stopped = options.limit && !ends_until(Clock::now() + *options.limit, program, status);
  if (!options.limit) wait_for(program, status, 0);
  if (stopped) {
    kill(program, SIGTERM);
    if (!ends_until(Clock::now() + kGrace, program, status)) {
      kill(program, SIGKILL);
      wait_for(program, status, 0);
    }
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), stopped};
}

}  // namespace ladder
