/// @file
/// Times of a pipeline's roles, read from a recorded timeline (`NN_name --trace`).
#pragma once
#include <optional>
#include <string>

namespace ladder::model {

/// What a timeline says about the roles of its first block. Times in nanoseconds; a step is one tile along K.
/// Recording slows a kernel down, so times are a little long.
struct Calibration {
  std::string lesson, settings, shape, device, date, commit;
  std::optional<double> clock_mhz;  ///< nothing in files from before it was written down
  int slots = 0;                    ///< between loader and compute
  int tiles = 0;                    ///< of C
  int steps_per_tile = 0;
  /// From the release of the slot until the next tile has landed in it: the hand-over to the loader, and the
  /// copy. Known only with one slot: with more, copies land while nobody waits for them.
  std::optional<double> load;
  double compute =
      0;  ///< of a step: with one slot from landed to released, else from one step's tile to the next one's
  double store = 0;     ///< of a tile of C, by one storer
  double epilogue = 0;  ///< of a tile of C: what compute does between its last step and the next tile's first
  double recorded = 0;  ///< from the loader's first copy until compute's last step
};

/// Every time is a median, so that cold caches at the start do not count.
/// @param argument what the reader called the path, for messages
/// @throws std::invalid_argument naming `argument`, the path, and what is wrong: it cannot be read, is no
/// timeline of the GPU, or has no loader and no compute role (lessons 04 to 06 have)
Calibration calibrate(const std::string& argument, const std::string& path);

}  // namespace ladder::model
