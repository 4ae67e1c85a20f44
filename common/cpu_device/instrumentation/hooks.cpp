/// @file
/// The calls that -fsanitize=thread puts before every memory access, defined here instead of in libtsan: they
/// tell the running cluster's race checker, counters and clock what a kernel loads and stores, and name what
/// no allocation covers.
///
/// How to build:
///   instrumented program = lesson objects compiled with -fsanitize=thread
///                          (g++: --param=tsan-instrument-func-entry-exit=0; clang: -mllvm of the same) +
///                          this
///   plain program        = lesson objects compiled without it + hooks_off.cpp
/// This file and the rest of common/cpu_device are compiled without -fsanitize=thread, and the program is
/// linked without it, or the names below would clash with libtsan's. instrumentation.cmake holds the options.
///
/// What stays unseen: what the compiler keeps in registers; with g++ a memcpy or memset that it does not turn
/// into loads and stores (more than 16 bytes, or a length known at run time only); the access itself in
/// atomic operations, which neither race nor count.
#include "common/cpu_device/observe/hooks.hpp"

#include <pthread.h>

#include <cstring>

#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/kernel/built_in_variables.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/from_source/shared_variables.hpp"
#include "common/cpu_device/observe/clock.hpp"
#include "common/cpu_device/observe/counters.hpp"
#include "common/cpu_device/observe/forbidden_memory.hpp"
#include "common/cpu_device/observe/global_accesses.hpp"
#include "common/cpu_device/observe/races.hpp"

// The program's own image, as the linker lays it out.
extern "C" const char __executable_start[];
extern "C" const char end[];

