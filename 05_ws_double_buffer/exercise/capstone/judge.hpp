/// @file
/// The requirements of the capstone's stages, which their checks test.
#pragma once
#include "common/host/problem/gemm.hpp"

namespace capstone {

using Launch = void (*)(const ladder::Gemm& p, cudaStream_t stream);

/// Runs the kernel on irregular shapes by every schedule, then checks the operations of its first block.
/// @throws ladder::exercise::NotYet with one sentence, or the device's report
void judge(int stage, Launch launch);

}  // namespace capstone
