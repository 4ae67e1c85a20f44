/// @file
/// The meeting point of the engine and the access hooks: which thread of which kernel runs on this OS thread,
/// and who wants to know what it loads and stores.
///
/// How programs are built is said at the top of hooks.cpp and in instrumentation.cmake.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cpu_device {

class AccessCounter;
class RaceChecker;
class VirtualClock;

/// A thread of the running cluster as the hooks need it. The engine keeps one for each fiber.
struct ObservedThread {
  unsigned index = 0;                     ///< in the cluster: block * threads per block + rank in the block
  unsigned block = 0;                     ///< rank of its block in the cluster
  const std::byte* stack_begin = nullptr; ///< lowest address of the fiber's stack
  const std::byte* stack_end = nullptr;
};

/// Shared memory of one block of the cluster, as ordinary loads and stores see it.
struct SharedWindow {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

/// What the hooks report to. One for each OS thread; the engine that runs there owns what it points to.
///
/// Before a cluster runs the engine fills in the observers that are wanted (any may be null) and the windows.
/// Before it resumes a fiber it sets `running`, but only if at least one observer is set; it clears `running`
/// when it runs code of its own that might be instrumented, and when the cluster ends. `running` is the only
/// thing that an access of an unobserved kernel looks at.
struct Observers {
  const ObservedThread* running = nullptr;
  RaceChecker* races = nullptr;
  AccessCounter* counter = nullptr; ///< only in clusters that are sampled
  VirtualClock* clock = nullptr;    ///< only in the cluster whose virtual time is wanted
  const SharedWindow* shared = nullptr;
  unsigned blocks = 0; ///< length of `shared`: one window for each block of the cluster
};

/// The observers of this OS thread. (Trivial on purpose: reading it is one instruction.)
inline constinit thread_local Observers observers;

} // namespace cpu_device
