/// @file
/// Settings of a lesson: defaults, and what the reader chose instead.
#include "common/host/problem/lesson.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/host/base/text.hpp"

namespace ladder {
namespace {

/// nullptr if there is none of that name.
const Knob* find_knob(const std::vector<Knob>& knobs, const std::string& name) {
  for (const Knob& knob : knobs)
    if (knob.name == name) return &knob;
  return nullptr;
}

}  // namespace

const std::string& Lesson::default_of(const std::string& knob) const {
  const Knob* const found = find_knob(knobs, knob);
  if (!found) throw std::invalid_argument("--" + knob + ": " + name + " has no such knob");
  return found->choices.front();
}

Settings Lesson::settings(const Settings& chosen) const {
  Settings result;
  for (const Knob& knob : knobs) result[knob.name] = knob.choices.front();
  for (const auto& [name, value] : chosen) {
    const Knob* knob = find_knob(knobs, name);
    if (!knob) throw std::invalid_argument("--" + name + ": " + this->name + " has no such knob");
    if (std::find(knob->choices.begin(), knob->choices.end(), value) == knob->choices.end())
      throw std::invalid_argument("--" + name + " " + value + ": must be one of " +
                                  join(knob->choices, ", "));
    result[name] = value;
  }
  return result;
}

Requirement Lesson::requirement() const {
  Requirement result{minimum_architecture, {"fma"}};
  if (const Knob* knob = find_knob(knobs, "core")) result.cores = knob->choices;
  return result;
}

std::string describe(const Settings& settings) {
  std::vector<std::string> words;
  for (const auto& [name, value] : settings) words.push_back(name + "=" + value);
  return words.empty() ? "defaults" : join(words, " ");
}

}  // namespace ladder
