/// @file
/// The part of timing that needs no device: whose turn it is, and on how many sets of inputs.
#include "common/host/measure/timing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace ladder {

std::vector<std::vector<double>> interleave(size_t count, int rounds,
                                            const std::function<double(size_t)>& sample) {
  std::vector<std::vector<double>> samples(count);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(1);  // the same orders in every run
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    for (const size_t contender : order) samples[contender].push_back(sample(contender));
  }
  return samples;
}

int input_sets(const Shape& shape, size_t l2_bytes) {
  const double sets = std::ceil(2.0 * static_cast<double>(l2_bytes) / shape.bytes());
  return static_cast<int>(std::clamp(sets, 1.0, 256.0));
}

}  // namespace ladder
