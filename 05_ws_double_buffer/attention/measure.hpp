/// @file
/// How long the kernels of attention take. Only in the GPU build.
#pragma once
#include <vector>

#include "05_ws_double_buffer/attention/kernels.hpp"
#include "common/host/base/statistics.hpp"

namespace lesson05::attention {

struct Timing {
  ladder::Quartiles time_us;
  double clock_mhz;  ///< of the multiprocessors, the median over the samples
};

/// Times the steps in one interleaved run, each sample after a warm-up of its own.
std::vector<Timing> time_steps(const std::vector<const Step*>& steps, const Attention& p, int rounds);

}  // namespace lesson05::attention
