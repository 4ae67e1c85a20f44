/// @file
/// Streams of the CPU device: who waits for whom, what runs when, and what the host knows. Private to the
/// host's side of the CPU device.
///
/// Everything queued is an Operation with the operations that must end before it. The calling thread runs
/// them, under one lock; which, and when, is the schedule's choice.
#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/cpu_device/base/random.hpp"
#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/declarations/host_api.hpp"
#include "common/cpu_device/streams/memory_table.hpp"
#include "common/cpu_device/streams/stream_operation.hpp"

namespace cpu_device {
struct Capture;
}

struct CUstream_st : cpu_device::Lane {
  unsigned long long id = ++ids;  ///< never that of another stream
  bool is_blocking = true;        ///< ordered with the legacy stream of its device
  int priority = 0;
  // While it captures:
  std::shared_ptr<cpu_device::Capture> capture;
  std::vector<size_t> capture_front;  ///< nodes that the next one comes after
  unsigned capture_lane = 0;
  cpu_device::Location joined_capture_at;

 private:
  static inline unsigned long long ids = 0;
};

struct CUevent_st {
  int device = 0;
  bool has_time = true;
  cpu_device::OperationPointer recorded;
  std::vector<cpu_device::OperationPointer> recorded_before;  ///< in other streams, in each the last one
  std::shared_ptr<cpu_device::Capture> capture;               ///< recorded in a capture, after these nodes
  std::vector<size_t> capture_front;
  unsigned capture_lane = 0;  ///< of the stream
};

namespace cpu_device {

constexpr int kMaxDevices = 8;

struct Device {
  CUstream_st legacy;
  std::map<std::thread::id, CUstream_st> per_thread;
  CUmemPoolHandle_st* default_pool = nullptr;
  size_t used_bytes = 0;                            ///< of its memory, with what pools have reserved
  std::set<int> peers;                              ///< whose memory its kernels may touch
  OperationPointer last_on_legacy;                  ///< what blocking streams wait for
  std::vector<OperationPointer> last_of_destroyed;  ///< streams, whose work goes on
  std::vector<OperationPointer>
      last_of_destroyed_blocking;  ///< of these those that the legacy stream waits for
};

class StreamEngine {
 public:
  StreamEngine();

  // --- enqueueing

  /// Behind everything in the stream, and what stream 0 orders; a node of the graph where the stream
  /// captures.
  /// @return null where it captures
  OperationPointer enqueue(CUstream_st&, Work, const std::vector<OperationPointer>& after = {});
  OperationPointer add(Lane&, Work, std::vector<OperationPointer> after);
  /// What the next operation of the stream will know.
  OrderClock known_to_next(const CUstream_st&);
  std::vector<OperationPointer> order_of_next(const CUstream_st&);
  /// Runs what the schedule wants to run by itself. Called where an API call begins, and behind enqueueing.
  void let_schedule_run();

  // --- waiting

  /// Runs it, and what it needs.
  void run_until_done(const OperationPointer&);
  /// The same, and from now on the host knows it.
  void wait_on_host(const OperationPointer&);
  void wait_on_host_for_device(int device);
  void run_everything();
  void run_one_of_those_needed_by(const OperationPointer&);
  void run_next_host_function(const std::string& signal);
  /// Of those that are queued; null if none is.
  OperationPointer first_host_function() const;
  OperationPointer choose_host_function();
  /// While a kernel waits for somebody else: runs something that may run beside it.
  /// @return false if nothing may
  bool run_beside_kernel();
  void host_learns(const OrderClock&, const std::vector<std::shared_ptr<TimePoint>>&);
  bool host_knows(const Operation& operation) const {
    return host_[operation.lane] >= operation.clock[operation.lane];
  }
  const OrderClock& host() const { return host_; }
  uint64_t host_functions_run() const { return host_functions_run_; }
  uint64_t oldest_pending() const { return pending_.empty() ? UINT64_MAX : pending_.begin()->first; }
  uint64_t last_id() const { return last_id_; }
  Operation* running() { return running_.get(); }
  /// After a failure: what is queued will not run, and the host counts as knowing everything.
  void abandon();
  void restart_schedule(uint64_t seed) { random_ = Random(seed, 0x73747265616d73); }

  // --- streams and lanes

