/// @file
/// Exercise 04.1: what a handshake adds up to, before it runs.
///
/// One block moves 11 tiles through a ring of 3 slots.
///   a slot         a tile of A, 64 x 64 bf16, and a tile of B, 64 x 128 bf16
///   a box of TMA   64 x 64
///   shared memory  one struct of 3 tiles of A, 3 of B, and a ladder::Pipeline<3>
///   loader         one thread: for each tile it expects the slot's bytes once, then starts its boxes
///   readers        3 warps: all lanes wait for a slot, the first lane of each warp gives it back
/// The last tile of either matrix lies half below its last row. Loader and readers go through all tiles in
/// turn: tile 0 in slot 0, tile 1 in slot 1, and so on. Write what the run will count.
#pragma once
#include <cstdint>

namespace exercise {

struct Prediction {
  int64_t shared_bytes;      ///< of the struct
  int64_t arrivals_full;     ///< that `full` of a slot expects in each phase
  int64_t arrivals_empty;    ///< that `empty` of a slot expects in each phase
  int64_t bytes_full;        ///< that `full` of a slot waits for in each phase
  int64_t boxes;             ///< copies that the loader starts in the whole run
  int64_t phases_of_slot_2;  ///< that `full` of slot 2 completes in the whole run
  int64_t first_waits;       ///< of the loader, that return though nobody has released the slot yet
  int64_t reader_parity;     ///< with which a reader waits for tile 10
  int64_t loader_parity;     ///< with which the loader waits before it loads tile 7
};

// Read docs/concepts/mbarriers_and_phases.md and common/device/pipeline.cuh.
// >>> yours
constexpr Prediction kPrediction = {
    .shared_bytes = 74752,  // 3 * (8192 + 16384) + 6 * 8, and up to the next multiple of 1024
    .arrivals_full = 1,
    .arrivals_empty = 3,
    .bytes_full = 24576,
    .boxes = 33,
    .phases_of_slot_2 = 3,
    .first_waits = 3,
    .reader_parity = 1,
    .loader_parity = 1,
};
// <<<

}  // namespace exercise
