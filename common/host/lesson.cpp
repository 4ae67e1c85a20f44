/// @file
/// Settings of a lesson: defaults, and what the reader chose instead.
#include "common/host/lesson.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/host/text.hpp"

namespace ladder {

Settings Lesson::settings(const Settings& chosen) const {
  Settings result;
  for (const Knob& knob : knobs) result[knob.name] = knob.choices.front();
  for (const auto& [name, value] : chosen) {
    const auto knob = std::find_if(knobs.begin(), knobs.end(), [&](const Knob& k) { return k.name == name; });
    if (knob == knobs.end())
      throw std::invalid_argument("--" + name + ": " + this->name + " has no such knob");
    if (std::find(knob->choices.begin(), knob->choices.end(), value) == knob->choices.end())
      throw std::invalid_argument("--" + name + " " + value + ": must be one of " +
                                  join(knob->choices, ", "));
    result[name] = value;
  }
  return result;
}

}  // namespace ladder
