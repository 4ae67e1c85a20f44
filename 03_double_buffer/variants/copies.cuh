/// @file
/// Other ways to bring a tile to shared memory while something else is computed, with the same four verbs.
///
///     producer_acquire  waits until the next slot may be filled
///     producer_commit   closes the batch of copies that fill it
///     consumer_wait     waits until the oldest of the kAhead batches in flight has landed
///                       (the only one, if kAhead is 0)
///     consumer_release  says that this thread has read it
#pragma once
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>

#include <cuda/pipeline>

#include <cstdint>

#include "common/device/tile_share.cuh"
#include "common/ptx/cp_async.cuh"

namespace lesson03::copies {
constexpr int kChunkBytes = 16;

/// Batches that may still be in flight when the oldest of `ahead` has landed.
__host__ __device__ constexpr uint8_t later(int ahead) {
  return static_cast<uint8_t>(ahead > 0 ? ahead - 1 : 0);
}

/// Calls copy(chunk, source, offset) for every piece of kBytes of a thread's share of a tile. What lies
/// outside the matrix becomes zero, by an ordinary store.
template <int kBytes, class Share, class Tile, class Copy>
__device__ __forceinline__ void copy_share(const Share& share, Tile& tile, Copy&& copy) {
  share.for_each([&](int i, const __nv_bfloat16* source, bool inside) {
    uint4* const chunk = share.destination(tile, i);
    if (!inside) {
      *chunk = make_uint4(0, 0, 0, 0);
      return;
    }
#pragma unroll
    for (int offset = 0; offset < kChunkBytes; offset += kBytes)
      copy(reinterpret_cast<char*>(chunk) + offset, reinterpret_cast<const char*>(source) + offset);
  });
}

/// The lesson's own copies, for the cores that its kernel does not have.
struct Primitives {
  static constexpr bool kBlockWide = false;  ///< consumer_wait waits for this thread's copies only
  template <int kSlots>
  struct SharedState {};

  template <class State>
  __device__ explicit Primitives(State&) {}

  __device__ __forceinline__ void producer_acquire() {}
  template <class Share, class Tile>
  __device__ __forceinline__ void copy(const Share& share, Tile& tile) {
    copy_share<16>(share, tile, [&](char* to, const char* from) { __pipeline_memcpy_async(to, from, 16); });
  }
  __device__ __forceinline__ void producer_commit() { __pipeline_commit(); }
  template <int kAhead>
  __device__ __forceinline__ void consumer_wait() {
    __pipeline_wait_prior(later(kAhead));
  }
  __device__ __forceinline__ void consumer_release() {}
};

/// Those of the lesson's first step.
struct ThroughL1 : Primitives {
  /// As for Primitives.
  using Primitives::Primitives;
  template <class Share, class Tile>
  __device__ __forceinline__ void copy(const Share& share, Tile& tile) {
    copy_share<16>(share, tile, [&](char* to, const char* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
      __pipeline_memcpy_async(to, from, 16);  // a load and a store: there are no asynchronous copies
#else
      ptx::cp_async_ca_16(to, from);
#endif
    });
  }
};

/// `cuda::memcpy_async` into a pipeline of the thread's own. On the GPU a copy is one cp.async, which keeps
/// no register and no thread busy; a batch is a group of them. acquire and release cost nothing, because a
/// thread knows when it is through with a slot itself; that the others are, a barrier must tell.
template <int kBytes = 16>
struct MemcpyAsync {
  static constexpr bool kBlockWide = false;  ///< consumer_wait waits for this thread's copies only
  template <int kSlots>
  struct SharedState {};

  template <class State>
  __device__ explicit MemcpyAsync(State&) {}

  /// Waits until the next slot may be filled.
  __device__ __forceinline__ void producer_acquire() { pipe.producer_acquire(); }
  /// Starts to copy this thread's share of a tile to `tile`, the next slot; past the matrix it writes zeros.
  template <class Share, class Tile>
  __device__ __forceinline__ void copy(const Share& share, Tile& tile) {
    copy_share<kBytes>(share, tile, [&](char* to, const char* from) {
      cuda::memcpy_async(to, from, cuda::aligned_size_t<kBytes>(kBytes), pipe);
    });
  }
  /// Closes the batch of copies that fills the slot.
  __device__ __forceinline__ void producer_commit() { pipe.producer_commit(); }
  /// Waits until the oldest of the kAhead batches in flight has landed; of the only one, if kAhead is 0.
  template <int kAhead>
  __device__ __forceinline__ void consumer_wait() {
    cuda::pipeline_consumer_wait_prior<later(kAhead)>(pipe);  // the number is a constant: one instruction
  }
  /// Says that this thread has read the oldest slot.
  __device__ __forceinline__ void consumer_release() { pipe.consumer_release(); }

  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
};

/// The same copies in one pipeline for the whole block. Its stages are pairs of barriers in shared memory: a
/// slot is full when all threads' copies have landed, and free when all threads have released it. No
/// __syncthreads is left; the price is arrivals of all threads at two barriers for each tile.
struct BlockPipeline {
  static constexpr bool kBlockWide = true;
  template <int kSlots>
  using SharedState = cuda::pipeline_shared_state<cuda::thread_scope_block, kSlots>;

