/// @file
/// The device-specific part of the lessons' tests.
#pragma once
#include <string>
#include <vector>

namespace ladder::testing {

/// The schedules that tests run by, by name; on the GPU one without a name.
std::vector<std::string> test_schedules(int random_seeds);

/// From now on kernels run by this schedule, with race checking where the program is instrumented.
void use_test_schedule(const std::string& name);

/// The schedule in use; empty on the GPU.
std::string current_schedule();

}  // namespace ladder::testing
