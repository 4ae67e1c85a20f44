/// @file
/// Which tile and which cluster a shape gets.
#pragma once
#include <string>
#include <vector>

#include "common/host/shape.hpp"

namespace lesson06 {

/// The tile of C, the blocks that share B, the blocks that split K.
struct Plan {
  int tile_m, tile_n, cluster_m, cluster_k;

  int blocks() const { return cluster_m * cluster_k; }
  bool operator==(const Plan&) const = default;
};

/// All that are compiled.
const std::vector<Plan>& plans();

}  // namespace lesson06
