/// @file
/// A product whose K is split over GPUs, C_b = sum over g of A_b,g B_g, and the all-reduce that adds the
/// parts.
///
///   each GPU, stream of products      [A_0 B][A_1 B            ][A_2 B ...
///   each GPU, stream of all-reduces          [all-reduce of C_0]       [all-reduce of C_1]
#pragma once
#include <cstdint>
#include <vector>

#include "07_streams/experiments/exact_rows.hpp"
#include "07_streams/experiments/experiment.hpp"
#include "07_streams/experiments/gpus/communicators.hpp"
#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"

namespace lesson07 {

/// What a run does.
struct SplitSchedule {
  bool multiplies = true, reduces = true;
  bool overlaps = true;  ///< the all-reduce of a batch with the product of the next
  int spare_sms = 0;     ///< left to NCCL's kernels: a choice of lesson 06's knob
  bool waits_until_multiplied = true, waits_until_reduced = true;  ///< false leaves a wait out: a mistake
};

/// The matrices on all devices. A [m, k / devices], B [k / devices, n] and C [m, n] on each.
class SplitProduct {
 public:
  /// Batch b has the A of batch b % kInputs. No multiple of the slots, so that neighbours in a slot differ.
  static constexpr int kInputs = 3;

  /// @throws std::invalid_argument if k is no multiple of 8 for each device; ladder::OutOfDeviceMemory
  SplitProduct(const ladder::Shape& shape, int devices);
  ~SplitProduct();
  SplitProduct(const SplitProduct&) = delete;
  SplitProduct& operator=(const SplitProduct&) = delete;

  /// Whole numbers, different from batch to batch, so that results are known.
  void fill_exactly(uint64_t seed);
  /// What weights and activations look like; for timing.
  void fill_normally(uint64_t seed);

  /// Returns when everything is done. `sampled`: where rows of each C go, as every device has them; or empty
  /// @throws as Communicators::all_reduce() and wait(), which waits for 10 s and 1 s for each batch
  void run(int batches, const SplitSchedule& schedule, Communicators& communicators,
           const std::vector<SampledRows*>& sampled = {});

  double c_bytes() const { return 2.0 * shape_.m * shape_.n; }
  /// The sampled rows of C_b, after fill_exactly(seed).
  std::vector<float> expected_rows(uint64_t seed, int batch, const std::vector<int>& rows) const;

 private:
  static constexpr int kSlots = 2;

  /// What one device has.
  struct Part {
    ladder::DeviceBuffer<bf16> a[kInputs], b, c[kSlots];
    ladder::Stream products, all_reduces;  ///< the second is urgent
    ladder::Event multiplied[kSlots], reduced[kSlots];
  };

  void multiply(Part& part, int batch, const SplitSchedule& schedule) const;
  int k_of_part() const { return shape_.k / static_cast<int>(parts_.size()); }

  ladder::Shape shape_;
  std::vector<Part> parts_;
};

}  // namespace lesson07
