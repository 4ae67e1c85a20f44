/// @file
/// What lessons refuse, in the words that all of them use.
#pragma once
#include <string>

#include "common/host/device/device.hpp"
#include "common/host/problem/lesson.hpp"

namespace ladder {

/// @throws std::invalid_argument unless `value` is a multiple of `factor`; `why` ends the sentence.
void require_multiple(const std::string& name, int value, int factor, const std::string& why);

/// @throws std::invalid_argument if the rows of blocks, each `rows` high, are more than a two-dimensional
/// grid has: `name` is `value`.
void require_grid_rows(const std::string& name, int value, int rows);

/// What chunks of 16 bytes need: matrices that start at multiples of 16 bytes.
/// @throws std::invalid_argument
void require_aligned_matrices(const Gemm& p);

/// The core that the setting `core` stands for on this device: wgmma, mma_sync or fma.
/// @throws std::invalid_argument for a core that was not compiled, or that the GPU does not have.
std::string usable_core(const Settings& settings);

/// What kernels with TMA and wgmma need of the device: both.
/// @throws std::invalid_argument
void require_tma(const Settings& settings);
/// And of the matrices: rows that TMA can copy.
/// @throws std::invalid_argument
void require_tma_rows(const Gemm& p);
/// Of both.
/// @throws std::invalid_argument
void require_tma(const Gemm& p, const Settings& settings);

/// What brings tiles to shared memory in lessons 04 and 05: "tma" where there is TMA, else "cp_async". This
/// is where `auto` becomes one of them.
/// @throws std::invalid_argument for a core or a loader that the GPU does not have, and for a loader that
/// does not go with the core.
std::string usable_loader(const Settings& settings);

/// What copies of 16 bytes need: n and k that are multiples of 8, and aligned matrices.
/// @throws std::invalid_argument
void require_chunks(const Gemm& p);

/// What blocks need that split K: each a step of `step_k` values of it.
/// @throws std::invalid_argument
void require_k_steps(const Gemm& p, int step_k, int blocks);

/// @param argument what asks for it, for example "--slots 4"
/// @param bytes of shared memory that a block needs
/// @throws std::invalid_argument if the GPU does not give a block so many.
void require_shared_memory(const std::string& argument, size_t bytes,
                           size_t most = device_info().block_shared_bytes);

/// The core of lessons 04 and 05.
inline Knob roles_core_knob() {
  return {
      "core", "what multiplies a tile; auto is the best that the device has", {"auto", "wgmma", "mma_sync"}};
}

/// What copies in lessons 04 and 05.
inline Knob loader_knob() {
  return {"loader",
          "what brings tiles to shared memory; auto is tma where there is TMA, else cp_async",
          {"auto", "tma", "cp_async"}};
}

/// The only core of lesson 06 and of variants, so that results name it.
inline Knob wgmma_knob() { return {"core", "what multiplies a tile", {"auto", "wgmma"}}; }

/// The knob of persistent lessons.
inline Knob group_knob() { return {"group", "tile rows that blocks visit together", {"16", "1", "4", "8"}}; }

/// The knob of lessons 02 and 03.
inline Knob core_knob() {
  return {"core",
          "what multiplies a tile; auto is the best that the device has",
          {"auto", "wgmma", "mma_sync", "fma"}};
}

}  // namespace ladder
