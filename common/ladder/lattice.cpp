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

/// 02 loads and computes in turns, 03 has a ring of slots, 04 has roles, 05 both.
constexpr char kNeither[] = "02", kRing[] = "03", kRoles[] = "04", kBoth[] = "05";

}  // namespace

std::string RungPlace::name() const { return number_of(lesson->name) + " " + lesson->rungs.at(rung).label; }

std::optional<RungPlace> Lattice::find(const std::string& lesson, const Settings& settings) const {
  for (const Lesson* known : lessons_) {
    if (known->name != lesson) continue;
    for (size_t i = 0; i < known->rungs.size(); ++i)
      if (known->settings(known->rungs[i].settings) == settings) return RungPlace{known, i};
  }
  return std::nullopt;
}

std::vector<RungPlace> Lattice::bases(const RungPlace& place) const {
  if (place.rung > 0) return {{place.lesson, place.rung - 1}};
  std::vector<RungPlace> bases;
  for (const std::string& name : place.lesson->builds_on)
    if (const auto base = last_of(number_of(name))) bases.push_back(*base);
  return bases;
}

std::optional<RungPlace> Lattice::last_of(const std::string& number) const {
  for (const Lesson* lesson : lessons_)
    if (number_of(lesson->name) == number && !lesson->rungs.empty())
      return RungPlace{lesson, lesson->rungs.size() - 1};
  return std::nullopt;
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

std::string Gains::bases_cell(const RungPlace& place) const {
  std::vector<std::string> words;
  for (const RungPlace& base : lattice_.bases(place)) words.push_back(number_of(base.lesson->name));
  return join(words, ", ");
}

std::string Gains::gains_cell(const Shape& shape, const RungPlace& place) const {
  std::vector<std::string> words;
  for (const RungPlace& base : lattice_.bases(place)) {
    const std::optional<double> ratio = gain(shape, place, base);
    words.push_back(ratio ? fixed(*ratio, 2) : kNoRatio);
  }
  return words.empty() ? kNoRatio : join(words, ", ");
}

std::vector<std::string> Gains::notes() const {
  constexpr double kNoise = 0.005;
  std::map<std::pair<RungPlace, RungPlace>, std::vector<std::string>> slower;
  for (size_t i = 0; i < shapes_.size(); ++i)
    for (const auto& [place, tflops] : tflops_by_shape_[i])
      for (const RungPlace& base : lattice_.bases(place))
        if (gain(shapes_[i], place, base).value_or(1) < 1 - kNoise)
          slower[{place, base}].push_back(shapes_[i].name());
  std::vector<std::string> lines;
  for (const auto& [pair, shapes] : slower)
    lines.push_back(fmt::format("{} is slower than {} at {}:\n  see {}/README.md", pair.first.name(),
                                pair.second.name(), join(shapes, ", "), pair.first.lesson->name));
  return lines;
}

std::vector<std::string> Gains::two_by_two() const {
  std::vector<std::string> lines;
  for (const Shape& shape : shapes_) {
    const auto corner = [&](const char* number) {
      const auto place = lattice_.last_of(number);
      return place ? tflops(shape, *place) : std::nullopt;
    };
    const auto neither = corner(kNeither), ring = corner(kRing), roles = corner(kRoles), both = corner(kBoth);
    if (!neither || !ring || !roles || !both) continue;
    const auto line = [&](const std::string& title, const std::string& left, const std::string& right) {
      lines.push_back(fmt::format("{:<34}{:>14}{:>14}", title, left, right));
    };
    const auto cell = [](const char* number, double tflops) {
      return fmt::format("{} {:>6}", number, fixed(tflops, 1));
    };
    line("TFLOP/s at " + shape.name(), "one slot", "a ring");
    line("  all warps load and compute", cell(kNeither, *neither), cell(kRing, *ring));
    line("  roles", cell(kRoles, *roles), cell(kBoth, *both));
  }
  return lines;
}

}  // namespace ladder
