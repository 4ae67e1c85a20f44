/// @file
/// The kernels of attention, from the first step to the last.
#pragma once
#include <string>
#include <vector>

#include "05_ws_double_buffer/attention/problem.hpp"
#include "common/cuda/resources.hpp"

namespace lesson05::attention {

struct Step {
  std::string name;  ///< "1" to "5"
  std::string idea;
  void (*launch)(const Attention&, cudaStream_t);  ///< throws std::invalid_argument, CudaError
  ladder::Resources (*resources)();
};

const std::vector<Step>& steps();

}  // namespace lesson05::attention
