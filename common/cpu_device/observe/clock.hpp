/// @file
/// Virtual time: what one SM would do with one block, as far as a handful of constants can say. It shows
/// whether copies and math overlap and who waits for whom; it does not predict microseconds.
///
/// Threads run one after the other here, in any order, so time is bookkeeping: every thread has its own
/// clock, and memory and the cores are resources whose free capacity is looked up at the time of the request.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/cpu_device/base/warp.hpp"
#include "common/cpu_device/cpu_device.hpp"

namespace cpu_device {

/// The constants of the model, in cycles of one SM. Measured: on an H200, CUDA 13.0. Derived: from published
/// or measured figures. Assumed: plausible, to be replaced by a fit to recorded traces.
struct ClockModel {
  double sm_clock_ghz = 1.98;  ///< published maximum; only to convert, the model itself counts cycles
  /// Derived. Memory moves 4.8 TB/s (published): 18 B/clk for each of 132 SMs. Tiles that neighbours share
  /// come from L2 at about 2.3 times that (assumed), and most of a GEMM's tiles do.
  double memory_bytes_per_cycle = 42;
  double memory_latency = 700;  ///< assumed: 600-800 for a miss
  /// Derived: 989 TFLOP/s dense bf16 = 132 SMs x 1.83 GHz x 4096.
  double tensor_flops_per_cycle = 4096;
  /// Derived: 4 sub-cores with a quarter each, and mma.sync at about 5/8 of wgmma's rate (assumed).
  double mma_sync_flops_per_cycle = 640;  ///< of one sub-core
  double fma_flops_per_cycle = 64;        ///< published: 32 FMA lanes, of each of 4 sub-cores
  /// Derived: a thread of the `fma` core holds 2 rows x 32 columns of sums (wgmma's fragment), so 34 operands
  /// of 2 bytes feed 64 FMAs.
  double fma_per_shared_byte = 1;
  double shared_bytes_per_cycle = 128;  ///< published: 32 banks x 4 bytes
  double shared_latency = 30;           ///< assumed
  double issue_cycles = 1;              ///< assumed: of a load or store that nobody waits for
  double barrier_cycles = 20;           ///< assumed
  /// Of a byte or an arrival from SM to SM. Assumed, after published measurements of about 180 on an H100.
  double cluster_latency = 180;
  /// That one SM sends to others. Assumed, after the same: about 3.3 TB/s of 132 SMs.
  double cluster_bytes_per_cycle = 14;
};

/// What one block's timeline says, in cycles.
struct BlockTime {
  double length = 0;   ///< until its last thread ends
  double copy = 0;     ///< union of the spans in which a copy from global memory was in flight
  double math = 0;     ///< union of the spans in which tensor or CUDA cores computed
  double overlap = 0;  ///< intersection of the two
};

/// When an asynchronous store is done with shared memory, and when its bytes are in global memory.
struct StoreTime {
  double read = 0, written = 0;
};

/// The timeline of one cluster; each block has an SM of its own. Threads are numbered through the cluster.
class VirtualClock {
 public:
  explicit VirtualClock(const ClockModel& model = {}) : model_(model) {}

  /// Starts a cluster at time 0. Spans for a trace are kept if `trace`.
  void begin(unsigned blocks, unsigned threads_per_block, bool trace);

  /// How far a thread has come, in cycles since begin().
  double now(unsigned thread) const;

  // --- global memory -----------------------------------------------------------------------------------

  /// A plain load or store of one lane joins its block's memory queue. Loads are pipelined: the thread goes
  /// on until use_loads().
  void load_global(unsigned thread, double bytes);
  void store_global(unsigned thread, double bytes);
  /// The thread needs what it loaded. Implied by store_shared(), barrier(), wait_until() and math.
  void use_loads(unsigned thread);
  /// An asynchronous copy (cp.async, TMA) joins the same queue. @return when its bytes are there.
  double copy_async(unsigned thread, double bytes);
  /// A TMA store does, too.
  StoreTime store_async(unsigned thread, double bytes);

  // --- other blocks of the cluster ---------------------------------------------------------------------

  /// The thread sends bytes to the shared memory of another block and does not wait: st.async, a store.
  /// @return when they are there.
  double send_to_block(unsigned thread, double bytes);
  /// A plain load from there. Pipelined like loads from global memory.
  void load_from_block(unsigned thread, double bytes);

