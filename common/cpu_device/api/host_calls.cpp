/// @file
/// The frame of every call: errors that are remembered or injected, and failures that wait to be thrown.
#include "common/cpu_device/api/host_calls.hpp"

#include <cerrno>  // program_invocation_short_name
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/streams/kernel_writes.hpp"
#include "common/cuda/error.hpp"

namespace cpu_device {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

struct Injected {
  int calls_left = 0;
  cudaError_t error = cudaSuccess;
};
std::map<std::string, Injected>& injected_errors() {
  static auto& errors = *new std::map<std::string, Injected>;
  return errors;
}

std::string& deferred_failure() {
  static auto& text = *new std::string;
  return text;
}

std::string& queued_at_exception() {
  static auto& text = *new std::string;
  return text;
}

/// A program that makes no further call must not look as if all were well.
void report_deferred_failure() {
  if (deferred_failure().empty()) return;
  end_program(deferred_failure());
}

}  // namespace

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

void explain_error(const std::string& lines) {
  explanation_of_error = lines;
  ladder::why_kernels_stopped = [] { return std::exchange(explanation_of_error, ""); };
}

cudaError_t injected_error(const char* function) {
  auto found = injected_errors().find(function);
  if (found == injected_errors().end() || --found->second.calls_left) return cudaSuccess;
  const cudaError_t error = found->second.error;
  injected_errors().erase(found);
  return error;
}

void fail_call(const std::string& function, int nth, int error) {
  const std::lock_guard<std::recursive_mutex> lock(streams().mutex);
  injected_errors()[function] = {nth, static_cast<cudaError_t>(error)};
}

void refuse_in_kernel(const char* function) {
  if (!current_thread_ids) return;
  const std::string rule =
      std::string(function) +
      " is called inside a kernel: on the CPU device only the host launches and allocates";
  report_misuse(rule.c_str(), {});
}

void begin_call(const char* function) {
  if (const Operation* host_function = running_host_function()) {
    fail(std::string(function) + " is called inside a host function, " + host_function->describe() +
             ": host functions must not call CUDA",
         "\n  cudaLaunchHostFunc at " + describe_place(host_function->where));
  }
  if (!deferred_failure().empty() && !std::uncaught_exceptions())
    throw Failure(std::exchange(deferred_failure(), ""));
}

void defer_failure(const std::string& what) {
  static const int registered = std::atexit(report_deferred_failure);
  (void)registered;
  if (deferred_failure().empty()) deferred_failure() = what;
}

void note_what_is_queued() {
  StreamEngine& engine = streams();
  static int noted_for = 0;  // exceptions on their way: what a destructor queues later is not meant
  if (std::exchange(noted_for, std::uncaught_exceptions()) >= std::uncaught_exceptions()) return;
  if (engine.running() || !queued_at_exception().empty() || engine.oldest_pending() == UINT64_MAX) return;
  queued_at_exception() = "\n  the host had not waited for what was queued then: " + engine.describe_queues();
}

std::string describe_host_side() {
  std::string read = take_unwritten_global();
  if (!read.empty()) read = "\n  " + read.substr(0, read.size() - 1);  // a line break
  return streams().early_give_back() + read + queued_at_exception() + partial_download();
}

std::string take_broken_rule() { return streams().has_failed() ? std::exchange(deferred_failure(), "") : ""; }

cudaError_t call_library(const char* name, cudaStream_t stream, std::vector<Touch> touches,
                         std::function<void()> run, bool waits) {
  return host_call(name, [&] {
    CUstream_st* found = streams().find(stream, DefaultStream::legacy, current_device());
    if (!found) return cudaErrorInvalidResourceHandle;
    if (found->is_legacy && !streams().captures.empty()) return cudaErrorStreamCaptureImplicit;
    Work work{"library call", name};
    for (Touch& touch : touches) {
      if (!streams().memory.find(touch.begin)) return cudaErrorInvalidValue;
      work.touches.push_back(std::move(touch));
    }
    work.engine = Engine::multiprocessors;
    work.run = [run = std::move(run)](Operation&) { run(); };
    const OperationPointer operation = streams().enqueue(*found, std::move(work));
    if (operation && waits) streams().wait_on_host(operation);
    return cudaSuccess;
  });
}

}  // namespace cpu_device

cudaError_t cudaGetLastError() { return std::exchange(cpu_device::last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return cpu_device::last_error; }
