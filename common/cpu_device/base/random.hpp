/// @file
/// The random numbers behind random schedules: small, fast, and the same on every platform.
#pragma once
#include <cstdint>

namespace cpu_device {

/// SplitMix64. Every cluster gets its own generator, seeded from (seed, cluster), so that an execution does
/// not depend on which OS thread ran it.
class Random {
 public:
  Random() = default;
  Random(uint64_t seed, uint64_t stream) : state_(mix(seed) ^ mix(~stream)) {}

  uint64_t operator()() { return mix(state_ += 0x9e3779b97f4a7c15); }
  /// Uniform in [0, count); the bias of the remainder is far below what a schedule could notice.
  uint64_t below(uint64_t count) { return (*this)() % count; }
  bool one_in(uint64_t count) { return below(count) == 0; }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t state_ = 0;
};

}  // namespace cpu_device
