/// @file
/// What `ladder parts` measures, and what a measurement is.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/host/base/statistics.hpp"

namespace ladder {

/// One row: what was measured under these settings, in clocks of a multiprocessor.
struct PartRow {
  using Settings = std::vector<std::pair<std::string, std::string>>;

  std::string part;
  Settings settings;        ///< values are words that read well in a row: {"size", "32 KB"}
  Quartiles clocks;         ///< over all multiprocessors and repetitions
  double bytes = 0;         ///< that a multiprocessor moves in these clocks; 0 where nothing is moved
  double ideal_clocks = 0;  ///< that the hardware needs at its peak; 0 where no peak is known
  double mhz = 0;           ///< of the multiprocessors meanwhile, of loads and of products
};

/// Some parts that one function measures.
struct PartGroup {
  std::string name, what;
  std::function<void(const std::function<void(PartRow)>& add)> measure;
};

/// All groups, in the order of the letters of docs/parts.md. Empty on the CPU device.
std::vector<PartGroup> all_parts();

}  // namespace ladder
