/// @file
/// What the tests of the CPU device share: kernels as lambdas, run on chosen schedules.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/testing/breadth.hpp"

namespace cpu_device::test {

/// One block of `threads` threads unless said otherwise.
struct Shape {
  Dim3 block = 32;
  size_t shared_bytes = 0;
  Dim3 grid = 1;
  Dim3 cluster = 1;
};

/// While one lives, instrumented tests also check for races: for kernels that are right.
struct CheckRaces {
  static inline bool wanted = false;
  CheckRaces() { wanted = true; }
  ~CheckRaces() { wanted = false; }
};

/// Runs `body` as every thread of a kernel called "test".
inline void run(const Shape& shape, const Schedule& schedule, const std::function<void()>& body,
                int os_threads = 0) {
  Options options;
  options.schedule = schedule;
  options.os_threads = os_threads;
  options.check_races = CheckRaces::wanted && instrumented();
  set_options(options);
  launch({"test", shape.grid, shape.block, shape.cluster, shape.shared_bytes}, body);
}

/// What the kernel is blamed for on this schedule; empty if for nothing.
inline std::string failure(const Shape& shape, const Schedule& schedule, const std::function<void()>& body) {
  try {
    run(shape, schedule, body);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

/// How many random schedules a test tries: a hundred with LADDER_TEST_BREADTH=more.
inline uint64_t random_seeds() {
  using ladder::testing::Breadth;
  const Breadth breadth = ladder::testing::breadth();
  return breadth == Breadth::more ? 100 : breadth == Breadth::usual ? 10 : 2;
}

inline std::vector<Schedule> random_schedules() {
  std::vector<Schedule> schedules;
  for (uint64_t seed = 1; seed <= random_seeds(); ++seed) schedules.push_back(Schedule::random(seed));
  return schedules;
}

/// {round robin, lowest first, highest first} x {late, eager}, and random ones.
inline std::vector<Schedule> all_schedules() {
  std::vector<Schedule> schedules = fixed_schedules();
  for (const Schedule& schedule : random_schedules()) schedules.push_back(schedule);
  return schedules;
}

}  // namespace cpu_device::test
