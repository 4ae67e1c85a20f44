/// @file
/// The CPU device as host code sees it: which legal execution to run, what it counted, how it reports a
/// broken rule. Lessons never include this header. Programs and tests include it only where they are built
/// for the CPU device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace cpu_device {

/// Which of the threads that can run is resumed next.
enum class Order {
  round_robin,    ///< they take turns
  lowest_first,   ///< the one with the lowest number
  highest_first,  ///< the one with the highest
  random          ///< any that can run, drawn from the schedule's seed
};
/// When an asynchronous copy or a wgmma that is in flight takes effect.
enum class Landing {
  late,   ///< as late as it may
  eager,  ///< as early as it may
  random  ///< at a moment drawn from the schedule's seed
};

/// One legal execution. The same schedule always gives the same execution of a block, on any number of OS
/// threads.
struct Schedule {
  Order order = Order::round_robin;
  Landing landing = Landing::late;
  uint64_t seed = 1;  ///< used where order or landing is random

  /// "round-robin/late", "lowest-first/eager", ..., "random:17" (order and landing random, seed 17).
  std::string name() const;
  /// "round-robin/late (threads take turns; copies land as late as they may)": for reports of kernels.
  std::string explained() const;
  /// The same for reports of streams: "round-robin/late (queued work runs as late as it may)".
  std::string explained_for_streams() const;
  /// The inverse of name(). @throws std::invalid_argument that lists the allowed words.
  static Schedule parse(const std::string& text);
  static Schedule random(uint64_t seed) { return {Order::random, Landing::random, seed}; }
};

/// {round robin, lowest warp first, highest warp first} x {late, eager}.
std::vector<Schedule> fixed_schedules();

struct Options {
  Schedule schedule;
  int os_threads = 0;         ///< 0: one for each core; a cluster always stays on one OS thread
  bool check_races = false;   ///< happens-before checking; needs lessons compiled with instrumentation
  bool count = false;         ///< counters of plain accesses; needs the same
  bool trace = false;         ///< keep the virtual-time spans and the mbarriers of the first cluster
  bool check_grid = false;    ///< see below
  bool check_streams = true;  ///< operations of streams that touch the same bytes need an order between them
  size_t report_lines = 0;    ///< of a deadlock, at most; 0: all
  bool warn = true;           ///< on stderr, of waits for events that were never recorded
};
// Options::check_grid is for kernels whose blocks hand over to each other through global memory: clusters run
// one at a time, in an order that the schedule chooses, and what one stores and another loads needs an order
// where check_races is set, too: an atomic operation (cuda::atomic_ref, atomicAdd), released and acquired.

/// For the launches that follow.
void set_options(const Options&);
const Options& options();

/// Says that an allocation holds a row-major matrix: reports of accesses outside it name row and column.
void name_matrix(const void* first, const std::string& name, int rows, int columns, size_t element_bytes);

/// True if the program was linked with the access hooks and its lessons were compiled for them.
bool instrumented();

/// What one launch did, summed over all its blocks. Fields marked (i) stay 0 unless Options::count is set in
/// an instrumented program.
struct Counters {
  uint64_t blocks = 0, threads = 0;
  uint64_t global_bytes_read = 0;  ///< bytes that asynchronous copies, TMA and (i) plain loads asked for
  uint64_t global_bytes_written = 0;
  uint64_t global_read_sectors = 0;  ///< 32-byte sectors after coalescing each warp's access
  uint64_t global_write_sectors = 0;
  uint64_t shared_bytes_read = 0;  ///< by threads, ldmatrix and wgmma
  uint64_t shared_bytes_written = 0;
  uint64_t shared_wavefronts = 0;  ///< 128-byte passes through the banks that shared accesses took
  uint64_t bank_conflicts = 0;     ///< passes beyond the fewest possible, as a profiler counts them
  uint64_t cluster_bytes = 0;   ///< that came from another block: its part of multicasts, st.async, (i) DSMEM
  uint64_t block_barriers = 0;  ///< __syncthreads, counted once for a block
  uint64_t barrier_waits = 0;   ///< warps that really had to wait, at any kind of barrier or pipeline
  uint64_t async_copies = 0;    ///< cp.async, st.async and TMA operations
  uint64_t mma_flops = 0;       ///< done by mma.sync and wgmma
  uint64_t slot_fills = 0;  ///< of the slot of a ring that a block has filled most often; 0: there is no ring
  // Virtual time, in cycles of one SM that runs one block (cluster) at a time; the first block only.
  double cycles = 0;          ///< length of the block
  double copy_cycles = 0;     ///< union of the spans in which a copy from global memory was in flight
  double math_cycles = 0;     ///< union of the spans in which the tensor or CUDA cores computed
  double overlap_cycles = 0;  ///< length of the intersection of the two
};
/// Of the launch that ended last on this host thread.
const Counters& last_launch();

