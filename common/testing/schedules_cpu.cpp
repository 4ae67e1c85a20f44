/// @file
/// The CPU device's schedules.
#include "common/testing/schedules.hpp"

#include "common/cpu_device/cpu_device.hpp"

namespace ladder::testing {

std::vector<std::string> test_schedules(int random_seeds) {
  std::vector<std::string> names;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules()) names.push_back(schedule.name());
  for (int seed = 1; seed <= random_seeds; ++seed) names.push_back(cpu_device::Schedule::random(seed).name());
  return names;
}

void use_test_schedule(const std::string& name) {
  cpu_device::Options options;
  options.schedule = cpu_device::Schedule::parse(name);
  options.check_races = cpu_device::instrumented();
  cpu_device::set_options(options);
}

std::string current_schedule() { return cpu_device::options().schedule.name(); }

}  // namespace ladder::testing
