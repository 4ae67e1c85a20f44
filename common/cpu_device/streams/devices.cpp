/// @file
/// Devices, as streams and pools see them: which one, how much memory it has left, whose memory it may touch.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "common/cpu_device/streams/memory_pool.hpp"
#include "common/cpu_device/streams/stream_engine.hpp"

namespace cpu_device {
namespace {

thread_local int chosen_device = 0;

}  // namespace

int device_count() {
  const char* text = std::getenv("LADDER_CPU_DEVICES");
  return text ? std::clamp(std::atoi(text), 1, kMaxDevices) : 1;
}

int current_device() { return chosen_device; }
void choose_device(int device) { chosen_device = device; }

/// What LADDER_CPU_DEVICE_MIB says of each device, so that a program can fill one; else half of the machine's
/// memory, shared by all devices.
size_t device_bytes() {
  static const char* const text = std::getenv("LADDER_CPU_DEVICE_MIB");
  if (const long long mebibytes = text ? std::atoll(text) : 0; mebibytes > 0)
    return static_cast<size_t>(mebibytes) << 20;
  static const size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) / 2 * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes / static_cast<size_t>(device_count());
}

size_t free_device_bytes(int device) {
  const size_t used = streams().device(device).used_bytes;
  return device_bytes() - std::min(device_bytes(), used);
}

bool may_access(int device, const Allocation& allocation) {
  if (allocation.device == device) return true;
  return allocation.pool ? allocation.pool->accessible_from.count(device) != 0
                         : streams().device(device).peers.count(allocation.device) != 0;
}

}  // namespace cpu_device
