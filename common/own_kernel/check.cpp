/// @file
/// The program `ladder check`.
#include "common/own_kernel/check.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/exercise/compile_errors.hpp"
#include "common/host/base/arguments.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/subprocess.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/device/execution.hpp"
#include "common/host/program/program.hpp"

namespace ladder {
namespace fs = std::filesystem;
namespace {

const std::string kDefaultLimit = "60";
constexpr size_t kMostNamed = 6;  // schedules; else their number says enough

/// What to say instead of the compiler's words, where these or the line that they name hold a sign.
const std::vector<std::pair<std::string, std::string>> kAdvice = {
    {"<<<",
     "kernel<<<...>>>(...) is written ladder::launch(kernel, {.name = \"mine\", .grid = 1, .block = 128}, "
     "...)"},
    {"poisoned", "inline PTX runs on a GPU alone: call the functions of common/ptx"},
    {": No such file", "the CPU device has no such header: docs/your_own_kernel.md says what it has"},
    {"reference to `main'",
     "there is no main(): write one that launches, and returns 0 if the results are right"},
};

struct Request {
  fs::path file;
  std::string timeline;
  std::chrono::seconds limit{0};
  Execution execution;
  std::vector<std::string> words;  // for the file's main()
};

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The source of the program own_kernel, which is written only where it changes: then it is compiled.
void write_source(const fs::path& file) {
  // assert() is compiled in any build; the shadow of CUDA itself has assembler.
  const std::string source =
      "#undef NDEBUG\n#include <cuda_runtime.h>\n#pragma GCC poison asm __asm__\n#include \"" +
      file.string() + "\"\n";
  if (text_of(LADDER_OWN_SOURCE) != source) std::ofstream(LADDER_OWN_SOURCE) << source;
}

/// The errors, of which each line of the file has one, in words that say what to do where there are any.
std::vector<std::string> explained(const std::vector<std::string>& errors, const fs::path& file) {
  const std::vector<std::string> lines = split(text_of(file), '\n');
  const std::string name = file.filename().string();
  std::set<std::string> seen;
  std::vector<std::string> result;
  for (std::string error : errors) {
    std::string line, begin = name + ":";
    if (error.rfind(begin, 0) == 0) {
      const size_t number = std::strtoul(error.c_str() + begin.size(), nullptr, 10);
      begin += std::to_string(number) + ":";
      if (number >= 1 && number <= lines.size()) line = lines[number - 1];
    }
    for (const auto& [sign, advice] : kAdvice)
      if (error.find(sign) != std::string::npos || line.find(sign) != std::string::npos) {
        error = begin + " " + advice;
        break;
      }
    const bool is_echo = error.rfind("collect2: ", 0) == 0 && !result.empty();
    if (!is_echo && seen.insert(line.empty() ? error : begin).second) result.push_back(error);
  }
  return result;
}

bool builds(const Request& request) {
  const fs::path log = fs::path(LADDER_BINARY_DIR) / "check.log";
  write_source(request.file);
  const auto errors = errors_of_build("own_kernel", log, request.file.parent_path(), request.file);
  if (!errors) return true;
  for (const std::string& error : explained(*errors, request.file)) std::cout << error << "\n";
  std::cout << "not right: it does not compile; all that the compiler says is in " << log.string()
            << std::endl;
  return false;
}

/// Runs the program on one schedule, and shows what it prints if it fails, or if `shows`.
/// @returns what is wrong, the end of a sentence; empty if nothing
std::string run_once(const Request& request, const std::string& schedule, bool shows, std::string& report) {
  const fs::path folder = fs::path(LADDER_OWN_SOURCE).parent_path(), output = folder / "output",
                 report_file = folder / "report";
  fs::remove(report_file);
  setenv("LADDER_CHECK_FILE", request.file.filename().c_str(), 1);
  setenv("LADDER_CHECK_SCHEDULE", schedule.c_str(), 1);
  setenv("LADDER_CHECK_REPORT", report_file.c_str(), 1);
  setenv("LADDER_CHECK_TIMELINE", shows ? request.timeline.c_str() : "", 1);
  setenv("LADDER_CHECK_BLOCKS", std::to_string(request.execution.blocks).c_str(), 1);
  setenv("LADDER_CHECK_THREADS", std::to_string(request.execution.os_threads).c_str(), 1);
  std::vector<std::string> command = {(fs::path(LADDER_BINARY_DIR) / "bin" / "own_kernel").string()};
  command.insert(command.end(), request.words.begin(), request.words.end());
  const SubprocessEnd end =
      run_subprocess(command, {.output = output, .errors_too = true, .limit = request.limit});
  report = text_of(report_file);
  const std::string printed = text_of(output);
  if (shows || end.exit_code || end.stopped_at_limit) std::cout << printed << std::flush;
  if (end.stopped_at_limit)
    return ": it had not ended after " + std::to_string(request.limit.count()) +
           " s; a loop that only reads memory is not seen to wait, and --limit gives more time";
  if (end.exit_code > 128) {
    const int signal = end.exit_code - 128;
    const bool is_silent = signal == SIGSEGV && printed.find(" error: ") == std::string::npos;
    return std::string(": ") + strsignal(signal) +
           (is_silent ? "; have local variables of a kernel more than 100 KB, or does it call itself?" : "");
  }
  if (end.exit_code && report.empty()) return ", as was said";
  if (end.exit_code) return ": its exit code is " + std::to_string(end.exit_code);
  if (report.empty() || report.rfind("0\n", 0) == 0) return ": it launches no kernel, so nothing was checked";
  return "";
}

/// There is one program own_kernel: a second check waits until the first has ended, and with it the lock.
void wait_for_other_checks() {
  constexpr const char* kLock = LADDER_OWN_SOURCE ".lock";
  const int descriptor = open(kLock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0 || flock(descriptor, LOCK_EX) != 0)
    throw BadInput(std::string(kLock) + ": cannot be locked");
}

int check(const Request& request) {
  wait_for_other_checks();
  if (!builds(request)) return kExitFailure;
  std::string first_report;
  for (const std::string& schedule : request.execution.schedules) {
    std::string report;
    const bool is_first = schedule == request.execution.schedules.front();
    const std::string wrong = run_once(request, schedule, is_first, report);
    if (!wrong.empty()) {
      std::cout << "not right on schedule " << schedule << wrong << "\n";
      return kExitFailure;
    }
    if (is_first) first_report = report;
  }
  const auto& schedules = request.execution.schedules;
  const size_t line = first_report.find('\n');
  const std::string launches = first_report.substr(0, line);
  const std::string right = "right: " + launches + (launches == "1" ? " launch" : " launches") + " on " +
                            (schedules.size() > kMostNamed ? std::to_string(schedules.size()) + " schedules"
                                                           : join(schedules, ", ")) +
                            "; checked: its own results, races, waits, ends of memory, order of streams";
  std::cout << wrapped(first_report.substr(line + 1), kTerminalColumns, "\n  ")
            << wrapped(right, kTerminalColumns, "\n  ") << "\n";
  return kExitOk;
}

/// @returns nothing where all has been said
std::optional<Request> parsed(int argc, char** argv) {
  Request request;
  std::string file, limit = kDefaultLimit;
  bool example = false;
  ExecutionOptions execution;
  Arguments arguments(
      "Runs a file with kernels of yours on the CPU device, which names races and other mistakes",
      "ladder check");
  arguments.add_option("file", file, "FILE", "Its main() launches, and returns 0 if the results are right");
  arguments.add_flag("--example", example, "Print a file to begin from");
  arguments.add_option("--timeline", request.timeline, "PATH",
                       "What the first block of the last launch did, for Perfetto");
  arguments.add_option("--limit", limit, "SECONDS", "Stop a run then (default: " + kDefaultLimit + ")");
  execution.add_to(arguments);
  arguments.set_footer(
      "What comes after -- is for the file's main(). Races are always checked; without --schedule, on two\n"
      "schedules that differ in everything.");
  int own = 1;
  while (own < argc && std::strcmp(argv[own], "--") != 0) ++own;
  for (int i = own + 1; i < argc; ++i) request.words.emplace_back(argv[i]);
  if (!arguments.parse(own, argv)) return std::nullopt;
  if (example) {
    std::cout << text_of(LADDER_EXAMPLE);
    return std::nullopt;
  }
  if (file.empty())
    throw std::invalid_argument("name a file; ladder check --example > my_kernel.cu makes one");
  if (!fs::is_regular_file(file)) throw BadInput("'" + file + "': no such file");
  if (!on_cpu_device())
    throw BadInput(
        "this build is for the GPU: cmake --preset cpu && cmake --build build-cpu --target ladder, then "
        "build-cpu/bin/ladder check " +
        file);
  if (!request.timeline.empty()) check_writable("--timeline", request.timeline);
  request.file = fs::absolute(file).lexically_normal();
  request.limit = std::chrono::seconds(parse_number("--limit", limit, 1, 3600));
  request.execution = execution.parsed();
  if (!request.execution.chosen || request.execution.schedules.front().empty())
    request.execution.schedules = thorough_execution()->schedules;
  return request;
}

}  // namespace

int run_check(int argc, char** argv) {
  return run_program("ladder check", [&] {
    const std::optional<Request> request = parsed(argc, argv);
    return request ? check(*request) : kExitOk;
  });
}

}  // namespace ladder
