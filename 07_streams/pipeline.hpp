/// @file
/// The host's pipeline: uploads, kernels and downloads of different batches at one time.
#pragma once
#include <cuda_runtime.h>

#include <chrono>
#include <vector>

#include "07_streams/batches.hpp"
#include "07_streams/drain.hpp"
#include "07_streams/pinned_ring.hpp"
#include "07_streams/stream_buffer.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/host/problem/lesson.hpp"

namespace lesson07 {

/// A lesson's kernel with its knobs. `settings` holds every knob (Lesson::settings).
struct Kernel {
  const ladder::Lesson* lesson = nullptr;
  ladder::Settings settings;

  /// Launches the kernel on the stream and returns; throws what Lesson::launch throws.
  void launch(const ladder::Gemm& gemm, cudaStream_t stream) const { lesson->launch(gemm, settings, stream); }
};

/// B [k, n] on the device, uploaded once. The constructor does not wait for that; whoever reads data() in
/// another stream waits for ready() there.
class Weights {
 public:
  /// `host`: pinned, and left alone until ready()
  Weights(const PinnedBuffer<bf16>& host, int k, int n);

  const bf16* data() const { return device_.data(); }
  cudaEvent_t ready() const { return ready_.get(); }

 private:
  ladder::DeviceBuffer<bf16> device_;
  ladder::Event ready_;
  DrainedStream stream_;
};

/// What all runs share, because making it takes longer than a batch.
struct Pipeline {
  /// Slots hold the largest of the batches. `pool_bytes`: the most that the pool may take from the device; 0:
  /// no limit
  Pipeline(const Batches& batches, int stream_count, int slots, size_t pool_bytes = 0);

  std::vector<ladder::Stream> streams;
  ladder::Stream host_functions;  ///< see Schedule::recycles_apart
  MemoryPool pool;
  PinnedRing<bf16> uploads, downloads;  ///< slots for A_b and for C_b
  /// How long the host waits for a slot before it gives up.
  std::chrono::milliseconds limit{10'000};
};

/// Normal data in all slots for uploads. Zeros and integers draw less power, which would make kernels faster.
void fill_uploads(Pipeline& pipeline, const Batches& batches, uint64_t seed);

/// How batches go through the pipeline.
struct Schedule {
  int streams = 3;                    ///< of the pipeline's, at least 1
  bool waits_for_every_step = false;  ///< the host does, as a program without any overlap would
  /// Host functions have a stream of their own. A stream does not go on before its host function has
  /// returned, and that takes the time of a thread that wakes up: in the stream of the batch, the next upload
  /// waits.
  bool recycles_apart = true;
};

/// Multiplies all batches: batch b goes through stream b % schedule.streams. Returns when all results were
/// checked.
/// @throws WrongResult; ladder::Interrupted after Ctrl-C; HostWaitTimedOut; what a launch throws. By then
/// nothing is in flight and all that the run had is given back: the pipeline can be used again.
void run_batches(const Batches& batches, const Data& data, const Weights& weights, const Kernel& kernel,
                 Pipeline& pipeline, const Schedule& schedule);

}  // namespace lesson07
