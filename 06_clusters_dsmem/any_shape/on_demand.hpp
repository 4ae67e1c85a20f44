/// @file
/// Kernels that are compiled when a shape needs them, and kept on disk.
#pragma once
#include <optional>
#include <string>

#include "06_clusters_dsmem/any_shape/plan.hpp"
#include "common/cuda/launch_config.hpp"

namespace lesson06::any_shape {

/// Whether kernels are compiled on demand here. If not, standard error says why, once.
bool compiles_on_demand();

/// The kernel of a plan, as cudaLaunchKernelExC takes it. The first call of a process reads it from the
/// user's cache, or compiles it, which takes about a second, and says so.
/// @param epilogue its type, such as "ladder::Identity"
/// @throws std::runtime_error with the compiler's words, in one line
const void* kernel_on_demand(const Plan& plan, const std::string& epilogue);

/// Launches what kernel_on_demand() returned. @throws ladder::CudaError if the launch is refused
void launch_on_demand(const void* kernel, const ladder::LaunchConfig& config, const void* const* arguments);

/// What a kernel on demand gets, whatever its plan needs: a block fills a multiprocessor anyway.
constexpr size_t kSharedBytes = 227 << 10;
/// As Shape::kThreads.
constexpr int threads_of(const Plan& plan) {
  const int rows = plan.walked().tile_m;
  return 2 * rows + (rows == 256 ? 64 : 128);
}

/// $XDG_CACHE_HOME/kernel-ladder/kernels, or in ~/.cache. @throws std::runtime_error if there is no such
/// place
std::string kernel_cache();

/// What lies in the cache under `path`, if that is what was put there for `key`. Anything else is left alone,
/// and a line on standard error says why: a folder or a file that others may write, a damaged file.
std::optional<std::string> read_cached(const std::string& path, const std::string& key);

/// Puts `bytes` there, for this user alone, whole or not at all. @returns what is wrong; empty if nothing
std::string write_cached(const std::string& path, const std::string& key, const std::string& bytes);

}  // namespace lesson06::any_shape
