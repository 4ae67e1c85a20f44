/// @file
/// The growing requests of experiment `scratch`, for the experiment and its tests.
#pragma once
#include <vector>

#include "07_streams/batches.hpp"
#include "07_streams/experiments/support.hpp"
#include "07_streams/pinned_ring.hpp"
#include "07_streams/stream_buffer.hpp"

namespace lesson07 {

/// Several requests, served in turn, each in a stream of its own and each at another point of its growth. A
/// step uploads the request's new rows of A and multiplies all of A. A request that has all its rows gives
/// way to a new one, with other rows.
class Requests {
 public:
  static constexpr int kSteps = 8;  ///< until a request has all its rows

  /// The weights and the streams must outlive it; there is a request for each stream.
  Requests(const RandomWeights& weights, int most_rows, const std::vector<ladder::Stream>& streams,
           int steps);

  /// Every request has an A and a scratch of `slots` for itself. All run functions return when all is done.
  void run_in_largest(std::vector<BatchSlot>& slots);
  /// Every step takes a larger A and scratch from the pool, and moves the rows that are there.
  /// @param moves false leaves the move out: a mistake
  /// @param host_waits the host waits for the stream after each step, so that its frees have run
  void run_in_pool(const MemoryPool& pool, bool moves = true, bool host_waits = false);

  /// From now on, every step of a run also brings rows of its product to the host: an old one from each end
  /// of those that were there before, and the last.
  void keep_samples();
  /// Compares what the last run has brought with the definition, and keeps no more.
  /// @throws WrongResult naming the request, the step and the row
  void check_samples(const std::string& who);

 private:
  /// The rows of a request before a step and after it.
  struct Growth {
    int had, has;
    int source;  ///< which row of source_ is row 0 of its A
  };
  /// A row of a product that is on the host.
  struct Sample {
    size_t request;
    int step, row;
    Growth growth;
  };
  static constexpr int kSources = 16, kSamples = 3;

  template <class Step>
  void for_each_step(const Step& run_step);
  Growth growth(size_t request, int step) const;
  void add_rows_and_multiply(__nv_bfloat16* a, __nv_bfloat16* scratch, const Growth& rows,
                             cudaStream_t stream);
  void sample(size_t request, int step, const __nv_bfloat16* scratch, const Growth& rows,
              cudaStream_t stream);
  double right_value(const Sample& sample, int column) const;
  size_t a_bytes(int rows) const { return size_t(rows) * weights_.k * sizeof(__nv_bfloat16); }

  const RandomWeights& weights_;
  int most_rows_;
  const std::vector<ladder::Stream>& streams_;
  int steps_;
  ladder::IntegerValues values_;
  HostArray source_;  ///< [most_rows + kSources, k]: what is uploaded
  std::vector<Sample> samples_;
  std::vector<PinnedBuffer<__nv_bfloat16>> sampled_;  ///< none, or one with a row for each sample
};

}  // namespace lesson07
