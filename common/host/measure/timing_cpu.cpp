/// @file
/// The CPU device executes semantics, not speed: there is nothing to time.
#include <stdexcept>

#include "common/host/measure/timing.hpp"

namespace ladder {

std::vector<Timing> time_interleaved(const std::vector<Contender>&, const Shape&, const TimingOptions&) {
  throw std::logic_error("the CPU device has no timing");
}

}  // namespace ladder
