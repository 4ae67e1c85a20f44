/// @file
/// The operations of the CPU device, one function for each, as the shadow headers call them from inside a
/// kernel. Lessons never include this file directly.
///
/// Every function that takes a Location may throw (to leave a kernel that broke a rule) and may run other
/// threads of the cluster before it returns.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cuda/work_of_kernels.hpp"

namespace cpu_device {

struct Options;

/// CUDA's uint3.
struct Uint3 {
  unsigned x = 0, y = 0, z = 0;
};

/// CUDA's dim3.
struct Dim3 {
  unsigned x, y, z;
  constexpr Dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr Dim3(Uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator Uint3() const { return {x, y, z}; }
  constexpr uint64_t count() const { return uint64_t{x} * y * z; }
};

// --- identity -----------------------------------------------------------------------------------------

/// What is the same for all threads of a block.
struct BlockIds {
  Uint3 index;
  Dim3 block_dim, grid_dim, cluster_dim;
  unsigned rank_in_cluster = 0;
  unsigned threads = 0;
  bool cooperative = false;  ///< the grid was launched so that its blocks may wait for each other
};

/// The built-in variables of one thread.
struct ThreadIds {
  Uint3 index;
  unsigned rank = 0;  ///< x first, then y, then z
  const BlockIds* block = nullptr;
};

/// Of the thread that runs on this OS thread. Fibers stay on theirs, so a compiler may keep the address.
extern constinit thread_local const ThreadIds* current_thread_ids;

// --- shared memory --------------------------------------------------------------------------------------

/// ".b[2]": what a byte of a struct that lies at `base` is called; empty where that is not known.
using NameOfByte = void (*)(const std::byte* base, size_t offset, std::string& name);
/// "[2]" and ".panels" behind a name. Functions of the engine, for instrumented code: members of std::string
/// that it instantiates would be instrumented, and the linker may take them for everybody's.
void add_index(std::string& name, size_t index);
void add_member(std::string& name, const char* member);
/// The block's dynamic shared memory. @throws if the launch reserved fewer than `bytes`.
void* shared_storage(size_t bytes, size_t alignment, Location where, NameOfByte = nullptr);
/// Does the pointer lie in shared memory of this block?
bool is_shared(const void* pointer);
/// Does it lie outside of all shared memory and of the thread's own stack?
bool is_global(const void* pointer);
/// The address in the block's shared window, as matrix descriptors hold it.
uint32_t shared_address(const void* pointer, Location where);
/// `fence.proxy.async`.
void fence_proxy_async(Location where);
/// `mapa`: the same place in the shared memory of another block of the cluster, for ordinary accesses.
void* map_shared(const void* pointer, unsigned rank, Location where);
/// `st.async`: 16 bytes to the place of `to` in block `rank`, which counts them at its `barrier`.
void store_async(const void* to, unsigned rank, const void* value, const uint64_t* barrier, Location where);

/// `ld.global.nc`: the caller loads these bytes as data that nobody writes while the kernel runs.
void note_read_only_load(const void* global, size_t bytes, Location where);

// --- the kernel before ------------------------------------------------------------------------------------

/// `griddepcontrol.wait`.
void griddepcontrol_wait(Location where);

// --- atomic operations ------------------------------------------------------------------------------------

/// Around an atomic operation, which the caller makes: what it orders between blocks. A load only ends. One
/// of a narrower scope than the device orders nothing.
void atomic_begins(const void* object, bool releases, Location where, bool is_of_device = true);
void atomic_ended(const void* object, bool acquires, Location where, bool is_of_device = true);
/// The operation itself, between the two: a plain access of the same bytes that nothing orders is a race.
/// What leaves the value as it was is a load.
void note_atomic(const void* object, size_t bytes, bool changes, const char* what, Location where);
/// After an atomic operation, or another look at what others may change: whoever looks at the same place
/// again and again while nothing changes lets others run.
/// @param found the number that was there, for reports; null if it is none
void atomic_looked(const void* object, bool changed, const char* what, Location where,
                   const long long* found = nullptr);
/// `__threadfence`, and fences of the scope of the device that are no more than acquire and release.
void thread_fence(Location where, bool is_sequentially_consistent = true);
/// `__threadfence_block`.
void thread_fence_block(Location where);

// --- block and warp -------------------------------------------------------------------------------------

/// `__syncthreads`.
void block_barrier(Location where);
/// `__syncthreads_count`: for how many threads of the block `predicate` holds.
unsigned block_vote(bool predicate, Location where);
/// `cluster.sync`: all threads of the cluster that have not exited.
void cluster_barrier(Location where);
/// `bar.sync id, threads` / `bar.arrive`: a named barrier of some warps of the block.
void named_barrier_sync(unsigned id, unsigned threads, Location where);
/// `bar.red.or.pred`: the same; whether one of the threads said yes.
bool named_barrier_or(unsigned id, unsigned threads, bool yes, Location where);
void named_barrier_arrive(unsigned id, unsigned threads, Location where);
/// `__syncwarp`.
void warp_barrier(uint32_t mask, Location where);
enum class Shuffle {
  index,        ///< `__shfl_sync`
  up,           ///< `__shfl_up_sync`
  down,         ///< `__shfl_down_sync`
  exclusive_or  ///< `__shfl_xor_sync`
};
/// `__shfl_*_sync` of up to 8 bytes; `argument` is the source lane, the delta or the lane mask.
uint64_t shuffle(Shuffle, uint32_t mask, uint64_t value, int argument, int width, Location where);
/// `__ballot_sync`.
uint32_t ballot(uint32_t mask, bool predicate, Location where);
/// `__match_any_sync`.
uint32_t match_any(uint32_t mask, uint64_t value, Location where);
enum class Reduction { add, min, max, min_signed, max_signed, bit_and, bit_or, bit_xor };
/// `__reduce_*_sync`.
uint32_t reduce(Reduction, uint32_t mask, uint32_t value, Location where);
/// All lanes of the warp at one instruction, `.aligned`: the last calls `work` with the `own` of each.
/// @param flops that tensor cores do
void execute_as_warp(const char* what, void* own, const std::function<void(void* const (&)[32])>& work,
                     Location where, uint64_t flops = 0);
/// The lanes of this warp that come to this call before anything lets time pass.
uint32_t active_mask(Location where);
/// Those that have not exited.
uint32_t live_lanes();
/// Of these lanes the one that `elect.sync` elects, each time the same. PTX does not say which: the first on
/// round-robin schedules, the last on all others.
unsigned elected_lane(uint32_t lanes);
/// `elect.sync` of a whole warp: is it this lane?
bool is_elected();
/// A step of a loop that waits for others: lets them run.
void poll(const char* what, Location where, const long long* found = nullptr);
[[noreturn]] void trap(Location where);
/// The kernel broke a rule of a library, for example of cuda::pipeline.
[[noreturn]] void report_misuse(const char* rule, Location where);

// --- mbarriers ------------------------------------------------------------------------------------------

/// An mbarrier object is eight bytes of shared memory. What they hold is opaque, here as on a GPU.
void mbarrier_init(uint64_t* barrier, uint32_t count, Location where, const char* end = "", int slot = 0);
void mbarrier_invalidate(uint64_t* barrier, Location where);
/// How reports call it: `name`, or `name[index]` where index >= 0. `name` must outlive the launch.
void mbarrier_name(uint64_t* barrier, const char* name, int index, Location where);
/// @return the phase that the arrival belongs to.
uint64_t mbarrier_arrive(uint64_t* barrier, uint32_t count, uint32_t expect_bytes, const char* what,
                         Location where);
void mbarrier_expect_bytes(uint64_t* barrier, uint32_t bytes, Location where);
/// Arrives and lowers the count of all later phases by one: `arrive_and_drop`.
void mbarrier_arrive_and_drop(uint64_t* barrier, Location where);
enum class ArrivalOrder {
  relaxed,  ///< `.relaxed`
  release   ///< `.release`
};
/// `mapa` and `mbarrier.arrive.shared::cluster`: one arrival at the same place in block `rank`. It may take
/// effect later, but not after the next cluster.sync. A relaxed one orders nothing but the asynchronous
/// operations that the thread has waited for.
void mbarrier_arrive_remote(const uint64_t* barrier, unsigned rank, ArrivalOrder order, const char* what,
                            Location where);
/// Waits for the end of the phase with this parity. `what` is the verb that reports show.
void mbarrier_wait(uint64_t* barrier, uint32_t parity, const char* what, Location where);
/// The same, and what threads of other blocks released with their arrivals is visible, too.
void mbarrier_wait_cluster(uint64_t* barrier, uint32_t parity, const char* what, Location where);
/// True if the phase with this parity has ended; lets others run if it has not.
bool mbarrier_test(uint64_t* barrier, uint32_t parity, const char* what, Location where);
/// `fence.mbarrier_init`: the cluster may use what this thread has initialised. (fence.proxy.async does the
/// same here.) A block that is alone needs none.
void fence_mbarrier_init(Location where);

// --- cp.async -------------------------------------------------------------------------------------------

/// `cp.async`: copies `source_bytes` and fills the rest of `bytes` with zeros.
void copy_async(void* shared, const void* global, uint32_t bytes, uint32_t source_bytes, Location where);
/// `cp.async.commit_group`.
void copy_commit(Location where);
/// `cp.async.wait_group`: until at most `in_flight` groups of this thread are unfinished.
void copy_wait(unsigned in_flight, const char* what, Location where);
enum class CopyArrival {
  expected,  ///< `.noinc`: one of those that the barrier was initialised to expect
  extra      ///< the phase expects one arrival more
};
/// `cp.async.mbarrier.arrive`: an arrival once all earlier cp.async of this thread have landed.
void copy_arrive(uint64_t* barrier, CopyArrival arrival, Location where);

// --- TMA ------------------------------------------------------------------------------------------------

/// `map` points to a CUtensorMap, here and below.
void tma_prefetch(const void* map, Location where);
/// `cp.async.bulk.tensor.2d` from global to shared memory: the box that starts at (row, column), with zeros
/// outside the tensor. It writes through the async proxy, and counts its bytes at the barrier.
void tma_load(void* shared, const void* map, int column, int row, uint64_t* barrier, Location where);
/// The same, to the same place of every block of the cluster whose bit is set in `blocks`; each counts the
/// bytes at its own barrier. Blocks may receive them at different moments.
void tma_load_multicast(void* shared, const void* map, int column, int row, const uint64_t* barrier,
                        uint32_t blocks, Location where);
/// The same as tma_load from shared to global memory; what lies outside the tensor is left out.
void tma_store(const void* map, const void* shared, int column, int row, Location where);
/// `cp.async.bulk.commit_group`.
void tma_store_commit(Location where);
/// `cp.async.bulk.wait_group`, or `.read` of it: until at most `in_flight` groups of this thread have not
/// been written (read).
void tma_store_wait(unsigned in_flight, bool only_read, Location where);

// --- registers ------------------------------------------------------------------------------------------

/// `setmaxnreg.inc` or `.dec`, executed by all warps of a warpgroup.
void set_max_registers(unsigned count, bool increase, Location where);

// --- tensor cores ---------------------------------------------------------------------------------------

/// `ldmatrix.x4`, optionally `.trans`.
void ldmatrix_x4(uint32_t* registers, const void* row, bool transposed, Location where);
/// `stmatrix.x4`, optionally `.trans`.
void stmatrix_x4(void* row, const uint32_t* registers, bool transposed, Location where);
/// `mma.sync.m16n8k16`, bf16 to fp32.
void mma_m16n8k16(float* d, const uint32_t* a, uint32_t b0, uint32_t b1, Location where);
void wgmma_fence(Location where);
/// `wgmma.mma_async.m64nNk16`, bf16 to fp32; columns is N, d has N / 2 registers.
void wgmma(float* d, int columns, uint64_t a, uint64_t b, bool accumulate, bool b_row_major, Location where,
           bool a_column_major = false);
/// The same with A from four registers of each thread, which are read at any time until the wait.
void wgmma(float* d, int columns, const uint32_t* a, uint64_t b, bool accumulate, bool b_row_major,
           Location where);
void wgmma_commit_group(Location where);
void wgmma_wait_group(unsigned in_flight, Location where);
/// No instruction: the compiler learns that the registers have changed.
void keep_in_registers(const float* d, int count, Location where);

// --- launch ---------------------------------------------------------------------------------------------

/// A parameter that holds tensor maps, and where in it they lie.
struct MapParameter {
  unsigned index = 0;
  std::vector<std::byte> value;
  std::vector<size_t> offsets;
};

struct KernelLaunch {
  const char* name = "kernel";
  Dim3 grid, block, cluster;
  size_t shared_bytes = 0;
  bool pdl = false;  ///< may begin before the kernel before it in the stream has ended
  /// Called where all threads of a cluster poll and nothing changes: lets somebody outside of the kernel go
  /// on. May be null. @return false if there is nobody
  std::function<bool()> let_others_run = nullptr;
  /// What the kernel's source is found by; null where it is a function object, as in tests.
  const void* function = nullptr;
  std::vector<MapParameter> map_parameters = {};
  bool cooperative = false;  ///< all blocks run at once, and may wait for each other
  Location where = {};       ///< of the launch; empty where reports do not ask for it
  std::shared_ptr<const std::vector<uintptr_t>> callers =
      nullptr;                 ///< of a launch without `where`; may be null
  uint64_t largest_word = 0;   ///< of 32 bits, in what the parameters hold besides addresses and tensor maps
  uint64_t largest_count = 0;  ///< likewise, of words that are no floats
};
/// Looks for tensor maps in the bytes of a parameter, and notes them; or else its largest number.
void note_parameter(KernelLaunch&, unsigned index, const void* value, size_t bytes);
/// CUDA's limits on a launch. @return the limit that is broken, or null.
const char* refused(const KernelLaunch&);
/// Does it have more blocks than can run at once?
bool is_too_large_to_cooperate(const KernelLaunch&);
/// Is the size of its cluster what is refused? CUDA has an error of its own for that.
bool has_refused_cluster(const KernelLaunch&);

/// Fills the stack below its caller with NaN: what a kernel's local variables hold until they are written,
/// instead of what was left there. Called last before the kernel, because hooks of accesses use that stack,
/// too.
void poison_local_variables();

/// Where ldmatrix, wgmma or a TMA store first read shared memory before it was written, or before a fence had
/// published it, in the launches since the last call: a sentence, or nothing. That is legal as long as the
/// values reach no result.
std::string take_unwritten_read();

using ladder::WorkOfKernels;
WorkOfKernels take_work_of_kernels();
/// The kernel's grid follows from what the device holds at once, not from its tiles: whoever sizes such a
/// grid asks first how many blocks are resident.
void note_persistent(const void* kernel);

/// Of the launches that follow: the part of set_options() that is about kernels.
void set_launch_options(const Options&);

/// Runs `thread_body` once as every thread of the grid. @throws Failure.
void launch(const KernelLaunch&, const std::function<void()>& thread_body);

}  // namespace cpu_device
