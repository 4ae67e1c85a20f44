/// @file
/// The chain of experiment `events`, for the experiment and its tests.
#pragma once
#include <string>
#include <vector>

#include "07_streams/experiments/support.hpp"

namespace lesson07 {

/// When the work of one stream ran, in microseconds since the start of all.
struct StreamTimes {
  std::string name;
  double begin_us = 0, end_us = 0;
};

/// Work in four streams: A makes X1, B makes X2 of X1, D makes X3 of X2. C makes Y and has nothing to do with
/// them. Each step is a few products with the same square weights.
class Chain {
 public:
  /// The weights must be square and outlive the chain.
  Chain(const RandomWeights& weights, int rows);

  /// The four streams, where B waits for A and D for B by events; returns when all is done.
  /// @param waits false leaves the two waits out: a mistake
  void run(bool waits = true);
  /// The same in one stream.
  void run_in_one_stream();

  /// Of the last run(): A, B, C, D.
  std::vector<StreamTimes> times() const;
  /// X3 and Y of the last run.
  std::vector<__nv_bfloat16> results() const;

 private:
  struct Step {
    const char* name;
    const __nv_bfloat16* from;
    __nv_bfloat16* to;
    ladder::Stream stream = ladder::make_stream();
    ladder::Event begin = ladder::make_event(), end = ladder::make_event();
  };
  void work(Step& step, cudaStream_t stream);

  const RandomWeights* weights_;
  int rows_;
  size_t elements_;
  ladder::DeviceBuffer<__nv_bfloat16> x0_, x1_, x2_, x3_, y0_, y_;
  Step a_, b_, c_, d_;
  ladder::Event start_ = ladder::make_event();
};

}  // namespace lesson07
