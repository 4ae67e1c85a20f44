/// @file
/// Shadow of <cooperative_groups.h>: the block, groups of lanes of a warp, the cluster and the grid.
#pragma once
#include <cuda_runtime.h>

#include <cstring>
#include <type_traits>

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
  static dim3 group_dim() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

namespace details {

inline unsigned lane() { return thread_block::thread_rank() % 32; }
inline unsigned nth_lane(unsigned mask, unsigned n) {
  for (; n; --n) mask &= mask - 1;
  return mask ? static_cast<unsigned>(__builtin_ctz(mask)) : 0;
}
/// The bits of `lanes` that are in `mask`, next to each other.
inline unsigned packed(unsigned lanes, unsigned mask) {
  unsigned bits = 0;
  for (unsigned rank = 0; mask; mask &= mask - 1, ++rank) bits |= (lanes >> __builtin_ctz(mask) & 1) << rank;
  return bits;
}

/// What groups of lanes of one warp have in common: `Group` says which lanes.
template <class Group>
class Lanes {
 public:
  unsigned thread_rank() const {
    return static_cast<unsigned>(__builtin_popcount(mask() & ((1u << lane()) - 1)));
  }
  void sync(CPU_DEVICE_WHERE) const { cpu_device::warp_barrier(mask(), where); }
  /// Of any size.
  template <class T>
  T shfl(T value, unsigned rank, CPU_DEVICE_WHERE) const {
    return from_lane(value, nth_lane(mask(), rank % self().size()), where);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, CPU_DEVICE_WHERE) const {
    const unsigned rank = thread_rank();
    return shfl(value, delta > rank ? rank : rank - delta, where);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, CPU_DEVICE_WHERE) const {
    const unsigned rank = thread_rank();
    return shfl(value, rank + delta < self().size() ? rank + delta : rank, where);
  }
  template <class T>
  T shfl_xor(T value, unsigned lane_mask, CPU_DEVICE_WHERE) const {
    return shfl(value, thread_rank() ^ lane_mask, where);
  }
  unsigned ballot(int predicate, CPU_DEVICE_WHERE) const {
    return packed(__ballot_sync(mask(), predicate, where), mask());
  }
  int any(int predicate, CPU_DEVICE_WHERE) const { return __any_sync(mask(), predicate, where); }
  int all(int predicate, CPU_DEVICE_WHERE) const { return __all_sync(mask(), predicate, where); }
  template <class T>
  unsigned match_any(T value, CPU_DEVICE_WHERE) const {
    return packed(__match_any_sync(mask(), value, where), mask());
  }
  template <class T>
  unsigned match_all(T value, int& all_equal, CPU_DEVICE_WHERE) const {
    return packed(__match_all_sync(mask(), value, &all_equal, where), mask());
  }
  unsigned lanes() const { return mask(); }

 private:
  const Group& self() const { return static_cast<const Group&>(*this); }
  unsigned mask() const { return self().mask_of_lanes(); }
  template <class T>
  T from_lane(T value, unsigned source, cpu_device::Location where) const {
    static_assert(std::is_trivially_destructible_v<T>);  // vectors are not trivially copyable
    unsigned long long words[(sizeof(T) + 7) / 8] = {};
    std::memcpy(words, static_cast<const void*>(&value), sizeof value);
    for (unsigned long long& word : words)
      word = __shfl_sync(mask(), word, static_cast<int>(source), 32, where);
    std::memcpy(static_cast<void*>(&value), words, sizeof value);
    return value;
  }
};

}  // namespace details

/// kSize neighbouring threads of a warp.
template <unsigned kSize, class Parent = thread_block>
class thread_block_tile : public details::Lanes<thread_block_tile<kSize, Parent>> {
  static_assert(kSize <= 32 && (kSize & (kSize - 1)) == 0,
                "the CPU device has tiles of at most a warp: 1, 2, 4, 8, 16 or 32 threads");

 public:
  static unsigned thread_rank() { return thread_block::thread_rank() % kSize; }
  static constexpr unsigned size() { return kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  static unsigned meta_group_rank() { return thread_block::thread_rank() / kSize; }
  static unsigned meta_group_size() { return (thread_block::size() + kSize - 1) / kSize; }

  static unsigned mask_of_lanes() {
    return kSize == 32 ? 0xffffffff : ((1u << kSize % 32) - 1) << details::lane() / kSize * kSize;
  }
};
template <unsigned kSize, class Parent>
thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return {};
}

/// Lanes that happen to come together.
class coalesced_group : public details::Lanes<coalesced_group> {
 public:
  explicit coalesced_group(unsigned mask) : mask_(mask) {}
  unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned meta_group_rank() const { return 0; }
  unsigned meta_group_size() const { return 1; }
  unsigned mask_of_lanes() const { return mask_; }

