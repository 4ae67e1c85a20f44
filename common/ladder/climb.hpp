/// @file
/// The program `ladder`: runs the rungs of every lesson and prints the climb.
#pragma once
#include <vector>

#include "common/host/problem/lesson.hpp"
#include "common/ladder/host_half.hpp"

namespace ladder {

/// All that main() does.
/// @param host_half what stands around the kernels; may be nullptr
/// @returns the exit code: 0; 1 for a wrong result or a failing device; 2 for bad input, after one line on
/// stderr
int run_ladder(const std::vector<const Lesson*>& lessons, const HostHalf* host_half, int argc, char** argv);

}  // namespace ladder
