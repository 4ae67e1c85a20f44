/// @file
/// cudaMalloc and its relatives: memory that comes and goes when the host says so.
#include <cstring>
#include <set>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/observe/hidden_memory.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cpu_device/streams/graph_capture.hpp"
#include "common/cpu_device/streams/guarded_memory.hpp"
#include "common/cpu_device/streams/memory_pool.hpp"

namespace cpu_device {
namespace {

/// Where memory was that has been freed, to tell a second free from a wrong pointer.
std::set<const void*>& freed_addresses() {
  static auto& addresses = *new std::set<const void*>;
  return addresses;
}

cudaError_t allocate(void** pointer, size_t bytes, MemoryKind kind, Location where) {
  if (!pointer) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (!bytes) return cudaSuccess;
  const bool on_device = kind == MemoryKind::device;
  if (refused_while_capturing()) return cudaErrorStreamCaptureUnsupported;
  const int device = current_device();
  if (bytes > free_device_bytes(device)) return cudaErrorMemoryAllocation;
  const char* const origin = on_device                     ? "of cudaMalloc"
                             : kind == MemoryKind::managed ? "of cudaMallocManaged"
                                                           : "of the host";
  *pointer = take_guarded_memory(bytes, describe_memory(kind, bytes, origin));
  if (!*pointer) return cudaErrorMemoryAllocation;
  std::memset(*pointer, on_device ? unwritten_byte : 0, bytes);
  if (on_device)
    hide_from_host(static_cast<std::byte*>(*pointer), bytes, describe_memory(kind, bytes, origin));
  freed_addresses().erase(*pointer);
  streams().memory.add(kind, *pointer, bytes, device, origin, streams().last_id())->where = where;
  if (on_device) streams().device(device).used_bytes += bytes;
  return cudaSuccess;
}

/// A call that ends memory. It has no parameter for its place, because programs pass its address on.
struct Release {
  const char* function;
  const void* return_address;
  std::string place() const {
    return std::string("\n  ") + function + " at " +
           describe_call_site(reinterpret_cast<uintptr_t>(return_address));
  }
};

/// What is queued must not use it any more, as far as the host can know.
void check_unused(const Release& call, const Allocation& allocation) {
  if (std::uncaught_exceptions()) return;  // Whoever unwinds cannot have waited.
  if (const OperationPointer user = streams().memory.user_unknown_to(streams().host(), allocation)) {
    fail(std::string(call.function) + " of " + allocation.describe() + ", which " + user->describe() +
             " uses: the host has not waited for that",
         call.place() + user->describe_places());
  }
}

/// @return null, and the error, where there is nothing to release
AllocationPointer find_to_release(const Release& call, const void* pointer, MemoryKind kind) {
  const AllocationPointer allocation = streams().memory.find_begin(pointer);
  if (allocation && allocation->kind == kind) return allocation;
  if (freed_addresses().count(pointer) || streams().memory.is_freed(pointer))
    fail(std::string(call.function) + " frees memory that was freed before", call.place());
  return nullptr;
}

void release(const AllocationPointer& allocation) {
  StreamEngine& engine = streams();
  std::byte* const memory = allocation->begin;
  if (CUmemPoolHandle_st* pool = allocation->pool) {
    engine.memory.free(allocation, engine.last_id(), /*is_over=*/false);
    pool->give_back(memory, engine.host(), engine.last_id());
    const HiddenMemoryIsOpen open;
    poison_pool_memory(memory, allocation->bytes);
    return;
  }
  engine.memory.free(allocation, engine.last_id(), /*is_over=*/true);
  if (allocation->kind == MemoryKind::device)
    engine.device(allocation->device).used_bytes -= allocation->bytes;
  freed_addresses().insert(memory);
  give_back_guarded_memory(memory);
}

}  // namespace
}  // namespace cpu_device

using namespace cpu_device;

cudaError_t cudaMalloc(void** pointer, size_t bytes, Location where) {
  return host_call("cudaMalloc", [&] { return allocate(pointer, bytes, MemoryKind::device, where); });
}

