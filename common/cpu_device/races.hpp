/// @file
/// Happens-before checking of shared memory. Two accesses to the same byte, at least one of them a write,
/// must be ordered by barriers, fences and completions; the checker reports the first pair that is not, even
/// if the values happen to be right in this schedule.
///
/// Every thread carries a vector clock of what it has synchronised with, and a second one of what is also
/// visible to the async proxy. An asynchronous operation (cp.async, TMA, wgmma) is an agent of its own: it
/// knows what its issuers knew, and is known to whoever waited for it. The algorithm is FastTrack (Flanagan
/// and Freund, PLDI 2009): a cell of shadow memory holds the epoch of its last write, not a clock.
///
/// One checker serves one cluster at a time, on one OS thread. Threads are numbered through the cluster:
/// block * threads per block + rank in the block.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cpu_device {

/// How an access reaches shared memory. Ordinary loads and stores, ldmatrix and cp.async use the generic
/// proxy; TMA and wgmma use the async proxy.
enum class Proxy : uint8_t { generic, async };

/// A place in the source, compact enough to be kept with every access. 0: unknown.
using Site = uint32_t;

/// Allocates vector clocks. All clocks of one pool have the same number of components.
class ClockPool;

/// A shared, reference-counted vector clock that is copied when it is changed. Null means all zero.
class ClockRef {
 public:
  ClockRef() = default;
  ClockRef(const ClockRef& other);
  ClockRef(ClockRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  ClockRef& operator=(ClockRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~ClockRef();

  uint32_t operator[](unsigned component) const;
  bool operator==(const ClockRef& other) const { return node_ == other.node_; } ///< the same object

 private:
  friend class ClockPool;
  struct Node;
  Node* node_ = nullptr;
};

/// What a barrier, mbarrier or flag carries from those who arrive to those who wait. One object for each
/// phase of a barrier; clear() starts the next.
class SyncObject {
 public:
  void clear() { *this = {}; }

 private:
  friend class RaceChecker;
  ClockRef known_, visible_;
  ClockRef last_known_, last_visible_; // joined last: most threads that arrive share their clock
};

/// An asynchronous operation in flight: the knowledge that it started with and its identity.
class AsyncOperation {
 public:
  bool started() const { return agent_ != 0; }

 private:
  friend class RaceChecker;
  struct Knowledge {
    ClockRef clock, last;   // `last` is what was met last
    uint32_t own_epoch = 0; // what the only issuer knows of itself
    unsigned exempt = 0;    // the issuer whose component `last` does not limit
  };
  Knowledge known_, visible_;
  unsigned issuers_ = 0, only_issuer_ = 0;
  unsigned agent_ = 0;
  uint32_t epoch_ = 0;
  Proxy proxy_ = Proxy::generic;
  Site site_ = 0;
};

class RaceChecker {
 public:
  /// Called with the text of the first race. It may throw or switch away for good; if it returns, the checker
  /// stays silent until the next begin().
  using Report = std::function<void(const std::string&)>;
  /// How a thread is called in reports; "loader, warp 4 lane 0 of block 0" for example.
  using Describe = std::function<std::string(unsigned thread)>;

  /// A null `describe` stands for "block b warp w lane l".
  explicit RaceChecker(Report report, Describe describe = nullptr);
  ~RaceChecker();
  RaceChecker(const RaceChecker&) = delete;
  RaceChecker& operator=(const RaceChecker&) = delete;

  /// Starts a cluster of `blocks` blocks with `threads_per_block` threads and `shared_bytes` bytes of shared
  /// memory each. SyncObjects and AsyncOperations of the last cluster must be cleared or dropped before.
  void begin(unsigned blocks, unsigned threads_per_block, std::size_t shared_bytes);

  // --- ordering between threads -----------------------------------------------------------------------

  /// All of `threads` wait for each other: __syncthreads, __syncwarp, a named barrier, cluster.sync. Call it
  /// when the last one arrives. elect, shuffles and votes order nothing: do not call it for them.
  void barrier(const unsigned* threads, unsigned count);
  /// The same for threads first, first + 1, ..., first + count - 1.
  void barrier_range(unsigned first, unsigned count);
  /// `thread` makes what it did so far known to those who acquire `sync`.
  void release(unsigned thread, SyncObject& sync);
  void acquire(unsigned thread, const SyncObject& sync);
  /// fence.proxy.async by `thread`: all that it knows of becomes visible to operations of the async proxy
  /// that are ordered after the fence, no matter who wrote it and who issues them.
  void fence_proxy_async(unsigned thread);

  // --- asynchronous operations ------------------------------------------------------------------------

  /// The queue that an operation completes in. Operations of one queue complete in the order of issue.
  enum class Queue : uint8_t {
    thread,    ///< cp.async: one queue for each thread
    warpgroup, ///< wgmma: one queue for each warpgroup
    none       ///< TMA: each operation completes on its own
  };
  /// `thread` issues an operation. An operation of several threads (wgmma) is issued once by each: it may
  /// rely on nothing but what all of them know.
  void issue(AsyncOperation& op, unsigned thread, Queue queue, Proxy proxy, Site site);
  /// `thread` waited for the operation: wgmma.wait_group, cp.async.wait_group, bulk.wait_group.
  void acquire(unsigned thread, const AsyncOperation& op);
  /// The operation completes on a barrier: who acquires `sync` has waited for it. (This says nothing about
  /// what its issuer did; the issuer's own arrival does.)
  void complete(const AsyncOperation& op, SyncObject& sync);

  // --- accesses ---------------------------------------------------------------------------------------

  /// `thread` itself accesses [offset, offset + bytes) of the shared memory of `block` (its rank in the
  /// cluster). Bytes beyond the block's shared memory are ignored.
  void access(unsigned thread, unsigned block, std::size_t offset, std::size_t bytes, bool write, Site site);
  /// The operation does. It may be called any number of times, at any time after the last issue().
  void access(const AsyncOperation& op, unsigned block, std::size_t offset, std::size_t bytes, bool write);

  /// The place that a call returns to: a plain access. Resolved to file and line only when a report needs it.
  Site site(const void* return_address);
  /// A place that the engine knows. `what` accesses memory there: "ldmatrix", "cp.async", "TMA load",
  /// "wgmma". Both texts must be literals.
  Site site(const char* file, unsigned line, const char* what);

  bool reported() const { return reported_; }

 private:
  struct Thread;
  struct Cell;
  struct Readers;
  struct Accessor;

  bool knows(const Accessor&, unsigned component, uint32_t epoch) const;
  template <bool kWrite>
  void check_range(const Accessor&, unsigned block, std::size_t offset, std::size_t bytes);
  void check_write(const Accessor&, Cell&, unsigned block, std::size_t offset, uint8_t mask);
  void check_read(const Accessor&, Cell&, unsigned block, std::size_t offset, uint8_t mask);

  Report report_;
  Describe describe_;
  bool reported_ = false;
};

} // namespace cpu_device
