/// @file
/// Which rung builds on which, and what it gains.
#include "common/ladder/lattice.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <utility>

#include "common/host/base/text.hpp"

namespace ladder {
namespace {

constexpr char kNoRatio[] = "-";
constexpr char kAnyShape[] = "any";  ///< the id of kernels that are no step

}  // namespace

std::string RungPlace::id() const {
  const std::string& id = lesson->rungs.at(rung).id;
  return id.empty() ? number_of(lesson->name) : id;
}

std::string RungPlace::name() const { return id() + " " + lesson->rungs.at(rung).label; }

std::optional<RungPlace> Lattice::find(const std::string& lesson, const Settings& settings) const {
  for (const Lesson* known : lessons_) {
    if (known->name != lesson) continue;
    for (size_t i = 0; i < known->rungs.size(); ++i)
      if (runs({known, i}) && known->settings(known->rungs[i].settings) == settings)
        return RungPlace{known, i};
  }
  return std::nullopt;
}

bool Lattice::runs(const RungPlace& place) const {
  const std::string& needed = place.lesson->rungs.at(place.rung).core;
  return needed.empty() || core_.empty() || needed == core_;
}

std::optional<RungPlace> Lattice::base(const RungPlace& place) const {
  for (RungPlace before = place; before.rung-- > 0;)
    if (runs(before)) return before;
  return place.lesson->builds_on.empty() ? std::nullopt : last_of(place.lesson->builds_on.front());
}

std::optional<RungPlace> Lattice::last_of(const std::string& name) const {
  for (const Lesson* lesson : lessons_)
    if (lesson->name == name) return base({lesson, lesson->rungs.size()});
  return std::nullopt;
}

std::vector<RungPlace> Lattice::rungs() const {
  std::vector<RungPlace> all;
  for (const Lesson* lesson : lessons_)
    for (size_t i = 0; i < lesson->rungs.size(); ++i)
      if (runs({lesson, i})) all.push_back({lesson, i});
  return all;
}

void Gains::add(const Shape& shape, const RungPlace& place, double tflops) {
  const auto known = std::find(shapes_.begin(), shapes_.end(), shape);
  const auto index = static_cast<size_t>(known - shapes_.begin());
  if (known == shapes_.end()) {
    shapes_.push_back(shape);
    tflops_by_shape_.emplace_back();
  }
  tflops_by_shape_[index][place] = tflops;
}

std::optional<double> Gains::tflops(const Shape& shape, const RungPlace& place) const {
  const auto known = std::find(shapes_.begin(), shapes_.end(), shape);
  if (known == shapes_.end()) return std::nullopt;
  const auto& all = tflops_by_shape_[static_cast<size_t>(known - shapes_.begin())];
  const auto found = all.find(place);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> Gains::gain(const Shape& shape, const RungPlace& place, const RungPlace& base) const {
  const std::optional<double> mine = tflops(shape, place), before = tflops(shape, base);
  return mine && before ? std::optional(*mine / *before) : std::nullopt;
}

std::string Gains::base_cell(const RungPlace& place) const {
  const auto base = lattice_.base(place);
  return base ? base->id() : "";
}

std::string Gains::gain_cell(const Shape& shape, const RungPlace& place) const {
  const auto base = lattice_.base(place);
  const auto ratio = base ? gain(shape, place, *base) : std::nullopt;
  return ratio ? fixed(*ratio, 2) : kNoRatio;
}

std::vector<std::string> Gains::causes() const {
  std::vector<std::string> lines;
  for (const RungPlace& place : lattice_.rungs()) {
    const auto base = lattice_.base(place);
    const std::string& cause = place.lesson->rungs.at(place.rung).cause;
    if (base) lines.push_back(fmt::format("{:<4} over {:<4}  {}", place.id(), base->id(), cause));
  }
  return lines;
}

std::vector<std::string> Gains::path() const {
  std::vector<RungPlace> way;
  for (const RungPlace& place : lattice_.rungs())
    if (place.id() != kAnyShape) way = {place};
  while (!way.empty()) {
    const auto base = lattice_.base(way.back());
    if (!base) break;
    way.push_back(*base);
  }
  std::vector<std::string> lines;
  for (const Shape& shape : shapes_) {
    std::string gains;
    double whole = 1;
    bool known = way.size() > 2;
    for (size_t i = way.size(); known && i-- > 1;) {
      const auto ratio = gain(shape, way[i - 1], way[i]);
      known = ratio.has_value();
      if (!known) break;
      whole *= *ratio;
      gains += (gains.empty() ? "" : " x ") + fixed(*ratio, 2);
    }
    if (known)
      lines.push_back(fmt::format(
          "{}, from {} to {}:\n  {}", shape.name(), way.back().id(), way.front().id(),
          wrapped(gains + " = " + fixed(whole, whole < 10 ? 2 : 0), kTerminalColumns - 2, "\n  ")));
  }
  return lines;
}

std::vector<std::string> Gains::notes() const {
  constexpr double kNoise = 0.005;
  std::vector<std::string> lines;
  for (const RungPlace& place : lattice_.rungs()) {
    const auto base = lattice_.base(place);
    if (!base) continue;
    std::vector<std::string> shapes;
    for (const Shape& shape : shapes_)
      if (gain(shape, place, *base).value_or(1) < 1 - kNoise) shapes.push_back(shape.name());
    if (!shapes.empty())
      lines.push_back(
          fmt::format("{} is slower than {} at {}", place.name(), base->name(), join(shapes, ", ")));
  }
  return lines;
}

}  // namespace ladder