  // --- waiting -----------------------------------------------------------------------------------------

  /// Threads first .. first + count - 1 leave a barrier (of a warp: count 32) together, when the last of them
  /// has come. `what` names the wait in the trace; null for warp collectives, which are not shown.
  void barrier(unsigned first, unsigned count, const char* what);
  /// The same for any `count` threads.
  void barrier_of(const unsigned* threads, unsigned count, const char* what);
  /// The thread waits for something that happens at `time`: a copy, a phase of an mbarrier (the largest
  /// now() of those who arrived and the ends of its copies), wgmma.
  void wait_until(unsigned thread, double time, const std::string& what);

  // --- math --------------------------------------------------------------------------------------------

  /// The warp of `thread` executes mma.sync: its sub-core's tensor core is busy; the warp waits for it.
  void mma_sync(unsigned thread, double flops);
  /// The thread issues a wgmma with the rest of its warpgroup. @return when
  double issue_wgmma(unsigned thread);
  /// The warpgroup that starts at `first_thread` has issued a wgmma, the last of its threads at `issued`;
  /// others may have gone on since. @return when it is done.
  double wgmma(unsigned first_thread, double issued, double flops);
  /// The thread executes fused multiply-adds on the CUDA cores.
  void fma(unsigned thread, double flops);
  /// The thread itself loads from shared memory or stores to it. Reached from the hooks. Its own arithmetic
  /// is not visible, so a load stands for the FMAs that its operands feed (ClockModel::fma_per_shared_byte).
  void load_shared(unsigned thread, double bytes);
  void store_shared(unsigned thread, double bytes);

  // --- results -----------------------------------------------------------------------------------------

  /// Of one block (its rank in the cluster), after all of its threads have ended.
  BlockTime block_time(unsigned block) const;
  /// Spans of all roles, by begin. `warp` is the first warp of the group of threads.
  std::vector<Span> spans() const;

  const ClockModel& model() const { return model_; }
  /// Only a trace needs the names of waits.
  bool keeps_trace() const { return trace_; }

 private:
  struct Interval {
    double begin, end;
  };
  struct NamedInterval {
    std::string what;
    double begin, end;
  };
  /// Sorted and disjoint: what touches is merged.
  class Intervals {
   public:
    /// Takes in what lies between.
    void add(double begin, double end);
    /// Takes in all of the other.
    void add(const Intervals& other);
    const std::vector<Interval>& all() const { return all_; }

   private:
    std::vector<Interval> all_;
    size_t last_ = 0;  ///< where the last one went: the next mostly comes nearby
  };
  /// What the threads of one warp had in flight.
  struct Track {
    Intervals copy, math, store;
    std::vector<NamedInterval> waits;
  };
  struct Thread {
    double now = 0;
    double loaded = 0;  ///< when all that it loaded is there
  };

  /// Something that serves one request at a time, in the order of virtual time, not of the calls: a request
  /// takes whatever is still free from its own time on.
  class Resource {
   public:
    /// Occupies it for `cycles`, not before `earliest`. @return when the request has been served.
    double reserve(double earliest, double cycles);

   private:
    size_t first_free(size_t slot);
    static constexpr double kSlotCycles = 4;
    std::vector<float> used_;        ///< of each slot of kSlotCycles
    std::vector<uint32_t> onwards_;  ///< a slot at or after this one that may be free; paths are compressed
  };

  struct Sm {
    Resource memory, shared, network;
    Resource tensor[4], cuda[4];  ///< of each sub-core
  };

  unsigned block_of(unsigned thread) const { return thread / threads_per_block_; }
  unsigned warp_of(unsigned thread) const { return thread % threads_per_block_ / kWarpLanes; }
  Sm& sm_of(unsigned thread) { return sms_[block_of(thread)]; }
  Track& track_of(unsigned thread) { return tracks_[block_of(thread) * warps_per_block_ + warp_of(thread)]; }
  double transfer(unsigned thread, double bytes);
  template <class ThreadAt>
  void meet(ThreadAt thread_at, unsigned count, const char* what);

  ClockModel model_;
  unsigned threads_per_block_ = 1, warps_per_block_ = 1;
  bool trace_ = false;
  std::vector<Thread> threads_;
  std::vector<Sm> sms_;
  std::vector<Track> tracks_;  ///< of each warp of the cluster
};

}  // namespace cpu_device
