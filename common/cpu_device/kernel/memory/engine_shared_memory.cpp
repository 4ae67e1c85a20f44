/// @file
/// A block's shared memory and its two views.
#include "common/cpu_device/kernel/engine_shared_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_mbarriers.hpp"
#include "common/cpu_device/kernel/from_source/shared_variables.hpp"
#include "common/cpu_device/kernel/reports/array_bounds.hpp"
#include "common/cpu_device/kernel/reports/launch_shape.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {

constexpr size_t kAlignment = 1024;

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LADDER_HAS_OWN_GUARDS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(LADDER_HAS_OWN_GUARDS)
constexpr size_t kGuardBytes = 0;  // it has guards of its own
#else
constexpr size_t kGuardBytes = kSharedGuardBytes;
#endif
static_assert(kGuardBytes % kAlignment == 0);

std::byte* allocate(size_t bytes) {
  if (!bytes) return nullptr;
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes + 2 * kGuardBytes)) throw std::bad_alloc();
  return static_cast<std::byte*>(memory) + kGuardBytes;
}

void release(std::byte* memory) {
  if (memory) std::free(memory - kGuardBytes);
}

}  // namespace

SharedMemory::SharedMemory(size_t bytes, size_t capacity)
    : bytes_(bytes), capacity_(capacity), generic_(allocate(capacity)), async_(allocate(capacity)) {}

SharedMemory::~SharedMemory() {
  release(generic_);
  release(async_);
}

void SharedMemory::poison() {
  fences_ = fences_before_ = 0;
  publish_due_ = false;
  if (!bytes_) return;
  std::memset(generic_, unwritten_byte, bytes_);
  std::memset(async_, unwritten_byte, bytes_);
}

void SharedMemory::grow(size_t bytes) {
  if (bytes <= bytes_) return;
  std::memset(generic_ + bytes_, unwritten_byte, bytes - bytes_);
  std::memset(async_ + bytes_, unwritten_byte, bytes - bytes_);
  bytes_ = bytes;
}

/// A fence publishes all that any thread has written before it, so only the last fence before a read of the
/// async view decides what that read sees. Which one is the last is not known when it is executed; but a ring
/// of tiles has the same number of fences in every round. So the fence with the number of the last round's
/// last one copies, and earlier ones do nothing. The first round copies at each fence. A round with more
/// fences than the one before copies when the view is read: then, and only then, a write that came after the
/// last fence is visible too.
void SharedMemory::fence() {
  ++fences_;
  if (fences_before_ == 0 || fences_ == fences_before_) {
    publish();
  } else {
    publish_due_ = true;
  }
}

const std::byte* SharedMemory::read_async_view() {
  if (fences_) {
    if (publish_due_) publish();
    fences_before_ = fences_;
    fences_ = 0;
  }
  return async_;
}

void SharedMemory::write_both_views(size_t offset, const std::byte* data, size_t bytes) {
  std::memcpy(generic_ + offset, data, bytes);
  std::memcpy(async_ + offset, data, bytes);
}

void SharedMemory::publish() {
  if (bytes_) std::memcpy(async_, generic_, bytes_);
  publish_due_ = false;
}

// --- operations -------------------------------------------------------------------------------------------

void fence_proxy_async(Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  thread.block->shared.fence();
  publish_initialised_mbarriers(thread);
  if (RaceChecker* races = thread.cluster.races()) {
    thread.proxy_fences.push_back({where, races->epoch(thread.number)});
    if (thread.proxy_fences.size() > Thread::kFencesKept) thread.proxy_fences.pop_front();
    races->fence_proxy_async(thread.number);
  }
}

void* shared_storage(size_t bytes, size_t alignment, Location where, NameOfByte name) {
  Thread& thread = this_thread(where);
  SharedMemory& shared = thread.block->shared;
  if (bytes > shared.bytes()) {
    thread.cluster.fail(
        thread,
        print("shared_storage of %zu bytes, but the launch gave the block %zu bytes", bytes, shared.bytes()),
        where);
  }
  if (alignment > kAlignment) {
    thread.cluster.fail(thread, print("shared_storage aligned to %zu bytes; at most 1024", alignment), where);
  }
  if (name) thread.cluster.layout().name_storage(name, where);
  return shared.generic();
}

bool is_shared(const void* pointer) {
  return current_thread && current_thread->block->shared.contains(pointer);
}

bool is_global(const void* pointer) {
  if (!current_thread) return true;
  const auto* address = static_cast<const std::byte*>(pointer);
  for (const auto& block : current_thread->cluster.blocks()) {
    if (block->shared.contains(pointer)) return false;
  }
  return address < current_thread->observed.stack_begin || address >= current_thread->observed.stack_end;
}

