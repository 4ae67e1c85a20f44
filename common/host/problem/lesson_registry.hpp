/// @file
/// The list of all lessons. The build writes its definition from the directories that call add_lesson.
#pragma once
#include <vector>

#include "common/host/problem/lesson.hpp"

namespace ladder {

/// In the order of the ladder.
std::vector<const Lesson*> all_lessons();

}  // namespace ladder
