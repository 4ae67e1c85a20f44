/// @file
/// The part of timing that needs no device: whose turn it is, and on how many sets of inputs.
#include "common/host/timing.hpp"

#include <algorithm>
#include <cmath>

namespace ladder {

std::vector<std::vector<double>> interleave(size_t count, int rounds,
                                            const std::function<double(size_t)>& sample) {
  std::vector<std::vector<double>> samples(count);
  for (int round = 0; round < rounds; ++round)
    for (size_t turn = 0; turn < count; ++turn) {
      const size_t contender = (static_cast<size_t>(round) + turn) % count;
      samples[contender].push_back(sample(contender));
    }
  return samples;
}

int input_sets(const Shape& shape, size_t l2_bytes) {
  const double sets = std::ceil(2.0 * static_cast<double>(l2_bytes) / shape.bytes());
  return static_cast<int>(std::clamp(sets, 1.0, 256.0));
}

}  // namespace ladder
