/// @file
/// Shadow of <cooperative_groups.h>: the block, tiles of a warp and the cluster as groups.
#pragma once
#include <cuda_runtime.h>

namespace cooperative_groups {

/// All threads of the block.
class thread_block {
 public:
  static void sync(CPU_DEVICE_WHERE) { cpu_device::block_barrier(where); }
  static unsigned thread_rank() { return cpu_device::current_thread_ids->rank; }
  static unsigned size() { return cpu_device::current_thread_ids->block->threads; }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

/// kSize neighbouring threads of a warp.
template <unsigned kSize, class Parent = thread_block>
class thread_block_tile {
  static_assert(kSize <= 32 && (kSize & (kSize - 1)) == 0, "tiles of more than a warp are not emulated");

 public:
  static unsigned thread_rank() { return thread_block::thread_rank() % kSize; }
  static constexpr unsigned size() { return kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  static unsigned meta_group_rank() { return thread_block::thread_rank() / kSize; }
  static unsigned meta_group_size() { return (thread_block::size() + kSize - 1) / kSize; }

  void sync(CPU_DEVICE_WHERE) const { cpu_device::warp_barrier(mask(), where); }
  template <class T>
  T shfl(T value, int lane, CPU_DEVICE_WHERE) const {
    return __shfl_sync(mask(), value, lane, kSize, where);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, CPU_DEVICE_WHERE) const {
    return __shfl_up_sync(mask(), value, delta, kSize, where);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, CPU_DEVICE_WHERE) const {
    return __shfl_down_sync(mask(), value, delta, kSize, where);
  }
  template <class T>
  T shfl_xor(T value, unsigned lane_mask, CPU_DEVICE_WHERE) const {
    return __shfl_xor_sync(mask(), value, static_cast<int>(lane_mask), kSize, where);
  }
  unsigned ballot(int predicate, CPU_DEVICE_WHERE) const {
    return (__ballot_sync(mask(), predicate, where) & mask()) >> first_lane();
  }
  int any(int predicate, CPU_DEVICE_WHERE) const { return __any_sync(mask(), predicate, where); }
  int all(int predicate, CPU_DEVICE_WHERE) const { return __all_sync(mask(), predicate, where); }

 private:
  static unsigned first_lane() { return thread_block::thread_rank() % 32 / kSize * kSize; }
  static unsigned mask() { return kSize == 32 ? 0xffffffff : ((1u << kSize % 32) - 1) << first_lane(); }
};
template <unsigned kSize, class Parent>
thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return {};
}

/// All blocks of the cluster; a kernel that was launched without clusters is a cluster of one block.
class cluster_group {
 public:
  static void sync(CPU_DEVICE_WHERE) { cpu_device::cluster_barrier(where); }
  static unsigned block_rank() { return cpu_device::current_thread_ids->block->rank_in_cluster; }
  static unsigned num_blocks() {
    return static_cast<unsigned>(cpu_device::current_thread_ids->block->cluster_dim.count());
  }
  /// The place of `pointer`, which lies in this block's shared memory, in that of block `rank`.
  template <class T>
  static T* map_shared_rank(T* pointer, int rank, CPU_DEVICE_WHERE) {
    return static_cast<T*>(cpu_device::map_shared(pointer, static_cast<unsigned>(rank), where));
  }
  static unsigned thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
  static unsigned num_threads() { return num_blocks() * thread_block::size(); }
  static unsigned size() { return num_threads(); }
};
inline cluster_group this_cluster() { return {}; }

/// Groups that only a GPU has.
thread_block this_grid() CPU_DEVICE_GPU_ONLY;
thread_block coalesced_threads() CPU_DEVICE_GPU_ONLY;

template <class Group>
void sync(const Group& group, CPU_DEVICE_WHERE) {
  group.sync(where);
}

}  // namespace cooperative_groups
