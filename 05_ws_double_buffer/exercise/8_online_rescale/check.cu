/// @file
/// The check of exercise 05.8: one lane merges keys whose scores rise and fall, and lanes merge their parts.
#include EXERCISE

#include <algorithm>

#include "common/exercise/check.hpp"

namespace {

using exercise::kDim;
using exercise::Part;

bool near(double got, double expected) { return std::abs(got - expected) <= 1e-4 * (1 + std::abs(expected)); }

/// @throws NotYet with `reason` unless the part of all these keys is right
void attend(const std::vector<float>& scores, int lanes, const std::string& keys, const std::string& reason) {
  const int count = int(scores.size());
  std::vector<float> v(scores.size() * kDim);
  for (size_t i = 0; i < v.size(); ++i) v[i] = float(i * i % 11) - 4;
  const ladder::DeviceBuffer<float> scores_device(scores), v_device(v);
  ladder::DeviceBuffer<Part> all(std::vector<Part>(1));
  exercise::launch_attend(scores_device.data(), v_device.data(), count, lanes, all.data());
  Part got;
  CUDA_CHECK(cudaMemcpy(&got, all.data(), sizeof got, cudaMemcpyDefault));

  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0, o[kDim] = {};
  for (int key = 0; key < count; ++key) {
    const double weight = std::exp(scores[key] - largest);
    sum += weight;
    for (int i = 0; i < kDim; ++i) o[i] += weight * v[key * kDim + i];
  }
  const auto must = [&](const char* name, double is, double must_be) {
    ladder::exercise::expect(near(is, must_be), fmt::format("{}: {} is {:.4g}, must be {:.4g}: {}", keys,
                                                            name, is, must_be, reason));
  };
  must("largest", got.largest, largest);
  must("sum", got.sum, sum);
  for (int i = 0; i < kDim; ++i)
    ladder::exercise::expect(near(got.o[i], o[i]),
                             fmt::format("{}: the sum is right, but o[{}] is {:.4g}, must be {:.4g}: {}",
                                         keys, i, got.o[i], o[i], reason));
}

void check() {
  std::vector<float> rising;
  for (int key = 0; key < 40; ++key) rising.push_back(.5f * float(key) - 3);
  const std::vector<float> falling(rising.rbegin(), rising.rend());
  attend({2}, 1, "one key", "a part without a key merges a part with one");
  attend({2, 2, 2}, 1, "three keys with the same score", "each has the weight 1");
  attend(rising, 1, "scores that rise", "the old sum is relative to an old, smaller maximum");
  attend(falling, 1, "scores that fall", "the new part's sum is relative to its own, smaller maximum");
  attend({300, 500, 400}, 1, "scores of 300 to 500", "an exponential has overflowed");
  attend(rising, ladder::kWarp, "40 keys over 32 lanes", "the parts have several keys");
  attend({1, 3, 2}, ladder::kWarp, "three keys over 32 lanes",
         "most lanes have no key, and infinity minus infinity is NaN");
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