namespace cpu_device {
namespace {

/// Set by the constructors that the compiler adds to instrumented sources.
bool has_instrumented_sources = false;

struct Access {
  const std::byte* address;
  size_t bytes;
  bool write;
  AccessKind kind;
  const void* return_address;
};

/// A piece of memory.
struct Range {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  bool contains(const std::byte* address) const { return address >= begin && address < end; }
};

Range stack_of_this_os_thread() {
  Range range;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return range;
  void* begin = nullptr;
  size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0) {
    range = {static_cast<std::byte*>(begin), static_cast<std::byte*>(begin) + bytes};
  }
  pthread_attr_destroy(&attributes);
  return range;
}

Range stack_of_main_thread;

template <class T>
Range range_of(const T* object) {
  const auto* begin = reinterpret_cast<const std::byte*>(object);
  return {begin, begin + sizeof(T)};
}

/// threadIdx, blockIdx and so on: special registers of a GPU.
bool is_built_in_variable(const std::byte* address) {
  const auto is_of = [&](const auto&... variables) {
    return (range_of(&variables).contains(address) || ...);
  };
  const ThreadIds* ids = current_thread_ids;
  return is_of(threadIdx, blockIdx, blockDim, gridDim, current_thread_ids) ||
         (ids && (is_of(*ids) || is_of(*ids->block)));
}

/// Not device memory: constants and statics in the program's image; and the stacks of host threads, where the
/// parameters of kernels lie. (Of a host thread that is neither the main one nor this one they are counted.)
bool belongs_to_host(const std::byte* address) {
  thread_local const Range own_stack = stack_of_this_os_thread();
  const Range image{reinterpret_cast<const std::byte*>(__executable_start),
                    reinterpret_cast<const std::byte*>(end)};
  if (image.contains(address)) return !is_device_variable(address);
  return stack_of_main_thread.contains(address) || own_stack.contains(address);
}

/// Called by the constructors of instrumented sources, before main.
void initialise() {
  if (has_instrumented_sources) return;
  has_instrumented_sources = true;
  stack_of_main_thread = stack_of_this_os_thread();
}

/// As the clock sees it.
void spend_time(VirtualClock& clock, const ObservedThread& thread, const Access& access, bool is_own) {
  const auto bytes = static_cast<double>(access.bytes);
  if (is_own) {
    access.write ? clock.store_shared(thread.index, bytes) : clock.load_shared(thread.index, bytes);
  } else {
    access.write ? void(clock.send_to_block(thread.index, bytes))
                 : clock.load_from_block(thread.index, bytes);
  }
}

/// Does it load what fresh memory holds?
bool is_fresh(const Access& access) {
  uint32_t word = 0;
  if (access.bytes < sizeof word) return false;
  std::memcpy(&word, access.address, sizeof word);
  return word == 0x01010101u * static_cast<uint32_t>(unwritten_byte);
}

void observe_shared(const ObservedThread& thread, const Access& access, unsigned block, size_t offset) {
  const bool is_own = block == thread.block;
  if (!is_own && observers().blocks_that_left >> block & 1) {
    report_access_to_block_that_left(block, access.write, access.return_address);
    return;
  }
  if (const SharedLayout* layout = observers().layout; layout && !layout->covers(offset, access.bytes)) {
    report_overrun_in_shared_memory(offset, access.bytes, access.write, access.return_address);
    return;
  }
  if (observers().counter) {
    observers().counter->lane_access(thread.warp, thread.lane, access.return_address, Space::shared, offset,
                                     static_cast<uint32_t>(access.bytes), access.write);
    if (!is_own) observers().counter->lane_access_of_other_block(static_cast<uint32_t>(access.bytes));
  }
  if (VirtualClock* clock = observers().clock) spend_time(*clock, thread, access, is_own);
  if (const RaceChecker* races = observers().races;
      races && !access.write && is_fresh(access) && !races->is_written(block, offset))
    note_unwritten_load(block, offset, access.return_address);
  if (RaceChecker* races = observers().races) {  // last: it may not return
    races->access(thread.index, block, offset, access.bytes, access.write, access.write ? "store" : "load",
                  races->site(access.return_address), access.kind);
  }
}

void observe_global(const ObservedThread& thread, const Access& access) {
  if (GlobalAccesses* global = observers().global; global && (access.write || !global->only_writes)) {
    if (!access.write) global->note_read(access.address, access.bytes, "a load", {}, access.return_address);
    (access.write ? global->writes : global->reads).add(access.address, access.bytes);
    if (observers().early_blocks && observers().early_blocks >> thread.block & 1)
      global->early.add(access.address, access.bytes, access.write, {}, access.return_address);
  }
  if (observers().counter) {
    observers().counter->lane_access(thread.warp, thread.lane, access.return_address, Space::global,
                                     reinterpret_cast<uintptr_t>(access.address),
                                     static_cast<uint32_t>(access.bytes), access.write);
  }
  if (VirtualClock* clock = observers().clock) {
    const auto bytes = static_cast<double>(access.bytes);
    access.write ? clock->store_global(thread.index, bytes) : clock->load_global(thread.index, bytes);
  }
  if (observers().grid_order)
    check_order_in_grid(access.address, access.bytes, access.write, access.kind, access.return_address);
}

/// Does a loop wait for what somebody else may store?
bool waits_for_a_store(LoopOfLoads& loop, const Access& access) {
  if (access.write) {
    ++observers().stores;
    loop.count = 0;
    loop.looks = 0;
    return false;
  }
  for (const void* place : loop.places)
    if (place == access.address) return ++loop.count >= LoopOfLoads::kPatience;
  loop.places[loop.oldest++ % LoopOfLoads::kPlaces] = access.address;
  loop.count = 0;
  loop.looks = 0;
  return false;
}

void observe(const ObservedThread& thread, const Access& access) {
  if (waits_for_a_store(thread.loop, access)) wait_for_a_store(access.return_address);
  if (RaceChecker* races = observers().races; races && access.kind == AccessKind::strong) {
    if (access.write)
      races->atomic_changes(thread.index, access.address, /*releases=*/false);
    else
      races->atomic_looks(thread.index, access.address, /*acquires=*/false);
  }
  const SharedWindows& windows = observers().shared;
  const bool only_own = observers().is_cooperative;
  for (unsigned block = only_own ? thread.block : 0; block < windows.size(); ++block) {
    const SharedWindow& window = windows[block];
    const auto offset = static_cast<size_t>(access.address - window.begin);
    if (offset + kSharedGuardBytes < window.bytes + 2 * kSharedGuardBytes && window.bytes) {
      if (offset < window.bytes && access.bytes <= window.bytes - offset)
        observe_shared(thread, access, block, offset);
      else
        report_access_beyond_block(access.address - window.begin, access.bytes, access.write,
                                   access.return_address);
      return;
    }
    if (only_own) break;
  }
  if (MemoryGuard* guard = observers().guard) {
    if (const ForbiddenZone* zone = guard->forbids(access.address, access.bytes)) {
      report_forbidden_access(*zone, access.address, access.bytes, access.write, access.return_address);
      return;
    }
  }
  if (!observers().counter && !observers().clock && !observers().global && !observers().grid_order) return;
  if (is_built_in_variable(access.address) || belongs_to_host(access.address)) return;
  observe_global(thread, access);
}

/// What a hook knows of its access.
enum Traits : unsigned { kNone = 0, kVolatile = 1, kAligned = 2 };

/// Compilers promise that the address is a multiple of the size, or of 8 where that is less. Of 16 bytes only
/// the access itself shows whether its type asks for more.
void check_alignment(const ObservedThread& thread, const void* address, size_t bytes, bool write,
                     const void* return_address) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  if (!(number & (bytes - 1))) return;
  if (bytes == 16 && number % 8 == 0) {
    observers().half_aligned = address;
    observers().half_aligned_writes = write;
    observers().half_aligned_return_address = return_address;
    return;
  }
  observers().running = nullptr;
  report_misaligned_access(address, bytes, write, return_address);
  observers().running = &thread;
}

