/// @file
/// The device-specific part of the lessons' tests.
#pragma once
#include <string>
#include <vector>

#include "common/testing/breadth.hpp"

namespace ladder::testing {

/// A way to run kernels. On the GPU there is one, without a name.
struct TestSchedule {
  std::string name;
  bool check_races = false;  ///< where the program is instrumented
};

/// The schedules that tests run by.
/// @param random_seeds how many random ones there are beside the fixed ones
std::vector<TestSchedule> test_schedules(Breadth breadth, int random_seeds);

/// From now on kernels run by this schedule.
void use_test_schedule(const TestSchedule& schedule);

/// The name of the schedule in use; empty on the GPU.
std::string current_schedule();

}  // namespace ladder::testing