  template <class State>
  __device__ explicit BlockPipeline(State& state)
      : pipe(cuda::make_pipeline(cooperative_groups::this_thread_block(), &state)) {}

  __device__ __forceinline__ void producer_acquire() { pipe.producer_acquire(); }
  template <class Share, class Tile>
  __device__ __forceinline__ void copy(const Share& share, Tile& tile) {
    copy_share<16>(share, tile, [&](char* to, const char* from) {
      cuda::memcpy_async(to, from, cuda::aligned_size_t<16>(16), pipe);
    });
  }
  __device__ __forceinline__ void producer_commit() { pipe.producer_commit(); }
  template <int kAhead>
  __device__ __forceinline__ void consumer_wait() {
    pipe.consumer_wait();
  }
  __device__ __forceinline__ void consumer_release() { pipe.consumer_release(); }

  cuda::pipeline<cuda::thread_scope_block> pipe;
};

/// `cooperative_groups::memcpy_async`, by groups of one thread because the swizzle scatters a row. Each call
/// commits by itself, and cg::wait waits for everything: however many slots there are, after the
/// first wait only one tile is on its way.
struct CooperativeGroups {
  static constexpr bool kBlockWide = false;
  template <int kSlots>
  struct SharedState {};

  template <class State>
  __device__ explicit CooperativeGroups(State&) {}

  __device__ __forceinline__ void producer_acquire() {}
  template <class Share, class Tile>
  __device__ __forceinline__ void copy(const Share& share, Tile& tile) {
    copy_share<16>(share, tile, [&](char* to, const char* from) {
      cooperative_groups::memcpy_async(thread, to, from, cuda::aligned_size_t<16>(16));
    });
  }
  __device__ __forceinline__ void producer_commit() {}
  template <int kAhead>
  __device__ __forceinline__ void consumer_wait() {
    cooperative_groups::wait(thread);
  }
  __device__ __forceinline__ void consumer_release() {}

  cooperative_groups::thread_block_tile<1, cooperative_groups::thread_block> thread =
      cooperative_groups::tiled_partition<1>(cooperative_groups::this_thread_block());
};

/// Without asynchronous copies, as before Ampere: loads to registers before the products, stores to the slot
/// after them. The tile is on its way meanwhile, but it keeps 32 registers of every thread busy.
template <class TileA, class TileB, int kThreads>
struct ThroughRegisters {
  static constexpr bool kBlockWide = false;
  template <int kSlots>
  struct SharedState {};

  template <class State>
  __device__ explicit ThroughRegisters(State&) {}

  __device__ __forceinline__ void producer_acquire() { store(); }
  template <class Share>
  __device__ __forceinline__ void copy(const Share& share, TileA& tile) {
    a.load(share, tile);
  }
  template <class Share>
  __device__ __forceinline__ void copy(const Share& share, TileB& tile) {
    b.load(share, tile);
    pending = true;
  }
  __device__ __forceinline__ void producer_commit() {}
  template <int kAhead>
  __device__ __forceinline__ void consumer_wait() {
    store();
  }
  __device__ __forceinline__ void consumer_release() { store(); }

 private:
  template <class Tile>
  struct Staged {
    using Share = ladder::TileShare<Tile, kThreads>;
    uint4 chunks[Share::kChunks];
    uint4* to;

    /// Starts the loads to registers.
    __device__ __forceinline__ void load(const Share& share, Tile& tile) {
      to = share.destination(tile, 0);
      share.load(chunks);
    }
    /// Registers to the slot.
    __device__ __forceinline__ void store() const {
#pragma unroll
      for (int i = 0; i < Share::kChunks; ++i) to[i * (Share::kDestinationStep / Tile::kChunk)] = chunks[i];
    }
  };
  __device__ __forceinline__ void store() {
    if (!pending) return;
    a.store();
    b.store();
    pending = false;
  }

  Staged<TileA> a;
  Staged<TileB> b;
  bool pending = false;
};

}  // namespace lesson03::copies
