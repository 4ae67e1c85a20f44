/// @file
/// The CPU device's schedules.
#include "common/testing/schedules.hpp"

#include <algorithm>

#include "common/cpu_device/cpu_device.hpp"

namespace ladder::testing {
namespace {

/// As different as two can be. What races does so on nearly every schedule, because the checker compares what
/// is ordered, not what happened; and to watch each access takes several times as long as to run it.
bool is_one_of_two(const cpu_device::Schedule& schedule) {
  using namespace cpu_device;
  return (schedule.order == Order::round_robin && schedule.landing == Landing::late) ||
         (schedule.order == Order::highest_first && schedule.landing == Landing::eager);
}

}  // namespace

std::vector<TestSchedule> test_schedules(Breadth breadth, int random_seeds) {
  std::vector<TestSchedule> schedules;
  for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules())
    if (is_one_of_two(schedule) ? breadth != Breadth::more : breadth > Breadth::narrow)
      schedules.push_back({schedule.name(), is_one_of_two(schedule) || breadth == Breadth::more});
  if (breadth == Breadth::one) schedules.resize(1);
  for (int seed = 1; seed <= random_seeds; ++seed)
    schedules.push_back({cpu_device::Schedule::random(seed).name(), breadth == Breadth::more});
  return schedules;
}

void use_test_schedule(const TestSchedule& schedule) {
  cpu_device::Options options;
  options.schedule = cpu_device::Schedule::parse(schedule.name);
  options.check_races = options.check_grid = schedule.check_races && cpu_device::instrumented();
  cpu_device::set_options(options);
}

std::string current_schedule() { return cpu_device::options().schedule.name(); }

}  // namespace ladder::testing
