/// @file
/// Notes an exercise's kernel launches and their streams. A check includes this before the exercise.
#pragma once
#include <cuda_runtime.h>

#include <functional>
#include <utility>

#include "common/cuda/launch.cuh"

namespace ladder {

/// The function that is called after each launch of the exercise, if it is set.
inline std::function<void(const void* kernel, cudaStream_t stream)>& after_launch() {
  static std::function<void(const void*, cudaStream_t)> function;
  return function;
}

template <class... Params, class... Args>
void watched_launch(void (*kernel)(Params...), const LaunchConfig& config, Args&&... args) {
  launch(kernel, config, std::forward<Args>(args)...);
  if (after_launch()) after_launch()(reinterpret_cast<const void*>(kernel), config.stream);
}

}  // namespace ladder

#define launch(...) watched_launch(__VA_ARGS__)
