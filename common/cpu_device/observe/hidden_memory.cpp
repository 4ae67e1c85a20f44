/// @file
/// Closes and opens the pages of device memory, and says who touched them while they were closed.
#include "common/cpu_device/observe/hidden_memory.hpp"

#include "common/cpu_device/base/fiber.hpp"

#ifdef CPU_DEVICE_ASAN

namespace cpu_device {

void hide_from_host(std::byte*, size_t, const std::string&) {}
void show_to_host(std::byte*) {}
HiddenMemoryIsOpen::HiddenMemoryIsOpen() = default;
HiddenMemoryIsOpen::~HiddenMemoryIsOpen() = default;
FaultsAreNamed::FaultsAreNamed(const char*, const char*) {}
FaultsAreNamed::~FaultsAreNamed() = default;

}  // namespace cpu_device

#else

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>  // program_invocation_short_name
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

// The program's own image, as the linker lays it out.
extern "C" const char __executable_start[];
extern "C" const char etext[];

namespace cpu_device {
namespace {

struct Region {
  size_t bytes = 0;
  std::string name;
};

struct Hidden {
  std::mutex mutex;
  std::map<std::byte*, Region> regions;
  unsigned open = 0;  ///< how many want it open
};

Hidden& hidden() {
  static auto& instance = *new Hidden;  // memory is freed until the very end
  return instance;
}

void protect(std::byte* begin, size_t bytes, int protection) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (mprotect(begin, (bytes + page - 1) / page * page, protection)) std::perror("mprotect");
}

using Action = struct sigaction;

Action& action_before() {
  static auto& action = *new Action();
  return action;
}

/// The host function that runs on this OS thread, and where it was enqueued; null if none does.
thread_local const char *named_function = nullptr, *named_place = nullptr;

/// Of those who called, the first in the program itself that has a line: the host may have asked memcpy to do
/// it. Nothing where none has. Only the handler calls it.
[[gnu::noinline]] std::string place_of_fault() {
  void* frames[64];
  const int count = backtrace(frames, 64);
  for (int i = 2; i < count; ++i) {  // behind this function and the handler
    const auto address = reinterpret_cast<uintptr_t>(frames[i]);
    if (address < reinterpret_cast<uintptr_t>(__executable_start) ||
        address >= reinterpret_cast<uintptr_t>(etext))
      continue;
    const uintptr_t next = address + 1;
    const std::vector<std::string> calls = source_calls(&next, 1);
    if (calls.empty()) continue;
    std::string text = calls.front();
    for (size_t call = 1; call < calls.size(); ++call) text += ", called from " + calls[call];
    return text;
  }
  return "";
}

/// What follows the line that says what happened. Part of the handler. The place comes last: where the code
/// itself is gone, looking for it fails.
[[gnu::always_inline]] inline void print_place() {
  if (named_function) std::fprintf(stderr, "  in %s, enqueued at %s\n", named_function, named_place);
  std::fflush(stderr);
  const std::string place = place_of_fault();
  if (!place.empty()) std::fprintf(stderr, "  at %s\n", place.c_str());
  std::fflush(stderr);
}

/// Looking for the place may fail, too.
void end_at_next_fault() {
  Action end{};
  end.sa_handler = [](int) { std::_Exit(EXIT_FAILURE); };
  sigemptyset(&end.sa_mask);
  sigaction(SIGSEGV, &end, nullptr);
  sigset_t fault;
  sigemptyset(&fault);
  sigaddset(&fault, SIGSEGV);
  sigprocmask(SIG_UNBLOCK, &fault, nullptr);
}

/// A fault that has nothing to do with device memory happens again when this returns, and the handler that
/// was there before sees it then. Without one the program ends here.
[[gnu::always_inline]] inline void describe_other_fault(const siginfo_t& info) {
  const bool is_alone = !(action_before().sa_flags & SA_SIGINFO) && action_before().sa_handler == SIG_DFL;
  if (!is_alone && !named_function) return;
  if (is_alone) end_at_next_fault();
  const bool has_address = info.si_code != SI_KERNEL;  // x86 reports none where 16 bytes are not aligned
  std::fflush(stdout);
  std::fprintf(stderr, "%s: error: ", program_invocation_short_name);
  constexpr uintptr_t kFirstPage = 4096, kNearNull = 1 << 22;  // no program lies lower than 4 MiB
  if (named_function && has_address && reinterpret_cast<uintptr_t>(info.si_addr) < kFirstPage)
    std::fprintf(stderr,
                 "%s follows a null pointer, as freed memory may hold: what it is given must live until it "
                 "has run\n",
                 named_function);
  else if (named_function && has_address)
    std::fprintf(stderr,
                 "%s uses address %p, where nothing lies: what it is given must live until it has run\n",
                 named_function, info.si_addr);
  else if (named_function)
    std::fprintf(stderr, "%s uses a broken pointer: what it is given must live until it has run\n",
                 named_function);
  else if (has_address && reinterpret_cast<uintptr_t>(info.si_addr) < kFirstPage)
    std::fprintf(
        stderr,
        "nothing lies at address %p, which was accessed: a null pointer in a kernel or in the host's "
        "code, or a kernel that is called like a function, without a launch\n",
        info.si_addr);
  else if (has_address && reinterpret_cast<uintptr_t>(info.si_addr) < kNearNull)
    std::fprintf(stderr,
                 "nothing lies at address %p, which was accessed: %zu bytes behind a null pointer. Is an "
                 "argument of the kernel null, or was it empty or freed before the launch?\n",
                 info.si_addr, reinterpret_cast<uintptr_t>(info.si_addr));
  else if (has_address)
    std::fprintf(stderr, "nothing lies at address %p, which was accessed\n", info.si_addr);
  else
    std::fprintf(stderr, "a load or store of 16 bytes is not aligned to 16 bytes\n");
  print_place();
  if (is_alone) std::_Exit(EXIT_FAILURE);
}

#ifdef __x86_64__
/// Where a kernel's thread runs on after its access of 16 bytes has faulted.
[[noreturn]] void report_fault_of_kernel() {
  const Observers& seen = observers();
  const void* const address = seen.half_aligned;
  observers().running = nullptr;
  report_misaligned_access(address, 16, seen.half_aligned_writes, seen.half_aligned_return_address);
  std::_Exit(EXIT_FAILURE);  // it does not return
}

/// Whether the fault is an access of 16 bytes of which a hook has seen that it may be too little aligned.
/// Then the thread runs on in the report, on its own stack.
bool goes_on_in_report(const siginfo_t& info, void* context) {
  if (info.si_code != SI_KERNEL || !observers().running || !observers().half_aligned) return false;
  constexpr greg_t kRedZoneBytes = 128;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_RSP] = ((registers[REG_RSP] - kRedZoneBytes) & ~greg_t{15}) - 8;  // as behind a call
  registers[REG_RIP] = reinterpret_cast<greg_t>(&report_fault_of_kernel);
  return true;
}
#else
bool goes_on_in_report(const siginfo_t&, void*) { return false; }
#endif

