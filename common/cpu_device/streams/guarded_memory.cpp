/// @file
/// Puts zones around memory, and keeps what was freed for a while.
#include "common/cpu_device/streams/guarded_memory.hpp"

#include <cstdlib>

#include "common/cpu_device/base/fiber.hpp"

#ifdef CPU_DEVICE_ASAN

namespace cpu_device {

std::byte* take_guarded_memory(size_t bytes, const std::string&) {
  void* memory = nullptr;
  return posix_memalign(&memory, kMemoryAlignment, bytes) ? nullptr : static_cast<std::byte*>(memory);
}

void give_back_guarded_memory(std::byte* begin) { std::free(begin); }
std::string freed_guarded_memory(const void*) { return ""; }

}  // namespace cpu_device

#else

#include <unistd.h>

#include <deque>
#include <map>
#include <mutex>

#include "common/cpu_device/observe/forbidden_memory.hpp"
#include "common/cpu_device/observe/hidden_memory.hpp"

namespace cpu_device {
namespace {

/// Before and behind: more than a few rows of the matrices that tests have. Nobody touches it, so it is
/// address space and no memory.
constexpr size_t kZoneBytes = 64 * 1024;  // whole pages
/// Freed memory that is kept.
constexpr size_t kMaxKeptBytes = 64 << 20, kMaxKept = 1024;

struct Guarded {
  std::byte* zone = nullptr;  ///< where it begins
  size_t bytes = 0;           ///< between the zones
  std::string name;
};

/// What is in use, and what was freed and is kept.
struct Memory {
  std::mutex mutex;
  std::map<std::byte*, Guarded> live;
  std::deque<Guarded> kept;
  size_t kept_bytes = 0;
};

Memory& memory() {
  static auto& instance = *new Memory;  // memory is freed until the very end
  return instance;
}

uintptr_t address_of(const std::byte* place) { return reinterpret_cast<uintptr_t>(place); }

void release(const Guarded& guarded) {
  const uintptr_t begin = address_of(guarded.zone);
  ForbiddenMemory::instance().allow(begin, begin + guarded.bytes + 2 * kZoneBytes);
  std::free(guarded.zone);
}

}  // namespace

std::byte* take_guarded_memory(size_t bytes, const std::string& name) {
  // From the beginning of a page to the end of one, so that nothing else is hidden with it. (The zone behind
  // is more than a page.)
  void* zone = nullptr;
  if (posix_memalign(&zone, static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes + 2 * kZoneBytes))
    return nullptr;
  const Guarded guarded{static_cast<std::byte*>(zone), bytes, name};
  std::byte* const begin = guarded.zone + kZoneBytes;
  const uintptr_t first = address_of(begin), last = first + bytes;
  ForbiddenMemory::instance().forbid({first - kZoneBytes, first, first, bytes, name});
  ForbiddenMemory::instance().forbid({last, last + kZoneBytes, first, bytes, name});
  const std::lock_guard<std::mutex> lock(memory().mutex);
  memory().live[begin] = guarded;
  return begin;
}

void give_back_guarded_memory(std::byte* begin) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  const auto found = memory().live.find(begin);
  const Guarded guarded = found->second;
  memory().live.erase(found);
  show_to_host(begin);
  const uintptr_t first = address_of(begin);
  ForbiddenMemory::instance().allow(first, first + guarded.bytes);  // what a pool forbade inside
  ForbiddenMemory::instance().forbid(
      {first, first + guarded.bytes, first, guarded.bytes, guarded.name, /*freed=*/true});
  memory().kept.push_back(guarded);
  memory().kept_bytes += guarded.bytes;
  while (memory().kept_bytes > kMaxKeptBytes || memory().kept.size() > kMaxKept) {
    release(memory().kept.front());
    memory().kept_bytes -= memory().kept.front().bytes;
    memory().kept.pop_front();
  }
}

std::string freed_guarded_memory(const void* place) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  const auto* const address = static_cast<const std::byte*>(place);
  for (const Guarded& guarded : memory().kept) {
    const std::byte* const begin = guarded.zone + kZoneBytes;
    if (address >= begin && address < begin + guarded.bytes) return guarded.name;
  }
  return "";
}

}  // namespace cpu_device

#endif
