/// @file
/// The consumer's end of pipelines whose slots are filled by several blocks of a cluster.
#pragma once
#include <cstdint>

#include "common/device/pipeline.cuh"
#include "common/ptx/cluster.cuh"

namespace ladder {

/// A Consumer that can release a slot to the producers in other blocks.
template <int kSlots>
class ClusterConsumer : public Consumer<kSlots> {
 public:
  __device__ __forceinline__ explicit ClusterConsumer(Pipeline<kSlots>& pipeline)
      : Consumer<kSlots>(pipeline) {}

  /// Tells the producer in block `rank` of the cluster, which fills this slot too, that the oldest slot that
  /// was waited for has been read. Threads with `arrives` may name different blocks.
  __device__ __forceinline__ void consumer_release_in(uint32_t rank, bool arrives) {
    if (arrives) ptx::mbarrier_arrive_remote(&this->pipeline_.empty[this->released_.slot], rank);
    this->released_.advance();
  }
};

}  // namespace ladder
