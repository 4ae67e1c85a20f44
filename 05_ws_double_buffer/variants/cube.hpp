/// @file
/// The cube: roles or none, a ring of one to four slots, one or two blocks on a multiprocessor, all else
/// equal.
#pragma once
#include "common/host/problem/lesson.hpp"

namespace lesson05::cube {

/// As a lesson for the programs; its knobs are the axes of the cube.
const ladder::Lesson& lesson();

}  // namespace lesson05::cube