/// (Takes its parameters in registers, so that the hooks need no stack frame.)
[[gnu::noinline]] void observe_unless_on_stack(const ObservedThread& thread, const void* pointer,
                                               size_t bytes, bool write, unsigned traits,
                                               const void* return_address) {
  const auto* address = static_cast<const std::byte*>(pointer);
  observers().half_aligned = nullptr;
  if (address >= thread.stack_begin && address < thread.stack_end) return;
  // The linker may have chosen an instrumented copy of an inline function that the observers use, too.
  observers().running = nullptr;
  const bool is_strong = (traits & kVolatile) || (write && thread.is_behind_fence);
  if (write) thread.is_behind_fence = false;
  observe(thread,
          {address, bytes, write, is_strong ? AccessKind::strong : AccessKind::plain, return_address});
  observers().running = &thread;
  if (traits & kAligned) check_alignment(thread, pointer, bytes, write, return_address);
}

/// What every hook does. Nothing but the test of two variables, where nobody observes.
[[gnu::always_inline]] inline void on_access(const void* address, size_t bytes, bool write,
                                             const void* return_address, unsigned traits = kNone) {
  if (const ObservedThread* thread = observers().running; __builtin_expect(thread != nullptr, false)) {
    observe_unless_on_stack(*thread, address, bytes, write, traits, return_address);
  } else if (const HostAccessObserver observer = host_access_observer.load(std::memory_order_relaxed);
             __builtin_expect(observer != nullptr, false)) {
    observer(address, bytes, write, traits & kVolatile, return_address);
  }
}

}  // namespace

bool instrumented() { return has_instrumented_sources; }

}  // namespace cpu_device

using cpu_device::kAligned, cpu_device::kNone, cpu_device::kVolatile, cpu_device::on_access;

/// The host looks at a flag, of a kernel for example.
static void on_atomic_access(const volatile void* address, size_t bytes) {
  if (const cpu_device::HostAccessObserver observer = cpu_device::host_access_observer;
      observer && !cpu_device::observers().running)
    observer(const_cast<const void*>(address), bytes, /*write=*/false, /*is_strong=*/true, nullptr);
}

