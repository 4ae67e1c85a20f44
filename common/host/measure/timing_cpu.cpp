/// @file
/// The CPU device executes semantics, not speed: there is nothing to time, and no library to compare with.
#include <stdexcept>

#include "common/host/measure/timing.hpp"

namespace ladder {

std::vector<Contender> baselines(const Shape&) { return {}; }

std::vector<Timing> time_interleaved(const std::vector<Contender>&, const Shape&, const TimingOptions&) {
  throw std::logic_error("the CPU device has no timing");
}

}  // namespace ladder