void on_fault(int, siginfo_t* info, void* context) {
  if (goes_on_in_report(*info, context)) return;
  sigaction(SIGSEGV, &action_before(), nullptr);
  auto* const address = static_cast<std::byte*>(info->si_addr);
  // Without the lock, which a thread that has failed here may hold.
  auto next = hidden().regions.upper_bound(address);
  if (next == hidden().regions.begin() || address >= std::prev(next)->first + std::prev(next)->second.bytes)
    return describe_other_fault(*info);
  const auto& [begin, region] = *std::prev(next);
  std::fflush(stdout);
  std::fprintf(
      stderr,
      "%s: error: the host touches %s, at byte %zu: only copies and kernels reach device memory, so a "
      "cudaMemcpy is missing\n",
      program_invocation_short_name, region.name.c_str(), static_cast<size_t>(address - begin));
  print_place();
  std::_Exit(EXIT_FAILURE);
}

/// Test frameworks install handlers of their own, and may have done so since the last call.
void install_handler() {
  Action current{};
  sigaction(SIGSEGV, nullptr, &current);
  if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == on_fault) return;
  action_before() = current;
  Action ours{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGSEGV, &ours, nullptr);
}

}  // namespace

void hide_from_host(std::byte* begin, size_t bytes, const std::string& name) {
  const std::lock_guard<std::mutex> lock(hidden().mutex);
  install_handler();
  hidden().regions[begin] = {bytes, name};
  if (!hidden().open) protect(begin, bytes, PROT_NONE);
}

void show_to_host(std::byte* begin) {
  const std::lock_guard<std::mutex> lock(hidden().mutex);
  const auto found = hidden().regions.find(begin);
  if (found == hidden().regions.end()) return;
  protect(begin, found->second.bytes, PROT_READ | PROT_WRITE);
  hidden().regions.erase(found);
}

FaultsAreNamed::FaultsAreNamed(const char* name, const char* place) {
  const std::lock_guard<std::mutex> lock(hidden().mutex);
  install_handler();
  named_function = name;
  named_place = place;
}

FaultsAreNamed::~FaultsAreNamed() { named_function = named_place = nullptr; }

HiddenMemoryIsOpen::HiddenMemoryIsOpen() {
  const std::lock_guard<std::mutex> lock(hidden().mutex);
  install_handler();
  if (hidden().open++) return;
  for (const auto& [begin, region] : hidden().regions) protect(begin, region.bytes, PROT_READ | PROT_WRITE);
}

HiddenMemoryIsOpen::~HiddenMemoryIsOpen() {
  const std::lock_guard<std::mutex> lock(hidden().mutex);
  if (--hidden().open) return;
  for (const auto& [begin, region] : hidden().regions) protect(begin, region.bytes, PROT_NONE);
}

}  // namespace cpu_device

#endif
