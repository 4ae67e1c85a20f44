/// @file
/// The program `ladder check`.
#include "common/own_kernel/check.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

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

#include "common/host/base/arguments.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/subprocess.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/device/execution.hpp"
#include "common/host/program/program.hpp"
#include "common/own_kernel/build.hpp"

namespace ladder {
namespace fs = std::filesystem;
namespace {

const std::string kDefaultLimit = "60";
constexpr size_t kMostNamed = 6;  // schedules; else their number says enough

struct Request {
  BuildRequest build;
  bool explains = false;
  std::string timeline;
  std::chrono::seconds limit{0};
  Execution execution;
  std::vector<std::string> words;  // for the file's main()
};

/// What a program printed that failed: its reports before its own words.
std::string reports_first(const std::string& printed, const std::string& name) {
  const std::string sign = name + ": error: ";
  const size_t report = printed.rfind(sign, 0) == 0 ? 0 : printed.find("\n" + sign);
  if (report == printed.npos || report == 0) return printed;
  return printed.substr(report + 1) + "it had printed:\n" + printed.substr(0, report + 1);
}

bool builds(const Request& request) {
  const std::vector<std::string> errors = build_own_kernel(request.build);
  for (const std::string& error : errors) std::cout << error << "\n";
  if (!errors.empty())
    std::cout << "it does not compile; all that the compiler says is in " << build_log().string()
              << std::endl;
  return errors.empty();
}

/// The end of a sentence where the program has said what is wrong.
constexpr const char* kSaid = ": the report above says why";
/// Its beginning where main() has found it.
constexpr const char* kOwnCode = ": its exit code is ";
/// What a report begins with whose program had to be ended; main.cpp writes it.
constexpr const char* kPartly = "partly: ";

/// One run of the program.
struct Run {
  std::string schedule;
  bool is_finite = false;    ///< unwritten memory holds a large number, not NaN
  bool shows = false;        ///< what it prints, even where it succeeds
  bool only_causes = false;  ///< shows what it prints only where that names a cause
};

/// Does what the program printed name what is wrong with its kernels?
bool names_a_cause(const std::string& printed) { return printed.find(": error: ") != std::string::npos; }

/// Runs the program, and shows what it prints if it fails.
/// @param report what the program reports; begins with kPartly where its time was over
/// @returns what is wrong, the end of a sentence; empty if nothing
std::string run_once(const Request& request, const Run& run, std::string& report) {
  const fs::path folder = LADDER_OWN_FOLDER, output = folder / "output", report_file = folder / "report";
  fs::remove(report_file);
  setenv("LADDER_CHECK_FILE", request.build.files.front().filename().c_str(), 1);
  setenv("LADDER_CHECK_SCHEDULE", run.schedule.c_str(), 1);
  setenv("LADDER_CHECK_UNWRITTEN", run.is_finite ? "finite" : "", 1);
  setenv("LADDER_CHECK_REPORT", report_file.c_str(), 1);
  setenv("LADDER_CHECK_TIMELINE", run.shows ? request.timeline.c_str() : "", 1);
  setenv("LADDER_CHECK_BLOCKS", std::to_string(request.execution.blocks).c_str(), 1);
  setenv("LADDER_CHECK_THREADS", std::to_string(request.execution.os_threads).c_str(), 1);
  std::vector<std::string> command = {(fs::path(LADDER_BINARY_DIR) / "bin" / "own_kernel").string()};
  command.insert(command.end(), request.words.begin(), request.words.end());
  // The program watches its own time, and is ended here only if it cannot.
  setenv("LADDER_CHECK_LIMIT", std::to_string(request.limit.count()).c_str(), 1);
  const int terminal = dup(STDERR_FILENO);
  setenv("LADDER_CHECK_TERMINAL", std::to_string(terminal).c_str(), 1);
  const SubprocessEnd end = run_subprocess(
      command, {.output = output, .errors_too = true, .limit = request.limit + std::chrono::seconds(1)});
  close(terminal);
  report = text_of(report_file);
  const std::string printed = text_of(output);
  const bool has_failed = end.exit_code || end.stopped_at_limit;
  if (run.only_causes ? has_failed && names_a_cause(printed) : run.shows || has_failed)
    std::cout << (has_failed ? reports_first(printed, request.build.files.front().filename()) : printed)
              << std::flush;
  if (report.rfind(kPartly, 0) == 0) return "";
  if (end.stopped_at_limit)
    return ": it had not ended after " + std::to_string(request.limit.count()) +
           " s; --limit gives more time";
  if (end.exit_code > 128) {
    const int signal = end.exit_code - 128;
    const bool is_silent = signal == SIGSEGV && printed.find(" error: ") == std::string::npos;
    return std::string(": ") + strsignal(signal) +
           (is_silent ? "; does main() want arguments, after --? Have local variables of a kernel more than "
                        "100 KB, or does it call itself?"
                      : "");
  }
  if (end.exit_code && report.empty() && names_a_cause(printed)) return kSaid;
  if (end.exit_code) return kOwnCode + std::to_string(end.exit_code);
  return "";
}

/// Does the program's output say that the CPU device does not have what it needs?
bool cannot_run() {
  const std::string printed = text_of(fs::path(LADDER_OWN_FOLDER) / "output");
  for (const char* const words :
       {"is not one that the CPU device runs", "on the CPU device only the host launches"})
    if (printed.find(words) != std::string::npos) return true;
  return false;
}

/// There is one program own_kernel: a second check waits until the first has ended, and with it the lock.
void wait_for_other_checks() {
  constexpr const char* kLock = LADDER_OWN_FOLDER "/lock";
  const int descriptor = open(kLock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0 || flock(descriptor, LOCK_EX) != 0)
    throw BadInput(std::string(kLock) + ": cannot be locked");
}

int explain(const Request& request) {
  wait_for_other_checks();
  std::vector<std::string> errors;
  const std::string text = explain_build(request.build, errors);
  for (const std::string& error : errors) std::cout << error << "\n";
  std::cout << text << std::flush;
  return errors.empty() ? kExitOk : kExitBadInput;
}

/// Where main() has found results wrong, and nothing has said why: looks for a cause on the other schedules.
void look_for_a_cause(const Request& request, const std::string& failed) {
  for (const std::string& schedule : request.execution.schedules) {
    if (schedule == failed) continue;
    std::string report;
    run_once(request, {.schedule = schedule, .only_causes = true}, report);
    if (names_a_cause(text_of(fs::path(LADDER_OWN_FOLDER) / "output"))) return;
  }
}

/// Says what differs where unwritten memory holds NaN; empty if that makes no difference.
std::string blame_on_unwritten(const Request& request, const std::string& schedule) {
  std::string report;
  if (!run_once(request, {.schedule = schedule, .only_causes = true}, report).empty()) return "";
  return ". A result depends on memory that nothing has written: where that holds NaN main() finds nothing "
         "wrong, where it holds 1.3e+36 (0x7b in each byte) it does. fabs(a - b) > eps is false for NaN: "
         "write !(fabs(a - b) <= eps)";
}

int check(const Request& request) {
  wait_for_other_checks();
  if (!builds(request)) return kExitBadInput;
  std::string first_report;
  bool is_partial = false;
  bool is_finite = false;
  for (const std::string& schedule : request.execution.schedules) {
    std::string report;
    const bool is_first = schedule == request.execution.schedules.front();
    std::string wrong = run_once(request, {schedule, is_finite, is_first}, report);
    if (!wrong.empty()) {
      if (cannot_run()) {
        std::cout << "the CPU device cannot run it: the report above says what is missing\n";
        return kExitBadInput;
      }
      if (wrong.rfind(kOwnCode, 0) == 0) {
        const bool has_cause = names_a_cause(text_of(fs::path(LADDER_OWN_FOLDER) / "output"));
        const std::string blame = is_finite ? blame_on_unwritten(request, schedule) : "";
        wrong += blame;
        if (!has_cause && blame.empty()) look_for_a_cause(request, schedule);
      }
      std::cout << wrapped("not right on schedule " + schedule + wrong, kTerminalColumns, "\n  ") << "\n";
      if (!request.timeline.empty() && is_first && report.empty())
        std::cout << "no timeline: main() did not end\n";
      return kExitFailure;
    }
    is_finite = !is_finite;
    if (report.empty() || report.rfind("0\n", 0) == 0) {
      std::cout << "it launches no kernel, so nothing was checked\n";
      return kExitBadInput;
    }
    if (report.rfind(kPartly, 0) == 0) {
      is_partial = true;
      std::cout << wrapped("partly, on " + schedule + ": " + report.substr(std::strlen(kPartly)),
                           kTerminalColumns, "\n  ")
                << "\n";
    }
    if (is_first) first_report = report;
  }
  if (is_partial) {
    std::cout << wrapped(
                     "not checked to the end: give smaller sizes, by -D NAME=VALUE or by arguments after --, "
                     "or more time, by --limit SECONDS",
                     kTerminalColumns, "\n  ")
              << "\n";
    return kExitBadInput;
  }
  const auto& schedules = request.execution.schedules;
  const size_t line = first_report.find('\n');
  const std::string launches = first_report.substr(0, line);
  const std::string right = "right: " + launches + (launches == "1" ? " launch" : " launches") + " on " +
                            (schedules.size() > kMostNamed ? std::to_string(schedules.size()) + " schedules"
                                                           : join(schedules, ", ")) +
                            "; checked: its own results, races, waits, ends of memory, order of streams";
  for (const std::string& said : split(first_report.substr(line + 1) + right, '\n'))
    std::cout << wrapped(said, kTerminalColumns, "\n  ") << "\n";
  return kExitOk;
}

bool is_source(const std::string& word) {
  static const std::set<std::string> kEndings = {".cu", ".cpp", ".cc", ".cxx", ".c", ".cuh"};
  return kEndings.count(fs::path(word).extension()) != 0;
}

/// Is it an option of nvcc's that means nothing here? @param takes_next its value is the next word
bool is_of_nvcc(const std::string& word, bool& takes_next) {
  static const std::set<std::string> kWithValue = {"-arch", "-gencode",   "-std",    "-o",
                                                   "-code", "-Xcompiler", "-Xptxas", "-Xlinker"};
  static const std::set<std::string> kAlone = {"-g",
                                               "-G",
                                               "-w",
                                               "-c",
                                               "-dc",
                                               "-lineinfo",
                                               "-use_fast_math",
                                               "--use_fast_math",
                                               "-extended-lambda",
                                               "--extended-lambda"};
  takes_next = kWithValue.count(word) != 0;
  if (takes_next || kAlone.count(word)) return true;
  for (const char* const begin :
       {"-O", "-l", "-L", "-rdc=", "-arch=", "-code=", "-gencode=", "-std=", "--std=", "-m64", "-W",
        "--expt-", "-expt-", "--gpu-", "--generate-", "--ptxas-", "-Xcompiler=", "-Xptxas="})
    if (word.rfind(begin, 0) == 0) return true;
  return false;
}

/// The command line, by what its words are.
struct Words {
  std::vector<const char*> options;  ///< for Arguments, with the program's name and the first file
  std::vector<std::string> files;    ///< all sources; Arguments knows no place that takes several words
  std::vector<std::string> of_main;  ///< what comes after --
  std::string passed_over;           ///< nvcc's options, a space before each
};

/// @throws BadInput for a word behind the files that is neither a source nor an option
Words sorted(int argc, char** argv) {
  Words words;
  int own = 1;
  while (own < argc && std::strcmp(argv[own], "--") != 0) ++own;
  for (int i = own + 1; i < argc; ++i) words.of_main.emplace_back(argv[i]);
  std::vector<std::string>& files = words.files;
  for (int i = 0; i < own; ++i) {
    bool takes_next = false;
    if (i > 0 && is_of_nvcc(argv[i], takes_next)) {
      words.passed_over += std::string(" ") + argv[i];
      if (takes_next && i + 1 < own) words.passed_over += std::string(" ") + argv[++i];
      continue;
    }
    if (!files.empty() && argv[i][0] != '-' && argv[i - 1][0] != '-' && !is_source(argv[i]))
      throw BadInput("'" + std::string(argv[i]) +
                     "': arguments of main() come after --, as in: ladder check " + files.front() + " -- " +
                     argv[i]);
    const bool is_file = i > 0 && argv[i - 1][0] != '-' && is_source(argv[i]) && !files.empty();
    if (is_file || (i > 0 && files.empty() && is_source(argv[i]))) files.emplace_back(argv[i]);
    if (!is_file) words.options.push_back(argv[i]);
  }
  return words;
}

/// The absolute paths of what is to be built. @throws BadInput where there is no such file or folder
void name_sources(BuildRequest& build, const std::vector<std::string>& files,
                  const std::vector<std::string>& include_folders) {
  for (const std::string& name : files) {
    if (fs::is_directory(name)) throw BadInput("'" + name + "' is a folder: name the .cu files in it");
    if (!fs::is_regular_file(name)) throw BadInput("'" + name + "': no such file");
    build.files.push_back(fs::absolute(name).lexically_normal());
  }
  for (const std::string& folder : include_folders) {
    if (!fs::is_directory(folder)) throw BadInput("-I '" + folder + "': no such folder");
    build.include_folders.push_back(fs::absolute(folder).lexically_normal().string());
  }
}

/// @returns nothing where all has been said
std::optional<Request> parsed(int argc, char** argv) {
  Request request;
  std::string file, limit = kDefaultLimit;
  std::vector<std::string> include_folders;
  bool example = false;
  ExecutionOptions execution;
  Arguments arguments(
      "Runs CUDA files of yours on the CPU device, which names races and other mistakes. Exit codes: 0 "
      "right,\n"
      "1 a mistake, 2 it cannot be compiled or run",
      "ladder check");
  arguments.add_option("file", file, "FILE...",
                       "The program's sources. Its main() launches, and returns 0 if the results are right");
  arguments.add_option("-I", include_folders, "DIR", "A folder of headers; can be given several times");
  arguments.add_option("-D", request.build.definitions, "NAME[=VALUE]",
                       "A macro, for example a smaller size; can be given several times");
  arguments.add_flag("--explain", request.explains, "Print the files as they are compiled, and run nothing");
  arguments.add_flag("--example", example, "Print a file to begin from");
  arguments.add_option("--timeline", request.timeline, "PATH",
                       "What the first block of the last launch did, for Perfetto");
  arguments.add_option("--limit", limit, "SECONDS", "Stop a run then (default: " + kDefaultLimit + ")");
  execution.add_to(arguments, /*of_lessons=*/false);
  arguments.set_footer(
      "What comes after -- is for the files' main(). Races are always checked; without --schedule, on two\n"
      "schedules that differ in everything.");
  Words words = sorted(argc, argv);
  if (!arguments.parse(static_cast<int>(words.options.size()), words.options.data())) return std::nullopt;
  if (!words.passed_over.empty())
    std::cerr << "ladder check: these are nvcc's, and passed over:" << words.passed_over << std::endl;
  if (example) {
    std::cout << text_of(LADDER_EXAMPLE);
    return std::nullopt;
  }
  if (file.empty())
    throw std::invalid_argument("name a file; ladder check --example > my_kernel.cu makes one");
  if (words.files.empty() || words.files.front() != file) words.files.insert(words.files.begin(), file);
  name_sources(request.build, words.files, include_folders);
  request.words = std::move(words.of_main);
  if (!on_cpu_device())
    throw BadInput(
        "this build is for the GPU: cmake --preset cpu && cmake --build build-cpu --target ladder, then "
        "build-cpu/bin/ladder check " +
        file);
  if (!request.timeline.empty()) check_writable("--timeline", request.timeline);
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
    if (!request) return kExitOk;
    return request->explains ? explain(*request) : check(*request);
  });
}

}  // namespace ladder
