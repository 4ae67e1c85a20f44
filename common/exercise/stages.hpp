/// @file
/// The stages of a capstone: one marked source from which the reference of each stage is taken.
#pragma once
#include <string>

namespace ladder {

/// The lines of `marked` that belong to a stage: those whose `#if STAGE >= 3`, `#if STAGE == 4 || STAGE ==
/// 5`,
/// `#else` and `#endif` say so. Other lines of the preprocessor are kept as they are.
/// @throws std::invalid_argument naming a line whose condition is no comparison of STAGE with a number
std::string stage_text(const std::string& marked, int stage);

/// What turns the lines of `before` into those of `after`, as `diff -u` shows it: a line each, which begins
/// with a blank, "-" or "+", with at most `around` unchanged lines around changes, and "..." between.
std::string line_diff(const std::string& before, const std::string& after, size_t around = 2);

}  // namespace ladder
