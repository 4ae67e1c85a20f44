/// @file
/// Tiles of C that no block wrote, and the grid that the launch gave.
#pragma once
#include <compare>
#include <functional>
#include <optional>
#include <string>

#include "common/host/verify/pattern.hpp"

namespace ladder {

/// What is known of a launch.
struct LaunchedGrid {
  unsigned x = 0, y = 0, z = 0;
  std::string place;  ///< "steps/1_shared_tile.cuh:56 in launch_gemm", or nothing
};
struct BlockIndex {
  unsigned x = 0, y = 0, z = 0;
  auto operator<=>(const BlockIndex&) const = default;
};
/// Which block wrote an element of C; nothing if none did.
using WriterOf = std::function<std::optional<BlockIndex>(int row, int column)>;

/// Which tiles lack a block, what the grid has, and what C of this shape needs. Empty unless that explains
/// all wrong elements: none of them was written, and each block wrote one tile.
std::string explain_by_grid(const WrongElements&, const Shape&, const LaunchedGrid&, const WriterOf&);

}  // namespace ladder
