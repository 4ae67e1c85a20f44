/// @file
/// Draws a schedule with characters.
#include "common/model/picture.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace ladder::model {
namespace {

constexpr double kColumns = 80;

std::string lane(const std::vector<TileTimes>& schedule, Span TileTimes::*role, double columns_per_unit) {
  const auto column = [&](double time) { return static_cast<size_t>(std::lround(time * columns_per_unit)); };
  std::string line(schedule.empty() ? 0 : column(schedule.back().store.end), '.');
  for (size_t tile = 0; tile < schedule.size(); ++tile) {
    const Span& span = schedule[tile].*role;
    const auto begin = line.begin() + static_cast<std::ptrdiff_t>(column(span.begin));
    std::fill(begin, line.begin() + static_cast<std::ptrdiff_t>(column(span.end)),
              static_cast<char>('0' + tile % 10));
  }
  return line;
}

}  // namespace

std::vector<std::string> draw(const std::vector<TileTimes>& schedule, double columns_per_unit) {
  std::vector<std::string> lines = {"load     " + lane(schedule, &TileTimes::load, columns_per_unit),
                                    "compute  " + lane(schedule, &TileTimes::compute, columns_per_unit)};
  const auto stores = [](const TileTimes& tile) { return tile.store.end > tile.store.begin; };
  if (std::any_of(schedule.begin(), schedule.end(), stores))
    lines.push_back("store    " + lane(schedule, &TileTimes::store, columns_per_unit));
  return lines;
}

std::vector<std::string> draw_with_slots(const Pipeline& pipeline, const std::vector<int>& slots, int tiles) {
  double longest = 0;
  for (const int count : slots) longest = std::max(longest, total_time(with_slots(pipeline, count), tiles));
  double scale = longest > 0 ? kColumns / longest : 1;
  if (scale > 1) scale = std::floor(scale);  // so that equal times have equal lengths
  std::vector<std::string> lines;
  for (const int count : slots) {
    const std::vector<TileTimes> times = schedule(with_slots(pipeline, count), tiles);
    std::ostringstream title;
    title << count << (count == 1 ? " slot, " : " slots, ") << (times.empty() ? 0 : times.back().store.end);
    lines.push_back(title.str());
    for (const std::string& lane : draw(times, scale)) lines.push_back(lane);
  }
  return lines;
}

}  // namespace ladder::model
