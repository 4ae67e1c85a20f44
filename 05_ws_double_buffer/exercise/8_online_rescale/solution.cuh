/// @file
/// Exercise 05.8: the online rescale of attention.
///
/// A warp has one query. Each lane adds up some of the keys, one at a time, and then the lanes add up what
/// they have. Both are one operation: two parts of a row become one. Scores may be so large that their
/// exponentials overflow, and a lane may have no key at all.
#pragma once
#include <cmath>

#include "common/cuda/launch.cuh"
#include "common/ptx/thread_ids.cuh"

namespace exercise {

constexpr int kDim = 4;  ///< of a row of V

/// Of some keys: the largest score, the sum of exp(score - largest), and the sum of that times the rows of V.
struct Part {
  float largest = -INFINITY, sum = 0;  ///< as they are of no key
  float o[kDim] = {};
};

/// `part` takes in what `other` has of other keys.
// Read 05_ws_double_buffer/deeper/attention.md and common/ptx/thread_ids.cuh.
// >>> yours
__device__ inline void merge(Part& part, const Part& other) {
  if (other.largest == -INFINITY) return;  // else infinity minus infinity, where neither has a key
  const float largest = fmaxf(part.largest, other.largest);
  const float mine = expf(part.largest - largest), theirs = expf(other.largest - largest);
  part.sum = part.sum * mine + other.sum * theirs;
  for (int i = 0; i < kDim; ++i) part.o[i] = part.o[i] * mine + other.o[i] * theirs;
  part.largest = largest;
}
// <<<

/// Key i belongs to lane i % lanes; lanes is 1 or a warp. Stores the part of all keys.
__global__ void attend(const float* scores, const float* v, int keys, int lanes, Part* all) {
  const int lane = ladder::lane_index();
  Part part;
  for (int key = lane; lane < lanes && key < keys; key += lanes) {
    Part one{scores[key], 1};
    for (int i = 0; i < kDim; ++i) one.o[i] = v[key * kDim + i];
    merge(part, one);
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    Part other;
    other.largest = __shfl_xor_sync(~0u, part.largest, distance);
    other.sum = __shfl_xor_sync(~0u, part.sum, distance);
    for (int i = 0; i < kDim; ++i) other.o[i] = __shfl_xor_sync(~0u, part.o[i], distance);
    merge(part, other);
  }
  if (lane == 0) *all = part;
}

inline void launch_attend(const float* scores, const float* v, int keys, int lanes, Part* all) {
  ladder::launch(attend, {.name = "exercise_05_8", .grid = dim3(1), .block = dim3(ladder::kWarp)}, scores, v,
                 keys, lanes, all);
}

}  // namespace exercise
