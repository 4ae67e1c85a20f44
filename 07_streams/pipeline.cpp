/// @file
/// Lesson 07: batches stream through the GPU.
///
/// Ideally three engines work on three batches at one time: one copy engine uploads batch b+1, the SMs
/// multiply batch b, the other copy engine downloads batch b-1. In fact an engine may have to wait: upload 3
/// stands behind download 0, in one stream.
///
///   stream 0    [alloc | upload 0 | kernel 0 | free a | download 0 | free c] [alloc | upload 3 | ...
///   stream 1             [alloc | upload 1 | kernel 1 | free a | download 1 | free c] ...
///   stream 2                      [alloc | upload 2 | kernel 2 | free a | download 2 | free c] ...
///   host functions                                                     [recycle 0] [recycle 1] ...
///
/// Within a stream, order is what makes it right: nothing of a batch begins before what it needs has ended.
/// Between streams there is no order, except where an event makes it.
#include "07_streams/pipeline.hpp"

#include <fmt/core.h>
#include <deque>
#include <exception>

#include "07_streams/drain.hpp"
#include "07_streams/timeline/host_trace.hpp"
#include "common/cuda/nvtx.hpp"
#include "common/host/base/interrupt.hpp"

namespace lesson07 {
namespace {

/// What the end of a batch needs on the host. Lives until all streams are done.
struct Delivery {
  int batch;
  const Data* data;
  PinnedRing<bf16>::Slot a, c;
  ladder::Event downloaded = ladder::make_order_event();
  std::string complaint = {};
  std::exception_ptr thrown = nullptr;  ///< by the check
};

/// A host function: the last thing of a batch. Both slots are free then: the upload from `a` and the download
/// to `c` have ended. It runs on a thread of the runtime, which its stream waits for. It must not call CUDA:
/// the runtime may hold locks that such a call would wait for.
void finish(void* delivery_pointer) noexcept {
  const HostFunctionSpan span("check and recycle");  // a line in a recorded timeline
  Delivery& delivery = *static_cast<Delivery*>(delivery_pointer);
  try {
    delivery.complaint = delivery.data->complaint(delivery.batch, delivery.c.data());
  } catch (...) {  // No exception may pass through the runtime, which is C.
    delivery.thrown = std::current_exception();
  }
  delivery.a.release();
  delivery.c.release();
}

/// Gives a stream all that one batch takes. Nothing here waits for the device, except for a slot, and in
/// level 0.
void enqueue(const Batches& batches, const Weights& weights, const Kernel& kernel, Pipeline& pipeline,
             const Schedule& schedule, cudaStream_t stream, Delivery& delivery) {
  const auto end_of_step = [&] {
    if (schedule.waits_for_every_step) CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  const int b = delivery.batch;
  const ladder::NvtxRange range("enqueue batch " + std::to_string(b));
  const size_t a_count = batches.a_elements(b), c_count = batches.c_elements(b);

  // Both buffers exist from here on for this stream. The pool reuses memory only where its last use is
  // ordered before.
  StreamBuffer<bf16> a(pipeline.pool, a_count, stream), c(pipeline.pool, c_count, stream);

  // [batch]
  delivery.data->fill(b, delivery.a.data());
  CUDA_CHECK(
      cudaMemcpyAsync(a.data(), delivery.a.data(), a_count * sizeof(bf16), cudaMemcpyHostToDevice, stream));
  end_of_step();

  kernel.launch({a.data(), weights.data(), c.data(), batches.rows[b], batches.n, batches.k}, stream);
  a.free();
  end_of_step();

  CUDA_CHECK(
      cudaMemcpyAsync(delivery.c.data(), c.data(), c_count * sizeof(bf16), cudaMemcpyDeviceToHost, stream));
  c.free();
  // [batch]
  cudaStream_t recycler = stream;
  if (schedule.recycles_apart) {
    recycler = pipeline.host_functions.get();
    CUDA_CHECK(cudaEventRecord(delivery.downloaded.get(), stream));
    CUDA_CHECK(cudaStreamWaitEvent(recycler, delivery.downloaded.get(), 0));
  }
  CUDA_CHECK(cudaLaunchHostFunc(recycler, finish, &delivery));
  end_of_step();
}

/// Waits until nothing is in flight; ends the program, saying why it waited, if that takes too long.
/// @returns what failed first
cudaError_t drain_all(const Pipeline& pipeline, const std::string& what_was_wrong) {
  cudaError_t first = cudaSuccess;
  const auto drain_one = [&](const ladder::Stream& stream) {
    const cudaError_t error = drain(stream.get(), what_was_wrong);
    if (first == cudaSuccess) first = error;
  };
  for (const ladder::Stream& stream : pipeline.streams) drain_one(stream);
  drain_one(pipeline.host_functions);
  return first;
}

}  // namespace

Weights::Weights(const PinnedBuffer<bf16>& host, int k, int n)
    : device_(size_t(k) * n), ready_(ladder::make_event()), stream_(make_drained_stream()) {
  CUDA_CHECK(cudaMemcpyAsync(device_.data(), host.data(), device_.size() * sizeof(bf16),
                             cudaMemcpyHostToDevice, stream_.get()));
  CUDA_CHECK(cudaEventRecord(ready_.get(), stream_.get()));
}

Pipeline::Pipeline(const Batches& batches, int stream_count, int slots, size_t pool_bytes)
    : host_functions(ladder::make_stream()),
      pool(UINT64_MAX, pool_bytes),
      uploads("upload", slots, size_t(batches.most_rows()) * batches.k),
      downloads("download", slots, size_t(batches.most_rows()) * batches.n, Recycled::spoiled) {
  for (int s = 0; s < stream_count; ++s) streams.push_back(ladder::make_stream());
}

void fill_uploads(Pipeline& pipeline, const Batches& batches, uint64_t seed) {
  std::deque<PinnedRing<bf16>::Slot> all;  // taken together, so that each slot is taken once
  for (int slot = 0; slot < pipeline.uploads.slots(); ++slot) {
    all.push_back(pipeline.uploads.acquire(pipeline.limit));
    fill_normals(all.back().data(), size_t(batches.most_rows()) * batches.k, seed + slot);
  }
}

void run_batches(const Batches& batches, const Data& data, const Weights& weights, const Kernel& kernel,
                 Pipeline& pipeline, const Schedule& schedule) {
  std::deque<Delivery> deliveries;  // A deque: host functions hold pointers to its elements.
  try {
    // The one order between streams: B was uploaded in a stream of its own. The host does not wait for it.
    for (const ladder::Stream& stream : pipeline.streams)
      CUDA_CHECK(cudaStreamWaitEvent(stream.get(), weights.ready()));

    for (int b = 0; b < batches.count() && !ladder::interrupted(); ++b) {
      const ladder::Stream& stream = pipeline.streams.at(b % schedule.streams);
      deliveries.push_back(
          {b, &data, pipeline.uploads.acquire(pipeline.limit), pipeline.downloads.acquire(pipeline.limit)});
      enqueue(batches, weights, kernel, pipeline, schedule, stream.get(), deliveries.back());
    }
    for (const ladder::Stream& stream : pipeline.streams) CUDA_CHECK(cudaStreamSynchronize(stream.get()));
    CUDA_CHECK(cudaStreamSynchronize(pipeline.host_functions.get()));
  } catch (const ladder::HostWaitTimedOut& timed_out) {
    // A stream that failed calls no host functions any more: then its error says why the slot never came.
    CUDA_CHECK(drain_all(pipeline, timed_out.what()));
    throw;
  } catch (const std::exception& error) {
    drain_all(pipeline, error.what());
    throw;
  }
  for (const Delivery& delivery : deliveries)
    if (delivery.thrown) std::rethrow_exception(delivery.thrown);
  for (const Delivery& delivery : deliveries)
    if (!delivery.complaint.empty()) throw WrongResult(delivery.complaint);
  if (ladder::interrupted())
    throw ladder::Interrupted(fmt::format("interrupted after {} of {} batches; nothing is left in flight",
                                          deliveries.size(), batches.count()));
}

}  // namespace lesson07