// The names, parameters and return types are the compilers'.
#define RETURN_ADDRESS __builtin_extract_return_addr(__builtin_return_address(0))

#define DEFINE_ACCESS(kind, size, writes, traits) \
  void __tsan_##kind##size(void* address) { on_access(address, size, writes, RETURN_ADDRESS, traits); }

#define DEFINE_ACCESSES(size)                                     \
  DEFINE_ACCESS(read, size, false, kAligned)                      \
  DEFINE_ACCESS(write, size, true, kAligned)                      \
  DEFINE_ACCESS(unaligned_read, size, false, kNone)               \
  DEFINE_ACCESS(unaligned_write, size, true, kNone)               \
  DEFINE_ACCESS(volatile_read, size, false, kVolatile | kAligned) \
  DEFINE_ACCESS(volatile_write, size, true, kVolatile | kAligned) \
  DEFINE_ACCESS(unaligned_volatile_read, size, false, kVolatile)  \
  DEFINE_ACCESS(unaligned_volatile_write, size, true, kVolatile)

#define DEFINE_FETCH(type, size, operation)                                               \
  type __tsan_atomic##size##_fetch_##operation(volatile type* address, type value, int) { \
    return __atomic_fetch_##operation(address, value, __ATOMIC_SEQ_CST);                  \
  }

#define DEFINE_ATOMICS(type, size)                                                                           \
  type __tsan_atomic##size##_load(const volatile type* address, int) {                                       \
    on_atomic_access(address, sizeof(type));                                                                 \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                                       \
  }                                                                                                          \
  void __tsan_atomic##size##_store(volatile type* address, type value, int) {                                \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                          \
  type __tsan_atomic##size##_exchange(volatile type* address, type value, int) {                             \
    return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                          \
  DEFINE_FETCH(type, size, add)                                                                              \
  DEFINE_FETCH(type, size, sub)                                                                              \
  DEFINE_FETCH(type, size, and)                                                                              \
  DEFINE_FETCH(type, size, or)                                                                               \
  DEFINE_FETCH(type, size, xor)                                                                              \
  DEFINE_FETCH(type, size, nand)                                                                             \
  int __tsan_atomic##size##_compare_exchange_strong(volatile type* address, type* expected, type value, int, \
                                                    int) {                                                   \
    return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                          \
  int __tsan_atomic##size##_compare_exchange_weak(volatile type* address, type* expected, type value, int,   \
                                                  int) {                                                     \
    return __atomic_compare_exchange_n(address, expected, value, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
  }                                                                                                          \
  type __tsan_atomic##size##_compare_exchange_val(volatile type* address, type expected, type value, int,    \
                                                  int) {                                                     \
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
    return expected;                                                                                         \
  }

extern "C" {

void __tsan_init() { cpu_device::initialise(); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

DEFINE_ACCESSES(1)
DEFINE_ACCESSES(2)
DEFINE_ACCESSES(4)
DEFINE_ACCESSES(8)
DEFINE_ACCESSES(16)

void __tsan_read_range(void* address, unsigned long bytes) {
  on_access(address, bytes, false, RETURN_ADDRESS);
}
void __tsan_write_range(void* address, unsigned long bytes) {
  on_access(address, bytes, true, RETURN_ADDRESS);
}

void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  if (bytes) {
    on_access(from, bytes, false, RETURN_ADDRESS);
    on_access(to, bytes, true, RETURN_ADDRESS);
  }
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  if (bytes) {
    on_access(from, bytes, false, RETURN_ADDRESS);
    on_access(to, bytes, true, RETURN_ADDRESS);
  }
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, size_t bytes) {
  if (bytes) on_access(to, bytes, true, RETURN_ADDRESS);
  return std::memset(to, value, bytes);
}

DEFINE_ATOMICS(uint8_t, 8)
DEFINE_ATOMICS(uint16_t, 16)
DEFINE_ATOMICS(uint32_t, 32)
DEFINE_ATOMICS(uint64_t, 64)

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

}  // extern "C"
