/// @file
/// What runs around the main() of the reader's file (linked with --wrap): chooses the schedule that
/// `ladder check` names in the environment, makes one message of what is thrown, and reports what was
/// launched.
#include <fmt/core.h>
#include <algorithm>
#include <cerrno>  // program_invocation_short_name
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/kernel/from_source/shared_variables.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/streams/kernel_writes.hpp"
#include "common/cpu_device/streams/stream_engine.hpp"
#include "common/cuda/unwritten_reads.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/device/execution.hpp"
#include "common/host/program/program.hpp"
#include "common/host/timeline/recording.hpp"

extern "C" int __real_main(int argc, char** argv);
extern "C" [[noreturn]] void __real_exit(int code);
extern "C" [[noreturn]] void __real___assert_fail(const char*, const char*, unsigned, const char*);

namespace {

/// What a report begins with whose program was ended; check.cpp knows it, too.
constexpr const char* kPartly = "partly: ";

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

void write_report(std::ostream& out) {
  size_t launches = 0;
  std::string kernel;
  for (const cpu_device::StreamSpan& span : cpu_device::take_stream_trace())  // runs what is still queued
    if (span.kind == "kernel") ++launches, kernel = span.name;
  const cpu_device::Counters& did = cpu_device::last_launch();
  out << launches << "\n";
  if (did.blocks == 0) return;  // another thread of the host has launched
  out << "last launch, '" << kernel << "': " << did.blocks << " blocks, " << did.threads
      << " threads; global memory " << did.global_read_sectors << " sectors read, "
      << did.global_write_sectors << " written; shared memory " << did.shared_wavefronts << " wavefronts, "
      << did.bank_conflicts << " for conflicts; " << did.block_barriers << " block barriers, "
      << did.barrier_waits << " waits, " << did.async_copies << " asynchronous copies\n";
  if (const std::string partly = cpu_device::describe_partly_written(/*only_downloaded=*/true);
      !partly.empty())
    out << "remark: main() copies to the host what nobody has written: " << partly;
}

/// Says on the terminal how far the program is, if it takes long; and ends it at the limit, where what it has
/// done so far is a part of a verdict. A kernel with a thread that runs on and on, for more than half of that
/// time, is left to `ladder check`.
void watch(int terminal, double limit, const std::string& report) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  double next_line = 2, last_turn = 0;
  uint64_t turns = 0;
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const cpu_device::LaunchProgress now = cpu_device::launch_progress();
    if (!now.runs || std::exchange(turns, now.turns) != now.turns) last_turn = seconds;
    // Early enough that the line is found before `ladder check` ends the program.
    if (seconds > limit / 2 && seconds - last_turn > limit / 4) cpu_device::name_long_turns();
    if (seconds < std::min(next_line, limit)) continue;
    const std::string blocks = now.runs ? fmt::format("{} of {} blocks of kernel '{}', launch {},",
                                                      now.blocks_done, now.blocks, now.name, now.launches)
                                        : fmt::format("{} {}, main() runs on the host,", now.launches,
                                                      now.launches == 1 ? "launch" : "launches");
    if (seconds >= next_line) {
      if (seconds < limit) dprintf(terminal, "%s after %.0f s\n", blocks.c_str(), seconds);
      next_line = next_line < 10 ? 10 : next_line + 20;
    }
    if (seconds < limit || seconds - last_turn > limit / 2) continue;
    std::string verdict = fmt::format("{} ran in {:.0f} s, without a mistake", blocks, limit);
    if (now.runs && now.blocks_done)
      verdict +=
          fmt::format("; the whole launch takes about {:.0f} s here",
                      now.seconds * static_cast<double>(now.blocks) / static_cast<double>(now.blocks_done));
    if (const std::string loop = cpu_device::describe_endless_loop(); !loop.empty()) verdict += "; " + loop;
    std::ofstream(report) << kPartly << verdict;
    std::fflush(stdout);
    std::_Exit(ladder::kExitBadInput);
  }
}

/// At the end of the reader's main(), while what the thread has recorded still exists.
void finish() {
  if (const std::string path = setting("LADDER_CHECK_REPORT"); !path.empty()) {
    std::ofstream report(path);
    write_report(report);
  }
  if (const std::string path = setting("LADDER_CHECK_TIMELINE"); !path.empty())
    ladder::write_file_atomically("--timeline", path, [](std::ostream& out) {
      out << ladder::to_trace_events(ladder::last_timeline(), {{"device", "CPU device"}});
    });
}

