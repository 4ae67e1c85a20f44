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

std::vector<Contender> with_fastest_candidates(
    const std::vector<Contender>& contenders,
    const std::function<std::vector<Timing>(const std::vector<Contender>&)>& time) {
  std::vector<Contender> result = contenders;
  for (Contender& contender : result) {
    if (contender.candidates.empty()) continue;
    std::vector<Contender> each;
    for (const auto& candidate : contender.candidates) {
      each.push_back(contender);
      each.back().launch = candidate;
    }
    const std::vector<Timing> timings = time(each);
    const auto fastest = std::min_element(
        timings.begin(), timings.end(),
        [](const Timing& a, const Timing& b) { return a.time_us.median < b.time_us.median; });
    contender.launch = contender.candidates[fastest - timings.begin()];
  }
  return result;
}

std::string name_of(Inputs inputs) {
  return inputs == Inputs::cold ? "cold" : inputs == Inputs::hot ? "hot" : "zeros";
}

int input_sets(const Shape& shape, size_t l2_bytes) {
  const double sets = std::ceil(2.0 * static_cast<double>(l2_bytes) / shape.bytes());
  return static_cast<int>(std::clamp(sets, 1.0, 256.0));
}

}  // namespace ladder