 private:
  unsigned mask_;
};
inline coalesced_group coalesced_threads(CPU_DEVICE_WHERE) {
  return coalesced_group(cpu_device::active_mask(where));
}
/// Those of the group that have the same label.
template <class Group, class Label>
coalesced_group labeled_partition(const Group& group, Label label, CPU_DEVICE_WHERE) {
  return coalesced_group(__match_any_sync(group.lanes(), label, where));
}
template <class Group>
coalesced_group binary_partition(const Group& group, bool predicate, CPU_DEVICE_WHERE) {
  return labeled_partition(group, static_cast<int>(predicate), where);
}

/// The block, or lanes of one warp.
class thread_group {
 public:
  thread_group(const thread_block&) {}
  template <class Group>
  thread_group(const details::Lanes<Group>& lanes) : mask_(lanes.lanes()) {}
  void sync(CPU_DEVICE_WHERE) const {
    mask_ ? cpu_device::warp_barrier(mask_, where) : cpu_device::block_barrier(where);
  }
  unsigned size() const {
    return mask_ ? static_cast<unsigned>(__builtin_popcount(mask_)) : thread_block::size();
  }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return mask_ ? coalesced_group(mask_).thread_rank() : thread_block::thread_rank();
  }
  unsigned lanes() const { return mask_; }

 private:
  unsigned mask_ = 0;  ///< 0: the block
};
/// `size` neighbouring ones, at most a warp.
inline thread_group tiled_partition(const thread_group& group, unsigned size) {
  const unsigned first = group.thread_rank() / size * size;
  if (!group.lanes()) return coalesced_group(size == 32 ? 0xffffffff : ((1u << size % 32) - 1) << first % 32);
  unsigned mask = 0;
  for (unsigned i = first; i < first + size && i < group.size(); ++i)
    mask |= 1u << details::nth_lane(group.lanes(), i);
  return coalesced_group(mask);
}

/// All blocks of the cluster; a kernel that was launched without clusters is a cluster of one block.
class cluster_group {
 public:
  static void sync(CPU_DEVICE_WHERE) { cpu_device::cluster_barrier(where); }
  static unsigned block_rank() { return ids().cooperative ? 0 : ids().rank_in_cluster; }
  static dim3 dim_blocks() { return ids().cooperative ? dim3() : ids().cluster_dim; }
  static unsigned num_blocks() { return static_cast<unsigned>(dim_blocks().count()); }
  static dim3 block_index() {
    const dim3 dim = dim_blocks();
    return {blockIdx.x % dim.x, blockIdx.y % dim.y, blockIdx.z % dim.z};
  }
  /// The place of `pointer`, which lies in this block's shared memory, in that of block `rank`.
  template <class T>
  static T* map_shared_rank(T* pointer, int rank, CPU_DEVICE_WHERE) {
    return static_cast<T*>(cpu_device::map_shared(pointer, static_cast<unsigned>(rank), where));
  }
  static unsigned thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
  static unsigned num_threads() { return num_blocks() * thread_block::size(); }
  static unsigned size() { return num_threads(); }

 private:
  static const cpu_device::BlockIds& ids() { return *cpu_device::current_thread_ids->block; }
};
inline cluster_group this_cluster() { return {}; }

/// All blocks of a launch that is cooperative.
class grid_group {
 public:
  static bool is_valid() { return cpu_device::current_thread_ids->block->cooperative; }
  static void sync(CPU_DEVICE_WHERE) {
    if (!is_valid())
      cpu_device::report_misuse(
          "grid.sync() needs a launch whose blocks all run at once: cudaLaunchCooperativeKernel, or "
          "cudaLaunchAttributeCooperative",
          where);
    __threadfence(where);
    cpu_device::cluster_barrier(where);
  }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 group_dim() { return gridDim; }
  static dim3 block_index() { return blockIdx; }
  static unsigned long long num_blocks() { return gridDim.count(); }
  static unsigned long long block_rank() {
    return blockIdx.x + static_cast<unsigned long long>(gridDim.x) * (blockIdx.y + gridDim.y * blockIdx.z);
  }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
  static unsigned long long num_threads() { return num_blocks() * thread_block::size(); }
  static unsigned long long size() { return num_threads(); }
};
inline grid_group this_grid() { return {}; }

template <class Group>
void sync(const Group& group, CPU_DEVICE_WHERE) {
  group.sync(where);
}
template <class Group>
unsigned group_size(const Group& group) {
  return group.size();
}
template <class Group>
unsigned thread_rank(const Group& group) {
  return group.thread_rank();
}
/// One thread of the group calls.
template <class Group, class Function, class... Args>
void invoke_one(const Group& group, Function&& function, Args&&... args) {
  if (group.thread_rank() == 0) function(args...);
}

}  // namespace cooperative_groups