/// What is known of the reader's results where main() finds that they are wrong.
void say_causes(const std::string& how_it_ended) {
  std::string causes = cpu_device::describe_changed_sources() + cpu_device::take_unwritten_global() +
                       cpu_device::describe_partly_written();
  // A result that is wrong for this reason is NaN.
  if (const std::string read = ladder::take_unwritten_read(); !read.empty()) causes += read + "\n";
  if (causes.empty()) return;
  std::cout << std::flush;
  std::fflush(stdout);
  std::cerr << program_invocation_short_name << ": error: " << how_it_ended << "\n  ";
  for (size_t i = 0; i + 1 < causes.size(); ++i)
    std::cerr << (causes[i] == '\n' ? "\n  " : std::string(1, causes[i]));
  std::cerr << std::endl;
}

}  // namespace

/// Where an assert() of the reader's fails, which in a kernel is no matter of results.
extern "C" [[noreturn]] void __wrap___assert_fail(const char* assertion, const char* file, unsigned line,
                                                  const char* function) {
  if (!cpu_device::launch_progress().runs)
    ladder::run_program(program_invocation_short_name, [&] {
      cpu_device::take_stream_trace();  // runs what is still queued
      say_causes(fmt::format("assert({}) fails", assertion));
      return ladder::kExitOk;
    });
  else if (cpu_device::current_thread_ids)
    fmt::print(stderr, "in block ({},{},{}), thread ({},{},{}):\n",
               cpu_device::current_thread_ids->block->index.x, cpu_device::current_thread_ids->block->index.y,
               cpu_device::current_thread_ids->block->index.z, cpu_device::current_thread_ids->index.x,
               cpu_device::current_thread_ids->index.y, cpu_device::current_thread_ids->index.z);
  __real___assert_fail(assertion, file, line, function);
}

/// Where the reader's main() calls exit().
extern "C" [[noreturn]] void __wrap_exit(int code) {
  const int failed = ladder::run_program(program_invocation_short_name, [code] {
    finish();
    if (code) say_causes(fmt::format("it calls exit({})", code));
    return ladder::kExitOk;
  });
  __real_exit(failed ? failed : code);
}

namespace {

/// Of what the host does. Kernels' copies of structs are told by the compiler.
void observe_host(const void* address, size_t bytes, bool write, const void* return_address) {
  if (const cpu_device::HostAccessObserver observer = cpu_device::host_access_observer;
      observer && bytes && !cpu_device::observers().running)
    observer(address, bytes, write, /*is_strong=*/false, return_address);
}

}  // namespace

extern "C" void* ladder_host_memcpy(void* to, const void* from, size_t bytes) {
  observe_host(from, bytes, /*write=*/false, __builtin_return_address(0));
  observe_host(to, bytes, /*write=*/true, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}

extern "C" void* ladder_host_memmove(void* to, const void* from, size_t bytes) {
  observe_host(from, bytes, /*write=*/false, __builtin_return_address(0));
  observe_host(to, bytes, /*write=*/true, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}

extern "C" void* ladder_host_memset(void* to, int value, size_t bytes) {
  observe_host(to, bytes, /*write=*/true, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}

extern "C" int __wrap_main(int argc, char** argv) {
  static std::string name = setting("LADDER_CHECK_FILE");
  program_invocation_short_name = name.data();
  return ladder::run_program(name, [&] {
    cpu_device::reserve_shared_variables();
    cpu_device::ask_for_no_keep();
    cpu_device::streams().watch_host_accesses();
    if (setting("LADDER_CHECK_UNWRITTEN") == "finite")
      cpu_device::unwritten_byte = cpu_device::kUnwrittenFinite;
    ladder::Execution execution;
    execution.check_races = execution.check_grid = true;
    execution.record = !setting("LADDER_CHECK_TIMELINE").empty();
    execution.blocks = std::atoi(setting("LADDER_CHECK_BLOCKS").c_str());
    execution.os_threads = std::atoi(setting("LADDER_CHECK_THREADS").c_str());
    ladder::use_schedule(execution, setting("LADDER_CHECK_SCHEDULE"));
    if (const std::string limit = setting("LADDER_CHECK_LIMIT"); !limit.empty()) {
      cpu_device::count_kernel_writes();
      std::thread(watch, std::atoi(setting("LADDER_CHECK_TERMINAL").c_str()), std::atof(limit.c_str()),
                  setting("LADDER_CHECK_REPORT"))
          .detach();
    }
    const int result = __real_main(argc, argv);
    finish();
    if (result) say_causes(fmt::format("main() returns {}", result));
    return result;
  });
}
