/// @file
/// Happens-before in global memory. What clusters of one launch hand over to each other must be released
/// before an atomic operation and acquired after it, at the scope of the device. Threads of one cluster, or
/// of a cooperative grid, which is one here, may also meet at a barrier.
///
/// Kept for each byte: the last write. A read or a write by another thread must be ordered after it. A plain
/// store must also be ordered after the last two plain loads of its own cluster, and after the last one of
/// the cluster before. Plain loads and stores count, and copies that the hardware makes, as if they ended
/// where they are issued. Clusters run one at a time, so nothing here needs a lock.
///
/// The rules are those of the PTX memory model:
/// - An atomic operation that releases, or one that follows a fence of the same thread, releases what the
///   thread knew when it released or fenced; it is acquired by an atomic operation that acquires, or by a
///   fence of the thread that made the operation.
/// - `__threadfence` is fence.sc, which does more: a fence that is ordered before one operation orders all
///   that it covers before a fence that is ordered after the other, whatever threads execute the fences.
///   (In Fence-SC order the second could not come before the first: the one operation has seen the other.)
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

struct Thread;
struct TmaBox;

class GridOrder {
 public:
  /// In the source: of a plain load or store the hook's return address, of a copy its call.
  struct Place {
    const void* return_address = nullptr;
    Location call;
    const char* what = nullptr;  ///< of an atomic operation: its name
    bool is_box = false;         ///< of TMA, that begins at this column and row of its tensor
    int column = 0, row = 0;
    int columns = 0, rows = 0;  ///< of the box
    /// Where the box of the same thread's last store of the bulk group begins; -1: there is none.
    int column_before = -1, row_before = -1;
    uint64_t group = 0,
             waited_for = 0;  ///< of a store: its bulk group, and how many its thread knows written
  };
  /// A thread of the cluster that runs.
  struct Who {
    unsigned thread = 0;  ///< its number in the cluster
    unsigned rank = 0;    ///< in its block
    Uint3 block;
  };

  /// The clusters after this call are others than those before.
  void begin_cluster() {
    ++cluster_;
    looked_at_.clear();
    last_loads_.clear();
    readers_of_this_ = nullptr;
    fences_.clear();
    pending_.clear();
    acquired_.clear();
  }

  /// A fence of the scope of the device.
  void fence(RaceChecker&, const Who&, Location where, bool is_sequentially_consistent);
  /// An atomic operation. One of a narrower scope than the device orders nothing here.
  struct Atomic {
    const void* object = nullptr;
    Location where;
    bool is_of_device = true;
  };
  void before_atomic(RaceChecker&, const Who&, const Atomic&, bool releases);
  void after_atomic(RaceChecker&, const Who&, const Atomic&, bool acquires);

  /// @return what is wrong with a load or store of global memory; empty if nothing.
  /// An atomic operation that changes nothing is a load. Of a plain load that nothing orders with an atomic
  /// operation suspicion() tells.
  std::string access(const RaceChecker&, const Who&, const std::byte* address, size_t bytes, bool write,
                     AccessKind, const Place& place);
  /// The first plain load that nothing orders with an atomic operation; empty if there is none. A load at
  /// whose line a thread has then changed the same object atomically (a loop of atomicCAS) was a guess.
  std::string suspicion() const;
  /// The block that has stored the byte last; false if none has.
  bool find_writer(const std::byte* address, Uint3& block) const;
  /// What two warpgroups, or two warps of one, of a block have stored by the same line, in no order. Of the
  /// first two that have.
  struct StoredTwice {
    const std::byte *first = nullptr, *last = nullptr;
    Uint3 block;
    bool are_warpgroups = false;
    unsigned parts[2] = {};  ///< their numbers, the lower one first
    std::string place;
  };
  const StoredTwice* stored_twice() const { return stored_twice_.first ? &stored_twice_ : nullptr; }
  /// The last store, if it changed what another thread of its cluster had stored without being ordered after
  /// that. Empty if it did not.
  std::string changed_by_last_store();

 private:
  /// How far the threads of each cluster are known.
  using Knowledge = std::map<uint64_t, std::vector<uint32_t>>;
  using SharedKnowledge = std::shared_ptr<const Knowledge>;
  /// What the atomic operations on an object so far tell those who look at it.
  struct Message {
    SharedKnowledge released;  ///< by them, or by fences that their threads executed before
    SharedKnowledge fenced;    ///< by fences of any thread that are ordered before them
  };
  struct Fence {
    unsigned thread = 0;
    uint32_t epoch = 0;
    Location where;
    bool is_sequentially_consistent = true;
    SharedKnowledge known;
  };
  /// A thread has looked at an object.
  struct Pending {
    unsigned thread = 0;
    uint32_t epoch = 0;
    Message message;
  };
  struct Acquired {
    unsigned thread = 0;
    uint32_t epoch = 0;
    SharedKnowledge what;
  };
  struct Write {
    uint64_t cluster = 0;
    Who who;
    uint32_t epoch = 0;
    Place place;
    AccessKind kind = AccessKind::plain;
    SharedKnowledge released;  ///< by a store behind a fence
    bool is_load = false;      ///< a plain load that an atomic operation follows
  };
  struct Suspicion {
    std::string text;
    const void* load;
    const std::byte* address;
    uint64_t cluster;
    unsigned thread;
  };
  /// The last plain loads of a thread.
  struct LastLoads {
    static constexpr unsigned kCount = 4;
    const std::byte* address[kCount] = {};
    const void* place[kCount] = {};
    unsigned next = 0;
  };
  /// An atomic operation, kept to explain what it did not order.
  struct Operation {
    uint64_t cluster = 0;
    Who who;
    uint32_t epoch = 0;
    Atomic atomic;
    bool changes = false, looks = false, acquires = false;
    Location fence;                                 ///< the thread's last one before; line 0: none
    std::vector<uint32_t> known, released, fenced;  ///< of its own cluster, where it changes the object
  };
  struct Explanation;
  /// The last write of each byte.
  class LastWrites {
   public:
    /// Calls `function` with each write that was the last of one of these bytes, in the order of the bytes;
    /// one that was the last of several in a row may come once. Stops where it returns false.
    void for_each(const std::byte* address, size_t bytes,
                  const std::function<bool(const Write&)>& function) const;
    void set(const std::byte* address, size_t bytes, const Write& write);

