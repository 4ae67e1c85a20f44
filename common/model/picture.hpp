/// @file
/// Draws a schedule with characters: one line for each role, time to the right.
#pragma once
#include <string>
#include <vector>

#include "common/model/model.hpp"

namespace ladder::model {

/// A line for load, for compute and, unless it takes no time, for store. A tile is shown by the last digit of
/// its number, idle time by dots. `columns_per_unit` characters stand for one unit of time.
std::vector<std::string> draw(const std::vector<TileTimes>& schedule, double columns_per_unit);

/// The same pipeline with each number of slots, one below the other in one scale, at most 80 characters long,
/// each with a title that says the number of slots and the total time. @throws as schedule() does
std::vector<std::string> draw_with_slots(const Pipeline& pipeline, const std::vector<int>& slots, int tiles);

}  // namespace ladder::model
