/// @file
/// Blocks of a cluster that split K add up their partial sums of a tile through each other's shared memory.
#pragma once
#include "common/ptx/cluster.cuh"
#include "common/ptx/thread_ids.cuh"

namespace lesson06::any_shape {

/// Where a warpgroup receives partial sums from the blocks that split K with its own. Each of kBlocks blocks
/// completes columns of its own, kOwnFloats registers of every thread. Thread t of a sender writes the 16
/// bytes that thread t of the receiver reads, so that neighbouring threads access neighbouring 16 bytes.
template <int kBlocks, int kOwnFloats>
struct Inbox {
  float4 pieces[kBlocks - 1][kOwnFloats / 4][ladder::kWarpgroup];
  ptx::Mbarrier full;          ///< all bytes from the others are here
  ptx::Mbarrier others_empty;  ///< the others have read theirs: an arrival from each of their warps
};
/// K is not split: nothing is received.
template <int kOwnFloats>
struct Inbox<1, kOwnFloats> {};

/// One thread calls it before the first use.
template <int kBlocks, int kOwnFloats>
__device__ __forceinline__ void init_inbox(Inbox<kBlocks, kOwnFloats>& inbox) {
  if constexpr (kBlocks > 1) {
    ptx::mbarrier_init(&inbox.full, 1);
    ptx::mbarrier_init(&inbox.others_empty, (kBlocks - 1) * ladder::kWarpgroup / ladder::kWarp);
  }
}

/// What a warpgroup does with partial sums, tile after tile: it sends each peer the sums of that peer's
/// columns, and adds what it receives to the sums of its own columns, which end up in the first kOwnFloats
/// registers.
/// @tparam Block which of the blocks this is, and the ranks of its peers
template <int kBlocks, int kOwnFloats, class Block>
class PartialSums {
 public:
  __device__ __forceinline__ PartialSums(Inbox<kBlocks, kOwnFloats>& inbox, const Block& block)
      : inbox_(inbox), block_(block) {}

  /// Does so for the sums of one tile. All threads of the warpgroup call it.
  __device__ __forceinline__ void add(float (&d)[kBlocks * kOwnFloats]) {
    const int me = block_.k;
    const int thread = threadIdx.x % ladder::kWarpgroup;
    if (thread == 0) ptx::mbarrier_arrive_expect_bytes(&inbox_.full, sizeof(inbox_.pieces));
    ptx::mbarrier_wait_cluster(&inbox_.others_empty, parity_ ^ 1);
#pragma unroll
    for (int owner = 0; owner < kBlocks; ++owner) {  // unrolled, since registers have no addresses
      if (owner == me) continue;
      const int sender = me < owner ? me : me - 1;  // my place among those who send to the owner
#pragma unroll
      for (int i = 0; i < kOwnFloats; i += 4) {
        const float* const piece = &d[owner * kOwnFloats + i];
        ptx::store_async(&inbox_.pieces[sender][i / 4][thread], block_.peer(owner),
                         make_float4(piece[0], piece[1], piece[2], piece[3]), &inbox_.full);
      }
    }

    ptx::mbarrier_wait_cluster(&inbox_.full, parity_);
#pragma unroll
    for (int i = 0; i < kOwnFloats; i += 4) {
      float4 sum = make_float4(d[i], d[i + 1], d[i + 2], d[i + 3]);
#pragma unroll
      for (int owner = 1; owner < kBlocks; ++owner) {
        const float* const piece = &d[owner * kOwnFloats + i];
        const float4 mine = make_float4(piece[0], piece[1], piece[2], piece[3]);
        if (owner == me) sum = mine;
      }
#pragma unroll
      for (int sender = 0; sender < kBlocks - 1; ++sender) {
        const float4 received = inbox_.pieces[sender][i / 4][thread];
        sum.x += received.x, sum.y += received.y, sum.z += received.z, sum.w += received.w;
      }
      d[i] = sum.x, d[i + 1] = sum.y, d[i + 2] = sum.z, d[i + 3] = sum.w;
    }
    __syncwarp();  // all lanes have read; for each of the other blocks one lane says so
    const int lane = ladder::lane_index();
    if (lane < kBlocks && lane != me)
      ptx::mbarrier_arrive_remote_release(&inbox_.others_empty, block_.peer(lane));
    parity_ ^= 1;
  }
  /// Waits until the others have read what was sent to them last.
  __device__ __forceinline__ void wait_until_read() {
    ptx::mbarrier_wait_cluster(&inbox_.others_empty, parity_ ^ 1);
  }

 private:
  Inbox<kBlocks, kOwnFloats>& inbox_;
  const Block& block_;
  uint32_t parity_ = 0;
};
/// K is not split: there is nothing to add.
template <int kOwnFloats, class Block>
class PartialSums<1, kOwnFloats, Block> {
 public:
  /// Keeps nothing.
  __device__ __forceinline__ PartialSums(Inbox<1, kOwnFloats>&, const Block&) {}
  /// Leaves the sums as they are.
  template <int kCount>
  __device__ __forceinline__ void add(float (&)[kCount]) {}
  /// Nothing was sent.
  __device__ __forceinline__ void wait_until_read() {}
};

}  // namespace lesson06::any_shape
