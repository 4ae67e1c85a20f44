/// @file
/// What it takes until two blocks of a cluster have each other's sums: 256 threads send 16 bytes at a time to
/// the place of the same number in the peer's shared memory.
#include <algorithm>

#include "common/cuda/persistent_grid.hpp"
#include "common/device/shared_storage.cuh"
#include "common/parts/groups.hpp"
#include "common/parts/measured_gpu.cuh"
#include "common/ptx/bulk_copy.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"

namespace ladder::parts {
namespace {

constexpr int kThreads = 2 * kWarpgroup;
constexpr int kPieceBytes = kThreads * static_cast<int>(sizeof(float4));  // 4 KB: 16 bytes from each thread

enum class Way { kStoreAsync, kBulk, kStore };

/// kPieces * 4 KB in each direction.
template <int kPieces>
struct ExchangeStorage {
  float4 inbox[kPieces][kThreads];
  float4 outbox[kPieces][kThreads];  // only of bulk copies, which leave from shared memory
  ptx::Mbarrier full;
};

/// Sends `sums` of all threads, without waiting.
template <Way kWay, int kPieces>
__device__ __forceinline__ void send(ExchangeStorage<kPieces>& smem, uint32_t peer,
                                     const float4 (&sums)[kPieces]) {
  const int thread = threadIdx.x;
  if constexpr (kWay == Way::kStoreAsync) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) ptx::store_async(&smem.inbox[i][thread], peer, sums[i], &smem.full);
  } else if constexpr (kWay == Way::kStore) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) *ptx::map_shared(&smem.inbox[i][thread], peer) = sums[i];
    __syncwarp();
    if (thread % kWarp == 0) ptx::mbarrier_arrive_remote_release(&smem.full, peer);
  } else {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) smem.outbox[i][thread] = sums[i];
    ptx::fence_proxy_async();  // the copy reads what these threads have stored
    __syncthreads();
    if (thread == 0)
      ptx::bulk_copy_to_block(&smem.inbox, peer, &smem.outbox, sizeof(smem.outbox), &smem.full);
  }
}

/// Figure 0: until the sums of the peer are here. Figure 1: until this thread has sent its own.
template <Way kWay, int kPieces>
__global__ void __launch_bounds__(kThreads, 1) exchange(Notes notes, int distance) {
  auto& smem = shared_storage<ExchangeStorage<kPieces>>();
  const uint32_t peer = ptx::cluster_block_rank() ^ static_cast<uint32_t>(distance);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&smem.full, kWay == Way::kStore ? kThreads / kWarp : 1);
    ptx::fence_mbarrier_init();
  }
  float4 sums[kPieces];
#pragma unroll
  for (int i = 0; i < kPieces; ++i) sums[i] = make_float4(threadIdx.x, i, 0, 0);
  for (int round = 0; round < kRounds; ++round) {
    ptx::cluster_sync();  // the inbox has been read
    const uint64_t begin = ptx::clock_cycles();
    if (kWay != Way::kStore && threadIdx.x == 0)
      ptx::mbarrier_arrive_expect_bytes(&smem.full, sizeof(smem.inbox));
    send<kWay>(smem, peer, sums);
    const uint64_t sent = ptx::clock_cycles();
    ptx::mbarrier_wait_cluster(&smem.full, round % 2);
    const uint64_t received = ptx::clock_cycles();
#pragma unroll
    for (int i = 0; i < kPieces; ++i) sums[i].x += smem.inbox[i][threadIdx.x].x;
    if (threadIdx.x != 0) continue;
    notes.add(0, round, static_cast<float>(received - begin));
    notes.add(1, round, static_cast<float>(sent - begin));
  }
  ptx::cluster_sync();  // no block exits while another may still reach its shared memory
}

template <Way kWay, int kPieces>
void add_exchange(const AddRow& add, const char* way) {
  for (const int cluster : {2, 4}) {
    const auto kernel = exchange<kWay, kPieces>;
    const dim3 resident = persistent_grid<ExchangeStorage<kPieces>>(kernel, kThreads, 1 << 16, cluster);
    const LaunchConfig config = {.name = "exchange",
                                 .grid = dim3(std::min<int>(resident.x, device_info().multiprocessors)),
                                 .block = dim3(kThreads),
                                 .shared_bytes = sizeof(ExchangeStorage<kPieces>),
                                 .cluster = dim3(cluster)};
    const auto clocks = measured(2, kernel, config, cluster / 2);
    constexpr int kBytes = kPieces * kPieceBytes;
    const PartRow::Settings settings = {
        {"way", way}, {"size", kilobytes(kBytes)}, {"cluster", "cluster of " + std::to_string(cluster)}};
    add({"exchange", settings, clocks[0], kBytes});
    if (cluster == 2) add({"send", settings, clocks[1], kBytes});
  }
}

template <Way kWay>
void add_way(const AddRow& add, const char* way) {
  add_exchange<kWay, 1>(add, way);
  add_exchange<kWay, 2>(add, way);
  add_exchange<kWay, 4>(add, way);
  add_exchange<kWay, 8>(add, way);
  add_exchange<kWay, 16>(add, way);
}

}  // namespace

void measure_exchanges(const AddRow& add) {
  add_way<Way::kStoreAsync>(add, "st.async");
  add_way<Way::kBulk>(add, "cp.async.bulk");
  add_way<Way::kStore>(add, "st.shared::cluster");
}

}  // namespace ladder::parts