/// " of smem.a[slot] or smem.b[slot] (gemm.cuh:93)": what has indices in the line of the kernel; or nothing.
static std::string indexed_at(const Location& where) {
  const OwnLine own = own_line(where);
  std::string operands;
  for (const std::string& operand : own.operands)
    if (operand.find('[') != operand.npos) operands += (operands.empty() ? " of " : " or ") + operand;
  return operands.empty() ? "" : operands + " (" + own.place + ")";
}

/// How far an address lies outside; empty if it is so far that it cannot be a wrong index.
static std::string distance_to(SharedMemory& shared, const void* pointer, const Location& where) {
  constexpr ptrdiff_t kFar = ptrdiff_t{1} << 20;
  const ptrdiff_t behind =
      static_cast<const std::byte*>(pointer) - shared.generic() - static_cast<ptrdiff_t>(shared.bytes());
  const ptrdiff_t before = shared.generic() - static_cast<const std::byte*>(pointer);
  if (behind >= 0 && behind < kFar)
    return print(": it lies %td bytes behind the end of the block's %zu: is an index%s too large?", behind,
                 shared.bytes(), indexed_at(where).c_str());
  if (before > 0 && before < kFar)
    return print(": it lies %td bytes before the block's %zu: is an index%s negative?", before,
                 shared.bytes(), indexed_at(where).c_str());
  return "";
}

uint32_t shared_offset(Thread& thread, const void* pointer, size_t bytes, const char* what, Location where) {
  SharedMemory& shared = thread.block->shared;
  if (!shared.contains(pointer)) {
    thread.cluster.fail(thread,
                        std::string(what) + ": the address is not in the shared memory of the block" +
                            distance_to(shared, pointer, where),
                        where);
  }
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(pointer) - shared.generic());
  if (offset + bytes > shared.bytes()) {
    thread.cluster.fail(
        thread,
        print("%s reaches over the end of the block's %zu bytes of shared memory", what, shared.bytes()),
        where);
  }
  if (bytes && !thread.cluster.layout().covers(offset, bytes)) {
    thread.cluster.fail(
        thread, std::string(what) + " " + thread.cluster.layout().describe_overrun(offset, bytes), where);
  }
  return static_cast<uint32_t>(offset);
}

void* shared_variable(SharedVariable& variable, const char* name, Location where) {
  if (!variable.name) variable.name = name;
  Thread& thread = current_thread ? *current_thread : this_thread(where);
  return thread.block->shared.generic() + thread.cluster.place_of(variable, where);
}

void* dynamic_shared_memory(SharedVariable& variable, const char* name, Location where) {
  if (!variable.name) variable.name = name;
  Thread& thread = current_thread ? *current_thread : this_thread(where);
  thread.cluster.layout().name_dynamic(variable);
  return thread.block->shared.generic();
}

void report_overrun_in_shared_memory(size_t offset, size_t bytes, bool write, const void* return_address) {
  Cluster& cluster = current_thread->cluster;
  if (cluster.failed()) return;
  cluster.record_failure(current_thread,
                         print("a %s of %zu bytes ", write ? "store" : "load", bytes) +
                             cluster.layout().describe_overrun(offset, bytes) + "\n  at " +
                             describe_call_site(reinterpret_cast<uintptr_t>(return_address)),
                         {});
}

void report_access_beyond_block(std::ptrdiff_t offset, size_t bytes, bool write, const void* return_address) {
  Cluster& cluster = current_thread->cluster;
  if (cluster.failed()) return;
  const size_t size = current_thread->block->shared.capacity();
  const auto behind = offset - static_cast<std::ptrdiff_t>(size);
  const OwnLine line = own_line({"", 0, return_address, nullptr});
  cluster.record_failure(
      current_thread,
      with_flat_block(
          cluster.kernel(),
          print("a %s of %zu bytes ", write ? "store" : "load", bytes) +
              (offset < 0
                   ? print("lies %td bytes before the block's %zu bytes of shared memory", -offset, size)
               : behind >= 0
                   ? print("lies %td bytes behind the end of the block's %zu bytes of shared memory", behind,
                           size)
                   : print("reaches over the end of the block's %zu bytes of shared memory", size)) +
              explain_beyond_block(cluster.layout(), cluster.layout().end(), line, write, offset) +
              "\n  at " + describe_call_site(reinterpret_cast<uintptr_t>(return_address))),
      {});
}

uint32_t shared_address(const void* pointer, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  return kSharedWindowBase + shared_offset(this_thread(where), pointer, 0, "shared_address", where);
}

}  // namespace cpu_device