  CUstream_st* find(cudaStream_t, DefaultStream, int device);
  CUstream_st* create_stream(int device, bool blocking, int priority);
  void destroy_stream(CUstream_st*);
  /// A stream that never runs anything: it makes a node of a graph.
  CUstream_st* create_builder(int device);
  void destroy_builder(CUstream_st*);
  unsigned take_lane();
  void give_lane_back(unsigned number) { free_lanes_.push_back(number); }
  Device& device(int number) { return devices_[number]; }
  size_t stream_count() const { return streams_.size(); }
  /// "stream 1: 3 operations are queued, first the upload; ..."
  std::string describe_queues() const;
  bool is_checking() const;
  /// Something that was queued has broken a rule.
  bool has_failed() const { return has_failed_; }

  // --- waits that may have missed what they were meant for, for reports

  /// It waits for an event that was not recorded yet.
  void note_wait_for_nothing(const CUstream_st&, const CUevent_st&, const Location& where);
  /// @param wait null: the host waits
  void note_wait(const OperationPointer& wait, const CUevent_st&);
  /// @param behind the operation before it in its stream; null if there is none
  void note_record(CUevent_st&, OperationPointer record, OperationPointer behind);
  void forget_event(const CUevent_st&);
  /// Where a wait between the two is for an event that was recorded before `first`, in its stream: that. Else
  /// empty.
  std::string explain_early_record(const Operation& first, const Operation& second) const;
  /// Where a wait that `second` comes behind does not cover `first`, because its event was recorded elsewhere
  /// or later: that. Else empty.
  std::string explain_wait_without_order(const Operation& first, const Operation& second) const;
  /// No wait orders the two, which are in different streams: the last wait of the stream of `second`, what it
  /// covers, and an event that covers `first`; where it has none, the wait of another stream for such an
  /// event.
  std::string explain_missing_wait(const Operation& first, const Operation& second) const;
  /// Where the one is a kernel of the legacy stream, and the other of a non-blocking stream: that. Else
  /// empty.
  std::string explain_legacy_kernel(const Operation& one, const Operation& other) const;
  /// What else is known of why `first` is not before `second`, which touch this memory; empty if nothing is.
  std::string explain_missing_order(const Operation& first, const Operation& second, const std::byte* begin,
                                    const std::byte* end) const;

  // --- slots of pinned memory that a ring of the program hands out

  void note_slot_taken(const std::string& ring, int number, const void* memory);
  void note_slot_given_back(const void* memory);
  /// A line on the first slot that went back while a download into it was queued; or nothing.
  const std::string& early_give_back() const { return early_give_back_; }

  // --- what the host's own code must not touch yet

  /// From now on.
  void watch_host_accesses();
  /// The host has seen what this host function has changed.
  void note_told_host(std::shared_ptr<const Operation> function, const std::string& signal);
  /// Ends the program where it comes too early. @param is_strong volatile or atomic
  void check_host_access(const std::byte* address, size_t bytes, bool write, bool is_strong,
                         const void* return_address);

  // --- virtual time

  std::vector<StreamSpan> take_spans();
  /// Of all work so far.
  double time_us();

  std::recursive_mutex mutex;
  MemoryTable memory;
  std::set<CUevent_st*> events;
  std::set<CUmemPoolHandle_st*> pools;
  std::set<Capture*> captures;
  size_t graphs = 0;  ///< graphs and executables of graphs
  GraphCalls graph_calls;

 private:
  bool can_run(const Operation&) const;
  void run(const OperationPointer&);
  void perform(const OperationPointer&);
  void note_touches(const OperationPointer&);

  // --- what the host must leave alone while a copy is queued

  void remember_source(Operation& copy);
  /// Of the copies behind `done` whose source it may have changed.
  void remember_sources_after(const Operation& done);
  /// @throws Failure if the source is not what it was
  void check_source(Operation& copy);
  /// A line on a host function that has run before the copy, for a wait that does not make it come after; or
  /// nothing.
  std::string explain_early_host_function(const Operation& copy) const;
  /// The same of a host function that has given the source back, or written to it.
  std::string explain_use_of_source(const Operation& copy) const;
  /// Where the source is a slot of a ring: what happened to the slot since, up to the colon in front of what
  /// has changed, and a line that says more. Else nothing.
  std::pair<std::string, std::string> explain_slot(const Operation& copy, const Allocation&) const;
  /// Why a host function that gave back, or wrote to, what the copy reads need not come behind it.
  std::string explain_no_order(const Operation& copy, const Operation& function) const;
  /// The same of a host function that has told the host of something, as of a slot that is free.
  std::string explain_told_host(const Operation& copy) const;
  /// Why a host function that was queued behind the copy may run before it.
  std::string explain_early_run(const Operation& copy, const Operation& function) const;
  /// Unless something that is queued may still read or write there.
  void spoil_target(const Operation& copy) const;
  /// @throws Failure if a host function reads what it has given back
  void check_given_back(const Operation& host_function, const GlobalAccesses&) const;
  void note_use_by_host_function(const OperationPointer& host_function, GlobalAccesses&);
  /// For partial_download().
  void note_download(const OperationPointer& copy);

