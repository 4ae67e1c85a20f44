/// @file
/// Stackful fibers: one for each CUDA thread. Boost.Context switches them, AddressSanitizer is told about it.
#pragma once
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <cstddef>
#include <mutex>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CPU_DEVICE_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CPU_DEVICE_ASAN 1
#endif
#ifdef CPU_DEVICE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace cpu_device {

/// A piece of memory for one fiber. Below it lies a page that cannot be accessed, so that an overflow is a
/// segmentation fault and not silent damage.
struct Stack {
  char* bottom = nullptr;
  size_t bytes = 0;
};

/// Stacks are mapped once and reused by later launches; the system gives them memory only where touched.
class StackPool {
 public:
  static StackPool& instance();
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  ~StackPool();

  /// @throws std::bad_alloc if the system has no address space left.
  Stack take();
  void give_back(Stack);

 private:
  std::mutex mutex_;
  std::vector<Stack> all_, free_;
};

/// A function with a stack of its own, entered by resume() and left by suspend(). It stays on the OS thread
/// that resumed it first.
class Fiber {
 public:
  using Function = void (*)(void*);

  Fiber(Function function, void* argument) : function_(function), argument_(argument) {
    stack_ = StackPool::instance().take();
    boost::context::stack_context context;
    context.sp = stack_.bottom + stack_.bytes;
    context.size = stack_.bytes;
    inside_ = boost::context::fiber(std::allocator_arg,
                                    boost::context::preallocated(context.sp, context.size, context),
                                    PooledStack{}, [this](boost::context::fiber&& outside) {
                                      outside_ = std::move(outside);
                                      entered();
                                      function_(argument_);
                                      leaving(/*for_ever=*/true);
                                      return std::move(outside_);
                                    });
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  /// The function must have returned, or have been forgotten.
  ~Fiber() { StackPool::instance().give_back(stack_); }

  Stack stack() const { return stack_; }

  /// Runs the fiber until it suspends itself or its function returns.
  void resume() {
#ifdef CPU_DEVICE_ASAN
    __sanitizer_start_switch_fiber(&outside_fake_stack_, stack_.bottom, stack_.bytes);
#endif
    inside_ = std::move(inside_).resume();
#ifdef CPU_DEVICE_ASAN
    __sanitizer_finish_switch_fiber(outside_fake_stack_, nullptr, nullptr);
#endif
  }

  /// Of a fiber that is suspended where no exception may pass: what is on its stack is never destroyed, and
  /// it is not resumed again.
  void forget() { new boost::context::fiber(std::move(inside_)); }

  /// Called inside the fiber: back to whoever resumed it.
  void suspend() {
    leaving(/*for_ever=*/false);
    outside_ = std::move(outside_).resume();
    entered();
  }

 private:
  struct PooledStack {  // the pool owns the memory
    void deallocate(boost::context::stack_context&) noexcept {}
  };

#ifdef CPU_DEVICE_ASAN
  void entered() { __sanitizer_finish_switch_fiber(inside_fake_stack_, &outside_bottom_, &outside_bytes_); }
  void leaving(bool for_ever) {
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &inside_fake_stack_, outside_bottom_, outside_bytes_);
  }
  void* inside_fake_stack_ = nullptr;
  void* outside_fake_stack_ = nullptr;
  const void* outside_bottom_ = nullptr;
  size_t outside_bytes_ = 0;
#else
  void entered() {}
  void leaving(bool) {}
#endif

  Function function_;
  void* argument_;
  Stack stack_;
  boost::context::fiber inside_, outside_;
};

}  // namespace cpu_device
