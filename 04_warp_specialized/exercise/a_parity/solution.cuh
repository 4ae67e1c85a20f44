/// @file
/// Exercise 04.a: the parity that a role waits for, from the number of the step.
///
/// Steps 0, 1, 2, ... go through a ring: step s is in slot s % slots. In each step the producer waits until
/// the slot is empty, then fills it; the consumer waits until it is full, then releases it.
#pragma once

namespace exercise {

/// With which the consumer waits for `full` of the step's slot, and the producer for its `empty`.
// Read docs/concepts/mbarriers_and_phases.md and common/ptx/mbarrier.cuh.
// >>> yours
constexpr int consumer_parity(int step, int slots) { return step / slots % 2; }
constexpr int producer_parity(int step, int slots) { return step / slots % 2 ^ 1; }
// <<<

}  // namespace exercise