/// A span of the virtual timeline. Cycles; warp is the first warp of the group that it belongs to.
struct Span {
  unsigned block = 0, warp = 0;
  std::string what;  ///< "copy", "store", "mma", "wait full[1]", ...
  double begin = 0, end = 0;
};
const std::vector<Span>& last_trace();

/// An mbarrier as the first block leaves it behind.
struct MbarrierRecord {
  std::string name;        ///< as the source calls it: "pipe_lc.full[0]"
  std::string where;       ///< it was initialised: "gemm.cuh:31"
  unsigned arrivals = 0;   ///< that complete a phase
  bool fenced = false;     ///< after its initialisation, by the thread that initialised it
  uint64_t phases = 0;     ///< that have been completed
  unsigned witnesses = 0;  ///< threads of the block that have waited until a phase was completed
};
/// In the order in which they were initialised.
const std::vector<MbarrierRecord>& last_mbarriers();
/// For each warpgroup of the first block: the registers of a thread that its last setmaxnreg asked for; 0
/// where there was none.
const std::vector<unsigned>& last_registers();
/// Whether the kernel has __launch_bounds__, without which nvcc ignores its setmaxnreg. True where debug
/// information does not say which kernel it was. Slow the first time for each kernel.
bool last_kernel_has_launch_bounds();

// --- streams ----------------------------------------------------------------------------------------------
//
// Options::schedule.landing says when queued work of streams runs: late, only what a wait of the host needs;
// eager, as soon as it may; random, a seeded choice at each call. The legacy default stream runs at once.

/// Faults to test with: the `nth` call of `function` from now on, counted from 1, does nothing and returns
/// `error`, a cudaError_t.
void fail_call(const std::string& function, int nth, int error);

/// What the program has made and not given back. Default streams and default pools do not count.
struct LiveResources {
  size_t device_bytes = 0;  ///< that are in use; not what pools have reserved beyond
  size_t pinned_bytes = 0;
  size_t streams = 0, events = 0, graphs = 0, pools = 0;
};
LiveResources live_resources();

/// An operation of a stream on the virtual timeline: each device has one engine for uploads, one for
/// downloads, one for copies to other devices, and its SMs, which run one kernel at a time. Work is scheduled
/// in the order in which it was enqueued.
struct StreamSpan {
  int device = 0;
  std::string stream;  ///< "stream 1", "legacy stream", ...
  std::string kind;    ///< upload, download, copy, kernel, host, memset, allreduce
  std::string name;
  double begin_us = 0, end_us = 0;
};
/// Of all work enqueued since the last call. Runs what is still queued.
std::vector<StreamSpan> take_stream_trace();
/// The virtual time at which all work enqueued so far has ended. Runs what is still queued.
double stream_time_us();

/// Graphs that the program has made launchable, and launches of them, so far.
struct GraphCalls {
  uint64_t instantiations = 0, launches = 0;
};
GraphCalls graph_calls();
/// A line for each captured copy whose source on the host had changed when its graph was launched.
std::string describe_changed_sources();

/// A kernel, or the host, broke a rule. what() names the kernel, the block, warp and lane, the source line
/// and the rule; for a deadlock who waits where, on which barrier, slot and phase; or the call, the stream
/// and the memory; and the schedule, so that the run can be repeated.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace cpu_device
