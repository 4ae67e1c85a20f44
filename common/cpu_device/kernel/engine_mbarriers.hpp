/// @file
/// mbarriers: their phases, who arrived, and who tells them of what has landed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

class Cluster;
struct Block;
struct CopyGroup;
struct CountedCopy;
struct PendingOperation;
struct RemoteArrival;
struct Thread;

struct Mbarrier {
  Block* block = nullptr;
  uint32_t offset = 0;
  uint32_t expected = 0, pending = 0;
  int64_t missing_bytes = 0;
  int64_t expected_bytes = 0, last_expected_bytes = 0;  ///< of this phase and of the one before
  bool has_had_bytes = false;                           ///< in any phase
  uint64_t phase = 0;
  const char* name = nullptr;  ///< of a barrier that is not called as the source calls it
  int name_index = -1;
  std::string note;        ///< see note_of()
  size_t noted_among = 0;  ///< so many mbarriers of the block: the name depends on the others
  Location initialised_at;
  const char* end = "";  ///< of a pipeline: "full" or "empty"
  int slot = 0;          ///< of that pipeline
  const Thread* initialised_by = nullptr;
  bool fenced = false;  ///< after its initialisation: the cluster may use it
  std::vector<Thread*> waiting;
  uint32_t waiting_warps = 0;  ///< a bit for each that waits, or has waited, in this phase

  struct Arrival {
    const char* what;
    const Thread* thread;
    Location where;
    bool of_operation = false;                ///< bytes of a copy, or an arrival in flight
    uint64_t waits_before = 0;                ///< phases that the thread had seen end, at any barrier
    std::optional<ArrivalOrder> remote = {};  ///< of an arrival that may be of another block
    uint32_t epoch = 0;                       ///< of the thread, when it sent that
    uint32_t bytes = 0;                       ///< that a copy has brought; 0 of an arrival
    uint32_t box_rows = 0;                    ///< of the box of a TMA load; 0 of other copies
    bool needs_cluster_scope = false;         ///< of a wait for such a copy
    uint32_t multicast_mask = 0;              ///< of such a copy
    bool wgmma_in_flight = false;             ///< of the thread, which had not waited for it
  };
  /// A wait that has ended.
  struct Wait {
    uint64_t phase = 0;  ///< that goes on
    uint32_t epoch = 0;  ///< of the thread
    bool of_cluster = false;
    const char* what = "";
    Location where;
  };
  std::vector<Arrival> arrivals, last_arrivals, earlier_arrivals;  ///< of this phase and of the two before
  /// For each thread of the block that has waited here: the phases whose end it has seen, or passed by.
  std::vector<uint64_t> phases_seen;
  uint64_t last_phase_passed = 0;       ///< by any thread
  std::vector<uint64_t> phases_passed;  ///< of those, how many had another end behind it
  std::vector<uint64_t> waits;          ///< that have ended, of each of these threads
  /// The last wait that a phase ended which the same thread had waited for before.
  struct RepeatedWait {
    const Thread* thread = nullptr;
    Location where;
    uint64_t phase = 0;
  };
  RepeatedWait repeated_wait;
  /// The first wait that passed before the first phase had ended, by its parity.
  RepeatedWait early_pass;
  /// The first wait that passed although its slot was not filled again, or not emptied. The slot had been
  /// filled and emptied so often.
  struct EarlyWait {
    const Thread* thread = nullptr;
    Location where;
    uint32_t parity = 0;
    uint64_t filled = 0, emptied = 0;
  };
  EarlyWait early_wait;
  /// The first wait that is right, for a slot that another thread has released before this one looked.
  struct LateLook {
    const Thread* thread = nullptr;
    Location where;
    const Thread* releases = nullptr;
    Location released_at;
  };
  LateLook late_look;
  /// The other end of its slot, and how many mbarriers the block had when it was looked for; see other_end().
  mutable const Mbarrier* partner = nullptr;
  mutable size_t partnered_among = 0;
  mutable bool is_full = false;         ///< of the two ends
  std::vector<uint32_t> times_arrived;  ///< in all phases, for each thread of the cluster; empty if none did
  std::vector<Wait> last_waits;         ///< of each of these threads, where races are checked

  SyncObject released, completed;  ///< what arrivals of this phase, and of completed ones, make known
  SyncObject released_afar, completed_afar;  ///< by threads of other blocks, to waits of the cluster's scope
  double latest_arrival = 0, completed_at = 0;
};

/// The mbarrier that lives in these eight bytes. @throws if there is none.
Mbarrier& find_mbarrier(Thread&, const uint64_t* object, Location where);
/// The one at the same place in another block. `operation` is the word that reports show.
Mbarrier& find_mbarrier(Thread&, Block&, const uint64_t* object, const char* operation, Location where);
/// " for full[1]": which barrier an operation completes on, for the race checker. Kept: operations are many.
const std::string& note_of(Mbarrier&);
/// "empty" of the slot whose "full" it is, or the reverse; null if there is none. Sets Mbarrier::is_full.
const Mbarrier* other_end(const Mbarrier&);
/// Of a block that ends: slots that were filled and that nobody waited for. A sentence; empty if there are
/// none. They are legal, as where a loader fetches what may be needed next.
std::string describe_unread_fills(const Block&);
/// In any phase.
bool has_ever_arrived(const Mbarrier&, const Thread&);
/// Records a failure if the thread has used mbarriers for two seconds without waiting once: its loop does not
/// end.
void check_loop_ends(Thread&, Location where);
/// An arrival by a thread of another block.
void arrive_from_afar(Cluster&, const RemoteArrival&);
/// An arrival on an mbarrier by an asynchronous operation.
void arrive_for_operation(Cluster&, Mbarrier&, const CopyGroup&);
/// The bytes of a copy have landed.
void count_bytes_of(Cluster&, const CountedCopy&);
/// Records a failure if bytes were expected that never came, or came and were never expected.
void check_bytes_at_exit(Thread& last, const Block&);
/// Records a failure if a copy writes where a mbarrier of the block is in use.
void check_not_over_mbarrier(Cluster&, const PendingOperation&, Block&, size_t offset, size_t bytes);
/// The mbarriers that this thread has initialised may be used by the async proxy.
void publish_initialised_mbarriers(const Thread&);

}  // namespace cpu_device
