/// @file
/// Vector clocks: joined and met component by component, also where their number fills no vector register.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdint>
#include <vector>

#include "common/cpu_device/observe/vector_clock.hpp"

using cpu_device::ClockPool;
using cpu_device::VectorClock;

namespace vector_clock_test {
namespace {

VectorClock clock_of(ClockPool& pool, const std::vector<uint32_t>& counts) {
  VectorClock clock;
  for (unsigned i = 0; i < counts.size(); ++i) pool.raise(clock, i, counts[i]);
  return clock;
}

std::vector<uint32_t> counts_of(const ClockPool& pool, const VectorClock& clock, unsigned components) {
  return {pool.counts(clock), pool.counts(clock) + components};
}

}  // namespace

TEST_CASE(
    "two clocks are joined to the larger counts and met to the smaller ones, and the other clock stays") {
  const unsigned components = GENERATE(1u, 15u, 16u, 17u, 40u);
  ClockPool pool(components);
  std::vector<uint32_t> one, other, largest, smallest;
  for (unsigned i = 0; i < components; ++i) {
    one.push_back(1 + i * 7 % 5);
    other.push_back(1 + i * 3 % 4);
    largest.push_back(std::max(one[i], other[i]));
    smallest.push_back(std::min(one[i], other[i]));
  }
  const VectorClock from = clock_of(pool, other);
  VectorClock joined = clock_of(pool, one), met = clock_of(pool, one);
  pool.join(joined, from);
  pool.meet(met, from);
  CHECK(counts_of(pool, joined, components) == largest);
  CHECK(counts_of(pool, met, components) == smallest);
  CHECK(counts_of(pool, from, components) == other);
}

}  // namespace vector_clock_test
