/// @file
/// The meeting point of the engine and the access hooks: which thread of which kernel runs on this OS thread,
/// and who wants to know what it loads and stores.
///
/// How programs are built is said at the top of hooks.cpp and in instrumentation.cmake.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cpu_device {

enum class AccessKind : uint8_t;
class AccessCounter;
class RaceChecker;
class VirtualClock;
class MemoryGuard;
struct ForbiddenZone;
struct GlobalAccesses;
class GridOrder;
class SharedLayout;

/// Loads in a row, of few places and with no store between them: what a loop makes that waits for a change.
struct LoopOfLoads {
  static constexpr unsigned kPlaces = 4, kPatience = 1 << 16;
  const void* places[kPlaces] = {};
  unsigned oldest = 0;
  unsigned count = 0;  ///< since it looked at another place; not from 0 where it has let others run
  uint64_t looks = 0;  ///< before those
};

/// A thread of the running cluster as the hooks need it. The engine keeps one for each fiber.
struct ObservedThread {
  unsigned index = 0;  ///< in the cluster: block * threads per block + rank in the block
  unsigned block = 0;  ///< rank of its block in the cluster
  unsigned warp = 0;   ///< in the cluster: block * warps per block + warp in the block
  unsigned lane = 0;
  const std::byte* stack_begin = nullptr;  ///< lowest address of the fiber's stack
  const std::byte* stack_end = nullptr;
  mutable LoopOfLoads loop = {};
  mutable bool is_behind_fence = false;  ///< it has stored nothing since its last one
};

/// Shared memory of one block of the cluster, as ordinary loads and stores see it.
struct SharedWindow {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

/// Bytes before and behind a window that nothing else lies in: an access there is an index that is wrong.
constexpr std::size_t kSharedGuardBytes = 4096;

/// The windows of all blocks of a cluster, or of a cooperative grid. (Whoever fills them in owns them, so
/// that Observers is trivial.)
struct SharedWindows {
  const SharedWindow* windows = nullptr;
  unsigned count = 0;

  unsigned size() const { return count; }
  const SharedWindow& operator[](unsigned block) const { return windows[block]; }
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
  AccessCounter* counter = nullptr;  ///< only in clusters that are sampled
  VirtualClock* clock = nullptr;     ///< only in the cluster whose virtual time is wanted
  GlobalAccesses* global = nullptr;  ///< only in kernels whose stream has neighbours
  GridOrder* grid_order = nullptr;   ///< only where clusters hand over to each other; needs races
  MemoryGuard* guard = nullptr;      ///< where global memory ends
  SharedLayout* layout = nullptr;    ///< of what kernels declare with __shared__, where they do
  SharedWindows shared;              ///< a window for each block of the cluster
  bool is_cooperative = false;       ///< no block can reach another's
  uint32_t blocks_that_left = 0;     ///< of a cluster: a bit for each whose threads have all exited
  uint32_t early_blocks = 0;         ///< a bit for each that has not waited for the kernel before
  uint64_t stores = 0;               ///< that were seen
  /// The last access, where it is one of 16 bytes at a multiple of 8 that is none of 16: whether that is too
  /// little for its type only the instruction knows, which then faults. Else null.
  const void* half_aligned = nullptr;
  bool half_aligned_writes = false;
  const void* half_aligned_return_address = nullptr;
};

/// The running thread loads the same few places again and again: lets others run.
void wait_for_a_store(const void* return_address);
/// For GridOrder. Records the failure, if it is one.
void check_order_in_grid(const void* address, std::size_t bytes, bool write, AccessKind,
                         const void* return_address);
/// Of global memory that no allocation covers. Records the failure.
void report_forbidden_access(const ForbiddenZone&, const void* address, std::size_t bytes, bool write,
                             const void* return_address);
/// Of an access whose type asks for more. Records the failure, and does not return.
void report_misaligned_access(const void* address, std::size_t bytes, bool write, const void* return_address);
/// A load of what fresh shared memory holds, where nobody has written.
void note_unwritten_load(unsigned block, std::size_t offset, const void* return_address);
/// Of shared memory that is no part of a variable. Records the failure.
void report_overrun_in_shared_memory(std::size_t offset, std::size_t bytes, bool write,
                                     const void* return_address);
/// Likewise, of what lies before a block's shared memory, or behind it. @param offset of the first byte
void report_access_beyond_block(std::ptrdiff_t offset, std::size_t bytes, bool write,
                                const void* return_address);
/// Somebody accessed the shared memory of such a block. Records the failure.
void report_access_to_block_that_left(unsigned block, bool write, const void* return_address);

inline constinit thread_local Observers observers_of_this_os_thread;

/// Called with what the host's own instrumented code accesses; null while that is nobody's business.
using HostAccessObserver = void (*)(const void* address, std::size_t bytes, bool write, bool is_strong,
                                    const void* return_address);
inline std::atomic<HostAccessObserver> host_access_observer = nullptr;

/// The observers of this OS thread. Fibers never leave theirs, so a compiler may keep the address.
inline Observers& observers() { return observers_of_this_os_thread; }

/// While one lives, nobody runs: for code of the engine that uses templates of the standard library, of which
/// the linker may take the copy of an instrumented source.
class Unobserved {
 public:
  Unobserved() : before_(observers().running) { observers().running = nullptr; }
  ~Unobserved() { observers().running = before_; }
  Unobserved(const Unobserved&) = delete;
  Unobserved& operator=(const Unobserved&) = delete;

 private:
  const ObservedThread* const before_;
};

}  // namespace cpu_device
