/// @file
/// Exercise 04.c: with which counts pipelines are initialised.
///
/// One thread loads a slot by TMA: it expects the bytes of all boxes once, then starts the boxes. Compute,
/// some warpgroups of 128 threads, releases the slot after its products. Then each compute thread stages its
/// sums and commits, and one thread stores what is staged.
#pragma once

namespace exercise {

/// What an mbarrier of each kind is initialised with.
struct Counts {
  int full, empty;
};

/// Who arrives when a slot is released.
enum class Release { one_thread_of_each_warpgroup, one_lane_of_each_warp, every_thread };

/// Of the pipeline from the loader to compute, and of that from compute to the storer.
// Read docs/concepts/mbarriers_and_phases.md and common/device/pipeline.cuh.
// >>> yours
constexpr Counts loader_to_compute(int warpgroups, int boxes, Release release) {
  (void)boxes;
  switch (release) {
    case Release::one_thread_of_each_warpgroup:
      return {1, warpgroups};
    case Release::one_lane_of_each_warp:
      return {1, 4 * warpgroups};
    default:
      return {1, 128 * warpgroups};
  }
}
constexpr Counts compute_to_storer(int warpgroups) { return {128 * warpgroups, 1}; }
// <<<

}  // namespace exercise