cudaError_t cudaFree(void* pointer) {
  const Release call{"cudaFree", __builtin_return_address(0)};
  return destroying_call(call.function, [&] {
    if (!pointer) return cudaSuccess;
    const AllocationPointer begins = streams().memory.find_begin(pointer);
    const bool is_managed = begins && begins->kind == MemoryKind::managed;
    const AllocationPointer allocation =
        find_to_release(call, pointer, is_managed ? MemoryKind::managed : MemoryKind::device);
    if (!allocation) return cudaErrorInvalidValue;
    // CUDA waits for the device here, unless the memory is a pool's. That saves programs which have not
    // waited themselves; they are named, because the wait is nowhere promised.
    streams().run_everything();
    check_unused(call, *allocation);
    release(allocation);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes, Location where) {
  return host_call("cudaMallocHost", [&] { return allocate(pointer, bytes, MemoryKind::pinned, where); });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned, Location where) {
  return host_call("cudaHostAlloc", [&] { return allocate(pointer, bytes, MemoryKind::pinned, where); });
}

cudaError_t cudaFreeHost(void* pointer) {
  const Release call{"cudaFreeHost", __builtin_return_address(0)};
  return destroying_call(call.function, [&] {
    if (!pointer) return cudaSuccess;
    const AllocationPointer allocation = find_to_release(call, pointer, MemoryKind::pinned);
    if (!allocation) return cudaErrorInvalidValue;
    streams().run_everything();
    check_unused(call, *allocation);
    release(allocation);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned, Location where) {
  return host_call("cudaHostRegister", [&] {
    if (!pointer || !bytes) return cudaErrorInvalidValue;
    const auto* last = static_cast<const std::byte*>(pointer) + bytes - 1;
    if (streams().memory.find(pointer) || streams().memory.find(last))
      return cudaErrorHostMemoryAlreadyRegistered;
    streams()
        .memory
        .add(MemoryKind::registered, pointer, bytes, current_device(), "of cudaHostRegister",
             streams().last_id())
        ->where = where;
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  const Release call{"cudaHostUnregister", __builtin_return_address(0)};
  return destroying_call(call.function, [&] {
    const AllocationPointer allocation = streams().memory.find_begin(pointer);
    if (!allocation || allocation->kind != MemoryKind::registered) return cudaErrorHostMemoryNotRegistered;
    streams().run_everything();
    check_unused(call, *allocation);
    streams().memory.free(allocation, streams().last_id(), /*is_over=*/true);
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return host_call("cudaHostGetDevicePointer", [&] {
    if (!device || flags) return cudaErrorInvalidValue;
    const AllocationPointer allocation = streams().memory.find(host);
    if (!allocation || allocation->kind == MemoryKind::device) return cudaErrorInvalidValue;
    *device = host;
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return host_call("cudaHostGetFlags", [&] {
    const AllocationPointer allocation = streams().memory.find(host);
    if (!flags || !allocation || allocation->kind != MemoryKind::pinned) return cudaErrorInvalidValue;
    *flags = cudaHostAllocMapped;
    return cudaSuccess;
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags, Location where) {
  return host_call("cudaMallocManaged", [&] {
    if (!bytes || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) return cudaErrorInvalidValue;
    return allocate(pointer, bytes, MemoryKind::managed, where);
  });
}

namespace {

/// What says where managed memory had best lie: nothing changes.
cudaError_t advise(const char* call, const void* pointer, size_t bytes) {
  return host_call(call, [&] {
    const AllocationPointer allocation = streams().memory.find(pointer);
    const bool is_inside =
        allocation && bytes && allocation->contains(static_cast<const std::byte*>(pointer) + bytes - 1);
    return is_inside && allocation->kind == MemoryKind::managed ? cudaSuccess : cudaErrorInvalidValue;
  });
}

constexpr size_t kPitch = 512;
size_t pitch_of(size_t width) { return (width + kPitch - 1) / kPitch * kPitch; }

}  // namespace

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int, cudaStream_t) {
  return advise("cudaMemPrefetchAsync", pointer, bytes);
}
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation, unsigned, cudaStream_t) {
  return advise("cudaMemPrefetchAsync", pointer, bytes);
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, int) {
  return advise("cudaMemAdvise", pointer, bytes);
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation) {
  return advise("cudaMemAdvise", pointer, bytes);
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void* pointer, size_t bytes, unsigned) {
  return advise("cudaStreamAttachMemAsync", pointer, bytes ? bytes : 1);
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height, Location where) {
  return host_call("cudaMallocPitch", [&] {
    if (!pitch) return cudaErrorInvalidValue;
    *pitch = pitch_of(width);
    return allocate(pointer, *pitch * height, MemoryKind::device, where);
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent, Location where) {
  return host_call("cudaMalloc3D", [&] {
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = {nullptr, pitch_of(extent.width), extent.width, extent.height};
    return allocate(&pointer->ptr, pointer->pitch * extent.height * extent.depth, MemoryKind::device, where);
  });
}

namespace cpu_device {

void* symbol_address(const void* symbol, size_t bytes, Location where) {
  void* const variable = const_cast<void*>(symbol);
  host_call("cudaGetSymbolAddress", [&] {
    MemoryTable& memory = streams().memory;
    // Born before everything: it always was there.
    if (!memory.find(variable))
      memory.add(MemoryKind::device, variable, bytes, current_device(), "of a variable of kernels", 0)
          ->where = where;
    return cudaSuccess;
  });
  return variable;
}

}  // namespace cpu_device

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return host_call("cudaPointerGetAttributes", [&] {
    if (!attributes) return cudaErrorInvalidValue;
    *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, const_cast<void*>(pointer)};
    if (const AllocationPointer allocation = streams().memory.find(pointer)) {
      const bool on_device = allocation->kind == MemoryKind::device;
      attributes->type = on_device                                 ? cudaMemoryTypeDevice
                         : allocation->kind == MemoryKind::managed ? cudaMemoryTypeManaged
                                                                   : cudaMemoryTypeHost;
      attributes->device = allocation->device;
      attributes->devicePointer = const_cast<void*>(pointer);
      if (on_device) attributes->hostPointer = nullptr;
    }
    return cudaSuccess;
  });
}
