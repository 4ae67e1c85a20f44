/// @file
/// Median and quartiles.
#pragma once
#include <algorithm>
#include <stdexcept>
#include <vector>

namespace ladder {

struct Quartiles {
  double q1 = 0, median = 0, q3 = 0;
};

/// With linear interpolation between neighbours, as in numpy.percentile.
/// @throws std::invalid_argument if there are no samples.
inline Quartiles quartiles(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("quartiles of no samples");
  std::sort(samples.begin(), samples.end());
  const auto at = [&samples](double fraction) {
    const double position = fraction * static_cast<double>(samples.size() - 1);
    const size_t below = static_cast<size_t>(position);
    const size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (position - static_cast<double>(below)) * (samples[above] - samples[below]);
  };
  return {at(0.25), at(0.5), at(0.75)};
}

}  // namespace ladder
