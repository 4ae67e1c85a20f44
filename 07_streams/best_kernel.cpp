/// @file
/// Choice of the kernel.
#include "07_streams/best_kernel.hpp"

#include <stdexcept>

#include "common/host/device/device.hpp"
#include "common/host/problem/lesson_registry.hpp"
#include "common/host/program/command_line.hpp"

namespace lesson07 {

namespace {

/// With mma.sync, roles pay only together with a ring and TMA.
bool roles_pay(const ladder::Lesson& lesson) {
  if (ladder::resolve_core("auto") == "wgmma") return true;
  return lesson.name >= "05" && ladder::this_target().code.architecture >= ladder::kHopper;
}

bool pays_here(const ladder::Lesson& lesson) {
  const bool has_roles = lesson.name >= "04";
  return ladder::why_not_runnable(lesson).empty() && (!has_roles || roles_pay(lesson));
}

}  // namespace

Kernel best_kernel(const ladder::Settings& wishes) {
  const ladder::Lesson* best = nullptr;
  for (const ladder::Lesson* lesson : ladder::all_lessons())
    if (pays_here(*lesson)) best = lesson;
  ladder::Settings granted;
  for (const ladder::Knob& knob : best->knobs)
    if (const auto wish = wishes.find(knob.name); wish != wishes.end()) granted.insert(*wish);
  return {best, best->settings(granted)};
}

void check_kernel(const ladder::Shape& shape) {
  const Kernel kernel = best_kernel();
  ladder::check_lesson(*kernel.lesson, kernel.settings, shape);
}

bool pays_here(const std::string& number) { return pays_here(*kernel_of(number).lesson); }

Kernel kernel_of(const std::string& number) {
  for (const ladder::Lesson* lesson : ladder::all_lessons())
    if (lesson->name.rfind(number, 0) == 0) return {lesson, lesson->settings()};
  throw std::logic_error("there is no lesson " + number);
}

}  // namespace lesson07
