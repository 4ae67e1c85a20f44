/// @file
/// The CPU device knows nothing about speed.
#include <stdexcept>

#include "05_ws_double_buffer/attention/measure.hpp"

namespace lesson05::attention {

std::vector<Timing> time_steps(const std::vector<const Step*>&, const Attention&, int) {
  throw std::logic_error("the CPU device has no times");
}

}  // namespace lesson05::attention
