/// @file
/// What runs around the main() of the reader's file (linked with --wrap): chooses the schedule that
/// `ladder check` names in the environment, makes one message of what is thrown, and reports what was
/// launched.
#include <cerrno>  // program_invocation_short_name
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/kernel/shared_variables.hpp"
#include "common/cuda/unwritten_reads.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/device/execution.hpp"
#include "common/host/program/program.hpp"
#include "common/host/timeline/recording.hpp"

extern "C" int __real_main(int argc, char** argv);
extern "C" [[noreturn]] void __real_exit(int code);

namespace {

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

}  // namespace

/// Where the reader's main() calls exit().
extern "C" [[noreturn]] void __wrap_exit(int code) {
  const int failed = ladder::run_program(program_invocation_short_name, [] {
    finish();
    return ladder::kExitOk;
  });
  __real_exit(failed ? failed : code);
}

extern "C" int __wrap_main(int argc, char** argv) {
  static std::string name = setting("LADDER_CHECK_FILE");
  program_invocation_short_name = name.data();
  return ladder::run_program(name, [&] {
    cpu_device::reserve_shared_variables();
    ladder::Execution execution;
    execution.check_races = execution.check_grid = true;
    execution.record = !setting("LADDER_CHECK_TIMELINE").empty();
    execution.blocks = std::atoi(setting("LADDER_CHECK_BLOCKS").c_str());
    execution.os_threads = std::atoi(setting("LADDER_CHECK_THREADS").c_str());
    ladder::use_schedule(execution, setting("LADDER_CHECK_SCHEDULE"));
    const int result = __real_main(argc, argv);
    finish();
    // A result that is wrong for this reason is NaN.
    if (const std::string read = ladder::take_unwritten_read(); result && !read.empty())
      std::cout << read << std::endl;
    return result;
  });
}
