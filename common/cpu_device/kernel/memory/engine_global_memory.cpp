/// @file
/// Names accesses of global memory that no allocation covers: of threads as the hooks see them, of copies
/// when they are issued.
#include "common/cpu_device/kernel/memory/engine_global_memory.hpp"

#include "common/cpu_device/base/fiber.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/grid_order.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
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

void note_global_access(Thread& thread, const void* global, size_t bytes, bool write, Location where,
                        bool is_atomic, const TmaBox* box) {
  if (!is_atomic) check_copy_in_grid(thread, global, bytes, write, where, box);
  GlobalAccesses* const accesses = thread.cluster.global_accesses();
  if (!accesses) return;
  (write ? accesses->writes : accesses->reads).add(global, bytes);
  accesses->copied.add(global, bytes, write, where);
  if (thread.block->is_early) accesses->early.add(global, bytes, write, where);
}

void note_read_only_load(const void* global, size_t bytes, Location where) {
  GlobalAccesses* const accesses = this_thread(where).cluster.global_accesses();
  if (accesses) accesses->read_only.add(global, bytes, /*write=*/false, where);
}

/// Kernels run one after the other here, so there is nothing to wait for; but other threads of the block may
/// come first, as they may where somebody waits.
void griddepcontrol_wait(Location where) {
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  if (!cluster.kernel().pdl) return;
  if (cluster.options().schedule.landing == Landing::late)
    cluster.yield_poll(thread, {WaitKind::poll, nullptr, 0, "griddepcontrol.wait", where});
  thread.block->is_early = false;
  observers().early_blocks &= ~(1u << thread.block->ids.rank_in_cluster);
  if (GlobalAccesses* accesses = cluster.global_accesses()) accesses->waited_for_grid_before = true;
}

namespace {

/// "smem.a[0][1], byte 2 of shared memory", "byte 2 of the buffer of 64 bytes of cudaMalloc".
std::string name_place(Cluster& cluster, const void* address) {
  const auto* const place = static_cast<const std::byte*>(address);
  for (const auto& block : cluster.blocks()) {
    if (!block->shared.contains(address)) continue;
    const auto offset = static_cast<size_t>(place - block->shared.generic());
    const std::string name = cluster.layout().name_of(offset);
    return (name.empty() ? "" : name + ", ") + print("byte %zu of shared memory", offset);
  }
  const std::string name = cluster.guard().name_place(address);
  return name.empty() ? print("address %p", address) : name;
}

/// The thread goes no further: its access would end the program.
void suspend_for_good() {
  current_thread->is_in_hook = true;
  current_thread->fiber.suspend();
}

}  // namespace

void report_misaligned_access(const void* address, size_t bytes, bool write, const void* return_address) {
  Cluster& cluster = current_thread->cluster;
  if (!cluster.failed())
    cluster.record_failure(
        current_thread,
        print("a %s of %zu bytes is not aligned to %zu bytes: it begins at ", write ? "store" : "load", bytes,
              bytes) +
            name_place(cluster, address) +
            print(", %zu modulo %zu\n  at ", reinterpret_cast<uintptr_t>(address) % bytes, bytes) +
            describe_call_site(reinterpret_cast<uintptr_t>(return_address)),
        {});
  suspend_for_good();
}

void report_forbidden_access(const ForbiddenZone& zone, const void* address, size_t bytes, bool write,
                             const void* return_address) {
  Cluster& cluster = current_thread->cluster;
  if (cluster.failed() && !zone.is_null()) return;
  cluster.record_failure(current_thread,
                         print("a %s of %zu bytes ", write ? "store" : "load", bytes) +
                             zone.describe(address, bytes) + "\n  at " +
                             describe_call_site(reinterpret_cast<uintptr_t>(return_address)),
                         {});
  if (!zone.is_null()) return;
  suspend_for_good();
}

}  // namespace cpu_device
