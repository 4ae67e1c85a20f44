/// @file
/// Operations of the CPU device that PTX has and the wrappers of common/ptx do not: for the interpreter of
/// inline PTX. As in engine.hpp, which comes first, all that take a Location may throw.
#pragma once
#include <cstddef>
#include <cstdint>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine.hpp"

namespace cpu_device {

// --- the shared window ------------------------------------------------------------------------------------

/// `cvta.to.shared`: a number of 32 bits. The own block's begin at 1024; what lies in another block of the
/// cluster has that block's rank, plus one, in the upper 8 bits. Of a pointer to no shared memory: a number
/// that find_in_shared_window() refuses.
uint32_t to_shared_window(const void* pointer);
/// `cvta.shared`: null where no block of the cluster has this address.
void* from_shared_window(uint64_t address);
/// A place in shared memory, of the block `rank` of the cluster.
struct SharedPlace {
  std::byte* pointer = nullptr;
  std::byte* own = nullptr;  ///< the same place in the block of the thread
  unsigned rank = 0;
  bool is_own = true;
};
/// The place with this number. @throws if these bytes lie in no block, or in another one, unless
/// `of_cluster`.
SharedPlace find_in_shared_window(uint64_t address, size_t bytes, bool of_cluster, const char* what,
                                  Location where);

/// Of the block.
size_t shared_memory_bytes();

// --- threads

/// `exit`: leaves the kernel.
[[noreturn]] void exit_thread(Location where);

// --- loads and stores -------------------------------------------------------------------------------------

/// A load or store that the caller makes next; `what` outlives the launch: "ld.global.v4.f32". Observed like
/// those of the source, where anybody observes.
/// @param is_atomic of an operation that others may make at once; note_atomic() is told of it, too
void note_access(const void* address, size_t bytes, bool write, const char* what, Location where,
                 bool is_atomic = false);
/// Does the address lie on the stack of the running thread?
bool is_local(const void* address);

// --- mbarriers --------------------------------------------------------------------------------------------

/// mbarrier_test() for `.acquire.cluster`.
bool mbarrier_test_cluster(uint64_t* barrier, uint32_t parity, const char* what, Location where);
/// `mbarrier.complete_tx`.
void mbarrier_complete_bytes(uint64_t* barrier, uint32_t bytes, Location where);
/// `mbarrier.expect_tx` at the same place in block `rank`.
void mbarrier_expect_bytes_remote(const uint64_t* barrier, unsigned rank, uint32_t bytes, Location where);

// --- cluster barriers -------------------------------------------------------------------------------------

/// `barrier.cluster.arrive`; a relaxed one makes nothing known.
void cluster_barrier_arrive(ArrivalOrder, Location where);
/// `barrier.cluster.wait`.
void cluster_barrier_wait(Location where);

// --- bulk copies ------------------------------------------------------------------------------------------

/// What a reduction does with each element. `none`: a store.
enum class BulkReduction : uint8_t { none, add, min, max, increase, decrease, bit_and, bit_or, bit_xor };
enum class ElementType : uint8_t { u32, s32, u64, s64, f16, bf16, f32, f64 };

/// Where a bulk copy counts its bytes: at the place of `barrier` in each block whose bit is set in `blocks`;
/// 0 is the own block alone.
struct BulkArrival {
  uint64_t* barrier = nullptr;
  uint32_t blocks = 0;
};
/// `cp.async.bulk.tensor.Nd` from global to shared memory, with N coordinates, the first one's elements
/// adjacent.
void tma_load(void* shared, const void* map, const int* coordinates, unsigned dimensions, BulkArrival,
              Location);
/// The same in the other direction; or `cp.reduce.async.bulk.tensor`.
void tma_store(const void* map, const void* shared, const int* coordinates, unsigned dimensions,
               BulkReduction, Location where);
/// `cp.async.bulk` of bytes that follow each other, from global to shared memory.
void bulk_load(void* shared, const void* global, uint32_t bytes, BulkArrival, Location where);
/// The same in the other direction; or `cp.reduce.async.bulk`.
void bulk_store(void* global, const void* shared, uint32_t bytes, BulkReduction, ElementType, Location where);
/// `cp.async.bulk` from the block's shared memory to the place of `to` in block `rank`, whose barrier at the
/// place of `barrier` counts the bytes.
void bulk_send(void* to, unsigned rank, const void* from, uint32_t bytes, uint64_t* barrier, Location where);

// --- tensor cores -----------------------------------------------------------------------------------------

/// `ldmatrix.xN`: the row of a lane beyond the first 8 N is not looked at.
void ldmatrix(uint32_t* registers, int matrices, const void* row, bool transposed, Location where);
/// `stmatrix.xN`.
void stmatrix(void* row, const uint32_t* registers, int matrices, bool transposed, Location where);

enum class MmaInput : uint8_t { f16, bf16, tf32 };
/// `mma.sync` m16n8k`depth`: registers as PTX numbers them. The sums are four floats, or two pairs of fp16.
struct MmaSync {
  MmaInput input = MmaInput::bf16;
  int depth = 16;
  bool half_sums = false;
  uint32_t a[4] = {}, b[2] = {}, c[4] = {}, d[4] = {};
};
void mma_sync(MmaSync&, Location where);

/// `wgmma.mma_async` m64nNk16. The sums are registers of the thread, floats or pairs of fp16, which the
/// tensor cores own until the wait.
struct Wgmma {
  int columns = 0;
  MmaInput input = MmaInput::bf16;
  bool half_sums = false;
  bool accumulate = true;
  bool a_in_registers = false;
  bool a_column_major = false, b_row_major = false;  ///< `imm-trans-a`, `imm-trans-b`
  bool negate_a = false, negate_b = false;
  uint64_t a = 0, b = 0;  ///< descriptors
  uint32_t a_registers[4] = {};
  /// Where these are variables: the tensor cores read them there, at any time until the wait.
  const uint32_t* a_variables = nullptr;
  bool operator==(const Wgmma&) const = default;
};
/// @param sums pointers to columns / 2 floats, or to columns / 4 pairs
/// @param is_kept nobody asks for keep_in_registers after the wait
void wgmma(const Wgmma&, void* const* sums, bool is_kept, Location where);
/// In this program nobody is asked for keep_in_registers, which is no rule of CUDA's.
void ask_for_no_keep();

}  // namespace cpu_device
