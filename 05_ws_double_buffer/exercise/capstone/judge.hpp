/// @file
/// What the checks of the capstone's stages ask of the learner's kernel.
#pragma once
#include "common/host/problem/gemm.hpp"

namespace capstone {

using Launch = void (*)(const ladder::Gemm& p, cudaStream_t stream);

/// Runs the kernel on odd shapes by every schedule, then looks at what its first block did.
/// @throws ladder::exercise::NotYet with one sentence, or the device's report
void judge(int stage, Launch launch);

}  // namespace capstone
