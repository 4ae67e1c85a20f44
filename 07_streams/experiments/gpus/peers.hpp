/// @file
/// Two layers on two GPUs: while GPU 1 computes layer 2 of batch b, GPU 0 computes layer 1 of batch b+1.
///
///   GPU 0, stream of layer 1   [layer 1, b]              [layer 1, b+1] ...
///   GPU 0, stream of copies                 [copy b to 1]              ...
///   GPU 1, stream of layer 2                             [layer 2, b] ...
///
/// H_b = A_b B1 and C_b = H_b B2. Events order the three streams; the host only enqueues.
#pragma once
#include <cstdint>
#include <vector>

#include "07_streams/experiments/exact_rows.hpp"
#include "07_streams/experiments/experiment.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"

namespace lesson07 {

/// Who orders the layers of a batch that run on different GPUs.
enum class HandOff {
  events,                ///< the devices among themselves
  host,                  ///< the host, which waits for each step of a batch
  nobody_until_copied,   ///< as events, but layer 2 does not wait for the copy: a mistake
  nobody_until_consumed  ///< as events, but the copy does not wait until layer 2 has read what it overwrites
};

/// The matrices of both layers on both GPUs, and the schedules that are compared. A [m, k], B1 [k, n],
/// H [m, n], B2 [n, k], C [m, k].
class TwoLayers {
 public:
  /// Batch b has the A of batch b % kInputs. No multiple of the slots, so that neighbours in a slot differ.
  static constexpr int kInputs = 3;

  /// The first two devices. @throws ladder::OutOfDeviceMemory
  explicit TwoLayers(const ladder::Shape& shape);
  ~TwoLayers();
  TwoLayers(const TwoLayers&) = delete;
  TwoLayers& operator=(const TwoLayers&) = delete;

  /// Whole numbers, different from batch to batch, so that results are known.
  void fill_exactly(uint64_t seed);
  /// What weights and activations look like; for timing.
  void fill_normally(uint64_t seed);

  /// Layer 1 on GPU 0, layer 2 on GPU 1. `sampled`: where rows of each C go, or nullptr. All run() functions
  /// return when everything is done.
  void run_on_two(int batches, HandOff hand_off, SampledRows* sampled = nullptr);
  void run_on_one(int batches, SampledRows* sampled = nullptr);
  /// Parts alone, one after the other without a pause.
  void run_layer(int layer, int batches);
  void run_copies(int batches);

  double copy_bytes() const { return 2.0 * shape_.m * shape_.n; }
  /// The sampled rows of C_b, after fill_exactly(seed).
  std::vector<float> expected_rows(uint64_t seed, int batch, const std::vector<int>& rows) const;

 private:
  /// What the batches b, b + kSlots, b + 2 kSlots, ... use in turn.
  struct Slot {
    ladder::DeviceBuffer<bf16> h0, h1, c;      ///< H on GPU 0 and on GPU 1; C where layer 2 runs
    ladder::Event computed, copied, consumed;  ///< layer 1, the copy, layer 2: their ends
  };
  static constexpr int kSlots = 2;

  void layer(int number, const bf16* from, const bf16* weights, bf16* to, cudaStream_t stream) const;
  void copy(Slot& slot, cudaStream_t stream) const;
  void wait() const;

  ladder::Shape shape_;
  std::vector<ladder::DeviceBuffer<bf16>> a_;
  ladder::DeviceBuffer<bf16> b1_, b2_, b2_on_one_;  ///< on GPU 0, GPU 1, GPU 0
  ladder::DeviceBuffer<bf16> c_on_one_;
  ladder::Stream first_, copies_, second_;
  std::vector<Slot> slots_;
};

}  // namespace lesson07
