/// @file
/// The lessons, each as its lesson.cu defines it.
#pragma once
#include "common/host/problem/lesson.hpp"

namespace lesson01 {
/// Its knobs, its rungs, its limits.
const ladder::Lesson& lesson();
}  // namespace lesson01

namespace lesson02 {
/// Its knobs, its rungs, its limits.
const ladder::Lesson& lesson();
}  // namespace lesson02

namespace lesson03 {
/// Its knobs, its rungs, its limits.
const ladder::Lesson& lesson();
}  // namespace lesson03

namespace lesson04 {
/// Its knobs, its rungs, its limits.
const ladder::Lesson& lesson();
}  // namespace lesson04

namespace lesson05 {
/// Its knobs, its rungs, its limits.
const ladder::Lesson& lesson();
}  // namespace lesson05

namespace lesson06 {
/// Its knobs, its rungs, its limits.
const ladder::Lesson& lesson();
}  // namespace lesson06

namespace lesson06::any_shape {
/// Its knobs, its rungs, its limits.
const ladder::Lesson& lesson();
}  // namespace lesson06::any_shape
