/// @file
/// The knob `epilogue`: what is applied to a sum before it is rounded. The functors are in
/// common/device/epilogue_functors.cuh.
#pragma once
#include "common/host/problem/lesson.hpp"

namespace ladder {

/// none, bias_relu, bias_gelu.
Knob epilogue_knob();

/// What the verifier expects of the epilogue that the settings choose.
ReferenceEpilogue reference_epilogue(const Settings& settings);

/// @throws std::invalid_argument if the settings choose an epilogue with a bias and the problem has none
void require_bias(const Gemm& p, const Settings& settings);
/// @param epilogue has a bias
/// @throws std::invalid_argument if the problem has none, or one that begins at no pair of columns
void require_bias(const Gemm& p, const std::string& epilogue);

}  // namespace ladder
