/// @file
/// The pool of fiber stacks.
#include "common/cpu_device/base/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace cpu_device {
namespace {

#ifdef CPU_DEVICE_ASAN
constexpr size_t kStackBytes = 512 * 1024;  // its red zones make frames several times larger
#else
constexpr size_t kStackBytes = 128 * 1024;
#endif

/// Stacks begin at different places of their pages, or their tops, which all fibers use most, would compete
/// for the same few lines of the processor's cache.
constexpr size_t kStagger = 192, kStaggers = 16;

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

StackPool& StackPool::instance() {
  static StackPool pool;
  return pool;
}

StackPool::~StackPool() {
  for (Stack stack : all_) munmap(stack.bottom - page_bytes(), kStackBytes + page_bytes());
}

Stack StackPool::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!free_.empty()) {
    const Stack stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* memory = mmap(nullptr, kStackBytes + page_bytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, page_bytes(), PROT_NONE);
  const Stack stack{static_cast<char*>(memory) + page_bytes(),
                    kStackBytes - all_.size() % kStaggers * kStagger};
  all_.push_back(stack);
  return stack;
}

void StackPool::give_back(Stack stack) {
#ifdef CPU_DEVICE_ASAN
  __asan_unpoison_memory_region(stack.bottom, stack.bytes);
#endif
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(stack);
}

}  // namespace cpu_device
