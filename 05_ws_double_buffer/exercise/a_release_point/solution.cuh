/// @file
/// Exercise 05.a: which slot may be released, and when.
///
/// In each step compute waits for the slot, starts its product, and then waits until at most `in_flight` of
/// the products that were started are unfinished: core.finish<in_flight>(). With 0 that is the lesson's loop.
/// Then it releases one slot: the oldest that it holds, if no product reads it any more.
#pragma once

namespace exercise {

/// released_in: the step whose slot is released in `step`, or -1 if none is. released_after: how many slots
/// are left to be released after the loop of `steps` steps.
// Read 05_ws_double_buffer/README.md and common/device/wgmma_core.cuh.
// >>> yours
constexpr int released_in(int step, int in_flight) { return step < in_flight ? -1 : step - in_flight; }
constexpr int released_after(int steps, int in_flight) { return steps < in_flight ? steps : in_flight; }
// <<<

}  // namespace exercise