  void note_queued_for_host(const OperationPointer&);
  void note_download_to_slot(const OperationPointer&);
  void note_ran_for_host(const OperationPointer&, GlobalAccesses&);
  /// @param end null where only the operation will tell what it touches
  void note_use_of_host_memory(const OperationPointer&, const std::byte* begin, const std::byte* end,
                               bool write);
  void run_kernels_for_host();

  std::set<uint64_t> needed_by(const OperationPointer&) const;
  void run_all_of(const std::set<uint64_t>& ids);
  void prune();
  void advance_time();

  struct WaitForNothing {
    std::string stream;
    Location where;
    const CUevent_st* event;  ///< null once it is gone
    OperationPointer record;  ///< the first one after the wait
    uint64_t id = 0;          ///< the operations enqueued so far
    std::string describe() const;
  };
  /// A wait for the last record of an event.
  struct WaitForRecord {
    OperationPointer wait;  ///< null: of the host
    OperationPointer last;
    std::vector<OperationPointer> earlier;  ///< records in other streams
    uint64_t id = 0;                        ///< the operations enqueued so far
  };
  struct RecordOfEvent {
    OperationPointer record, behind;
  };
  /// Memory of the host that a host function has given back, or written.
  struct UseByHost {
    std::shared_ptr<const Operation> function;
    std::vector<Ranges::Range> ranges;
    bool gives_back = false;
    uint64_t id = 0;  ///< the operations enqueued by then
  };
  std::deque<WaitForNothing> waits_for_nothing_;
  std::deque<RecordOfEvent> records_of_events_;
  std::deque<UseByHost> uses_by_host_;
  struct ToldHost {
    std::shared_ptr<const Operation> function;
    std::string signal;
    uint64_t id = 0;  ///< the operations enqueued by then
  };
  std::deque<ToldHost> told_host_by_;
  std::deque<WaitForRecord> waits_for_records_;
  std::deque<OperationPointer> host_functions_that_ran_;

  std::map<uint64_t, OperationPointer> pending_;
  uint64_t last_id_ = 0, host_functions_run_ = 0;
  OrderClock host_;
  OperationPointer running_;
  bool nobody_waits_ = false;  ///< for what runs: it is the schedule's choice
  bool has_failed_ = false;
  std::string early_give_back_;
  size_t sources_ = 0;  ///< that are remembered
  bool watches_host_ = false;
  std::vector<Allocation::Record> host_memory_in_use_;
  OrderClock told_host_;   ///< of host functions that have run
  bool is_stuck_ = false;  ///< the kernel that runs spins, and nothing can run beside it
  Random random_{1, 0x73747265616d73};
  size_t prune_at_ = 256;

  Device devices_[kMaxDevices];
  std::set<CUstream_st*> streams_;
  unsigned streams_made_ = 0;
  std::vector<uint64_t> ticks_;  ///< of each lane, the last
  std::vector<unsigned> free_lanes_;

  std::deque<OperationPointer> untimed_;
  double engine_free_us_[kMaxDevices][kEngines] = {};
  double host_us_ = 0, latest_us_ = 0;
  std::vector<std::shared_ptr<TimePoint>> host_after_;
  std::vector<StreamSpan> spans_;
};

StreamEngine& streams();
/// A line on the first download to pinned memory that brings the beginning of a buffer and not the rest; or
/// nothing.
const std::string& partial_download();
/// The device that this host thread has chosen.
int current_device();
void choose_device(int device);
int device_count();
/// @throws Failure, with the schedule behind the rule, and behind that lines that say where.
[[noreturn]] void fail(const std::string& rule, const std::string& places = "");
/// May a kernel on this device touch it?
bool may_access(int device, const Allocation&);
/// Memory that pools hold beyond their thresholds is given back where the host waits.
void release_unused_memory_of_pools();
/// Makes the operation a node of the graph that the stream captures.
void capture_work(CUstream_st&, Work);

}  // namespace cpu_device
