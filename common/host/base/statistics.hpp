/// @file
/// Median and quartiles.
#pragma once
#include <vector>

namespace ladder {

struct Quartiles {
  double q1 = 0, median = 0, q3 = 0;
};

/// With linear interpolation between neighbours, as in numpy.percentile.
/// @throws std::invalid_argument if there are no samples.
Quartiles quartiles(std::vector<double> samples);

}  // namespace ladder
