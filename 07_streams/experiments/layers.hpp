/// @file
/// The two layers of experiment `layers` on one GPU, for the experiment and its tests.
#pragma once
#include <vector>

#include "07_streams/experiments/exact_rows.hpp"
#include "07_streams/experiments/support.hpp"

namespace lesson07 {

/// A wait that a run leaves out: a mistake.
enum class LeftOut {
  nothing,     ///< as it must be
  until_made,  ///< layer 2 does not wait until its H has been made
  until_used   ///< layer 1 does not wait until the H that it overwrites has been used
};

/// Y_b = H_b B2 and H_b = X_b B1, rounded to bf16 as a kernel stores it, for a number of batches.
class LayersOfOneGpu {
 public:
  /// Batch b has the X of batch b % kInputs. No multiple of the slots, so that neighbours in a slot differ.
  static constexpr int kInputs = 3;

  /// The weights must outlive it; `second.k` is `first.n`.
  LayersOfOneGpu(const RandomWeights& first, const RandomWeights& second, int rows);
  ~LayersOfOneGpu();
  LayersOfOneGpu(const LayersOfOneGpu&) = delete;
  LayersOfOneGpu& operator=(const LayersOfOneGpu&) = delete;

  /// Layer 1 in one stream and layer 2 in another, or both in the same; returns when all is done.
  /// @param sampled where rows of each Y go, or nullptr
  void run(int batches, cudaStream_t layer1, cudaStream_t layer2, SampledRows* sampled = nullptr,
           LeftOut left_out = LeftOut::nothing);

  /// Runs some batches, and compares rows of every Y with the host's. @throws WrongResult
  void check(const std::string& who, cudaStream_t layer1, cudaStream_t layer2,
             LeftOut left_out = LeftOut::nothing);

 private:
  static constexpr int kSlots = 2;  ///< of H: one is made while the other is used

  std::vector<float> expected_rows(int batch, const std::vector<int>& rows) const;
  ladder::IntegerValues values(int input) const;

  const RandomWeights &first_, &second_;
  int rows_;
  std::vector<ladder::DeviceBuffer<bf16>> x_, h_;
  ladder::DeviceBuffer<bf16> y_;
  std::vector<ladder::Event> made_, used_;
  std::vector<std::vector<float>> expected_;  ///< of each input, once it was asked for
};

}  // namespace lesson07
