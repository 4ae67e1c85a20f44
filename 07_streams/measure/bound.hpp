/// @file
/// The time that no schedule can beat: all of A has to be uploaded, all of C computed and downloaded. Each of
/// the three is measured alone, in the same run as the schedules.
#pragma once
#include <string>
#include <vector>

#include "07_streams/pipeline.hpp"

namespace lesson07 {

/// Microseconds that all batches take on each of the three engines.
struct Bound {
  double upload_us = 0, compute_us = 0, download_us = 0;

  double us() const;           ///< the largest
  std::string engine() const;  ///< whose it is: "upload", "compute" or "download"
};

/// Uploads all A_b and downloads all C_b, each in a stream, with nothing between them: what the bus can do
/// with both directions busy. One slot of each ring and one buffer of each kind are used over and over.
class CopiesAlone {
 public:
  CopiesAlone(const Batches& batches, Pipeline& pipeline);

  /// Returns when all copies have ended.
  void run();
  /// Of the run in the middle. @throws std::invalid_argument before the first run
  double upload_us() const;
  double download_us() const;

 private:
  const Batches& batches_;
  Pipeline& pipeline_;
  ladder::DeviceBuffer<bf16> a_, c_;
  ladder::Event begin_, upload_end_, download_end_;
  DrainedStream up_, down_;
  std::vector<double> upload_samples_, download_samples_;
};

/// Launches the kernel for all batches back to back in one stream, on data that is there.
class KernelsAlone {
 public:
  KernelsAlone(const Batches& batches, const Weights& weights, Pipeline& pipeline);

  /// Returns when all kernels have ended.
  void run(const Kernel& kernel);

 private:
  const Batches& batches_;
  const Weights& weights_;
  ladder::DeviceBuffer<bf16> a_, c_;
  DrainedStream stream_;
};

}  // namespace lesson07
