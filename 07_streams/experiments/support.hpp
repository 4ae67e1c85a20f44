/// @file
/// What the experiments on one GPU share: host memory of three kinds, the buffers of a batch, streams, and
/// rows of results.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "07_streams/experiments/experiment.hpp"
#include "07_streams/measure/measure.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/host/problem/fill_values.hpp"
#include "common/host/problem/gemm.hpp"
#include "common/host/problem/shape.hpp"

namespace lesson07 {

/// Where host memory comes from.
enum class HostMemory {
  pageable,    ///< as malloc gives it
  registered,  ///< the same, pinned by cudaHostRegister
  pinned       ///< by cudaMallocHost
};

std::string name_of(HostMemory memory);

/// `size()` elements of host memory.
class HostArray {
 public:
  /// @throws CudaError if the memory cannot be pinned
  HostArray(size_t size, HostMemory memory);
  ~HostArray();
  HostArray(HostArray&& other) noexcept;
  HostArray& operator=(HostArray&&) = delete;

  __nv_bfloat16* data() { return data_; }
  const __nv_bfloat16* data() const { return data_; }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(__nv_bfloat16); }

 private:
  __nv_bfloat16* data_ = nullptr;
  size_t size_ = 0;
  HostMemory memory_;
};

/// B [k, n] on the device, small whole numbers.
struct RandomWeights {
  RandomWeights(int k, int n, uint64_t seed = 1);
  int k, n;
  ladder::IntegerValues values;
  ladder::DeviceBuffer<__nv_bfloat16> b;
};

/// C = A * B of so many rows, on the stream, by lesson 06's kernel. Pointers are to device memory.
void multiply(const RandomWeights& weights, const __nv_bfloat16* a, __nv_bfloat16* c, int rows,
              cudaStream_t stream);

/// All that one batch in flight needs, allocated beforehand: A [rows, k] and C [rows, n] on the host and on
/// the device. A holds small whole numbers. Batches that share a slot must be ordered, as those of one stream
/// are.
class BatchSlot {
 public:
  /// The weights must outlive the slot.
  BatchSlot(const RandomWeights& weights, int rows, HostMemory memory = HostMemory::pinned,
            uint64_t seed = 2);

  /// Each enqueues its step of a batch and returns.
  void upload(cudaStream_t stream);
  void multiply(cudaStream_t stream);
  void download(cudaStream_t stream);
  /// The three of them.
  void run(cudaStream_t stream) { run_in(a_.data(), c_.data(), stream); }
  /// The three of them with other device memory for A and C.
  void run_in(__nv_bfloat16* a, __nv_bfloat16* c, cudaStream_t stream);

  HostArray& host_a() { return host_a_; }
  HostArray& host_c() { return host_c_; }
  __nv_bfloat16* a() { return a_.data(); }
  __nv_bfloat16* c() { return c_.data(); }
  int rows() const { return rows_; }

 private:
  const RandomWeights* weights_;
  int rows_;
  HostArray host_a_, host_c_;
  ladder::DeviceBuffer<__nv_bfloat16> a_, c_;
};

std::vector<BatchSlot> make_slots(const RandomWeights& weights, int rows, int count,
                                  HostMemory memory = HostMemory::pinned);

/// Non-blocking: they do not wait for the legacy default stream.
std::vector<ladder::Stream> make_streams(int count);

/// The host waits for all of them.
void wait_for(const std::vector<ladder::Stream>& streams);

/// Batch b runs in stream b % n, in the slot of the same number, where n is the number of streams; there are
/// at least as many slots. Returns when all is done.
void run_round_robin(std::vector<BatchSlot>& slots, const std::vector<ladder::Stream>& streams, int batches);

/// Everything that `after` is given from now on begins after all that `before` was given so far. The event
/// may be used again at once.
void order(cudaStream_t before, cudaStream_t after, const ladder::Event& event);

/// How many batches an experiment runs: those of the context, but no more than it takes to make the first and
/// the last of no account. Prints how many, of which shape.
int announced_batches(const Context& context);

/// Microseconds that the host spends in `work`.
double host_us(const std::function<void()>& work);

/// "12.3"; "-" on the CPU device, where the host's time says how long the emulation took.
std::string host_time_text(double us);

/// Microseconds for a table.
std::string us_text(double us);

/// "37 %"; "-" if there is no whole.
std::string percent_text(double part, double whole);

/// Appends a row of results. `shape`: m is the rows of a batch. `verified`: its results were compared with
/// those of the host.
void add_result(const Context& context, const std::string& experiment, const Variant& variant,
                const ladder::Shape& shape, const Measured& measured, std::optional<double> bound_us = {},
                bool verified = false);

}  // namespace lesson07
