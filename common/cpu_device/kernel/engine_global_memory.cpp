/// @file
/// Names accesses of global memory that no allocation covers: of threads as the hooks see them, of copies
/// when they are issued.
#include "common/cpu_device/kernel/engine_global_memory.hpp"

#include "common/cpu_device/base/fiber.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_reports.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {

std::string blame_global_access([[maybe_unused]] Thread& thread, const void* global, size_t bytes) {
  if (!bytes) return "";
#ifdef CPU_DEVICE_ASAN
  // AddressSanitizer alone would not say which copy it was, since that lands later.
  if (__asan_region_is_poisoned(const_cast<void*>(global), bytes))
    return "is outside of an allocation in global memory";
  return "";
#else
  const ForbiddenZone* zone = thread.cluster.guard().forbids(global, bytes);
  return zone ? zone->describe(global, bytes) : "";
#endif
}

void report_forbidden_access(const ForbiddenZone& zone, const void* address, size_t bytes, bool write,
                             const void* return_address) {
  Cluster& cluster = current_thread->cluster;
  if (cluster.failed()) return;
  cluster.record_failure(current_thread,
                         print("a %s of %zu bytes ", write ? "store" : "load", bytes) +
                             zone.describe(address, bytes) + "\n  at " +
                             describe_call_site(reinterpret_cast<uintptr_t>(return_address)),
                         {});
}

}  // namespace cpu_device