   private:
    struct Store {
      const std::byte* address = nullptr;
      size_t bytes = 0;
      Write write;
    };
    static constexpr uintptr_t kPageBytes = 4096;
    using Page = std::vector<uint32_t>;  ///< for each byte its number in stores_, from 1; 0: never written
    std::deque<Store> stores_;
    std::unordered_map<uintptr_t, Page> pages_;
  };

  /// The last two threads of a cluster that have loaded a word, and the last one of the cluster before.
  class LastReads {
   public:
    struct Read {
      uint32_t cluster = 0;
      uint32_t epoch = 0, place = 0;
      uint16_t thread = 0;
      uint8_t mask = 0;  ///< a bit for each byte of the word
    };
    void note(const std::byte* address, size_t bytes, const Read& read);
    /// Calls `function` with each, until it returns true.
    template <class Function>
    void find(const std::byte* address, size_t bytes, const Function& function);

   private:
    static constexpr uintptr_t kWordBytes = 4, kPageWords = 1024;
    using Word = std::array<Read, 3>;
    using Page = std::vector<Word>;
    template <class Function>
    void for_each_word(const std::byte* address, size_t bytes, bool makes, const Function& function);
    std::unordered_map<uintptr_t, Page> pages_;
    uintptr_t last_number_ = 0;
    Page* last_page_ = nullptr;
  };
  /// A store where another thread of the cluster had stored, by the same line and in no order, or where
  /// another cluster has loaded. It is wrong if it stores something else.
  struct UnorderedStore {
    const std::byte* address = nullptr;
    std::vector<std::byte> before;
    std::function<std::string()> race;  ///< describes it
  };

  Knowledge known_to(RaceChecker&, unsigned thread);
  bool is_ordered_in_cluster(const RaceChecker&, unsigned thread, const Write&) const;
  bool has_seen(const RaceChecker&, unsigned thread, const Write&) const;
  std::string overwritten_read(const RaceChecker&, const std::byte* address, size_t bytes, const Write& now);
  bool may_come_after(const RaceChecker&, unsigned thread, const Write& load) const;
  void acquire(unsigned thread, uint32_t epoch, const SharedKnowledge& what);
  const Fence* last_fence(unsigned thread) const;
  Operation& remember(const RaceChecker&, const Who&, const Atomic&);
  std::vector<uint32_t> of_this_cluster(const SharedKnowledge&) const;
  bool is_ordered(const RaceChecker&, unsigned thread, const Write&) const;
  /// Empty where no atomic operation leads from the one to the other.
  std::string explain(const RaceChecker&, const Write& first, const Write& second) const;
  Explanation explain_first(const Write& first, const Operation&) const;
  Explanation explain_second(const RaceChecker&, const Write& second, const Operation&) const;
  static std::string describe(const Write&);
  void note_stored_twice(const std::byte* address, const Write& first, const Write& second);
  void note_guesses(const Who&, const std::byte* object);
  void suspect(std::string text, const Write& load, const std::byte* address);
  std::string describe_race(const RaceChecker&, const Write& first, const Write& second,
                            bool second_writes) const;
  std::string describe_race_in_cluster(const Write& first, const Write& second, bool second_writes,
                                       const std::byte* address, size_t bytes);
  /// Has a thread of the cluster loaded there by the line of the store?
  bool is_read_by_line(const Place& of_store, const std::byte* address, size_t bytes);

  uint64_t cluster_ = 0;
  std::vector<Fence> fences_;                ///< of the cluster that runs
  std::vector<Pending> pending_;             ///< by its threads
  std::vector<Acquired> acquired_;           ///< by its threads
  std::map<const void*, Message> messages_;  ///< by atomic object
  std::deque<Operation> operations_;         ///< the last ones
  LastWrites writes_;
  LastReads reads_;
  std::unordered_map<uint64_t, std::vector<Who>> readers_;   ///< by cluster and thread
  std::vector<Who>* readers_of_this_ = nullptr;              ///< of the cluster that runs
  std::vector<Place> places_{1};                             ///< of loads
  std::unordered_map<const void*, uint32_t> place_numbers_;  ///< by return address
  UnorderedStore unordered_store_;
  StoredTwice stored_twice_;
  std::unordered_set<const void*> looked_at_;              ///< by atomic operations of this cluster
  std::map<const void*, std::vector<Write>> plain_loads_;  ///< of what atomic operations have changed
  std::vector<LastLoads> last_loads_;                      ///< by thread
  std::vector<Suspicion> suspicions_;
  std::set<const void*> guesses_;             ///< places of loads
  const std::byte* first_written_ = nullptr;  ///< all writes are between these: most loads are elsewhere
  const std::byte* written_end_ = nullptr;
};

/// For a copy of `thread`, where clusters hand over to each other. Records the failure.
void check_copy_in_grid(Thread& thread, const void* address, size_t bytes, bool write, Location where,
                        const TmaBox* box = nullptr);

}  // namespace cpu_device
