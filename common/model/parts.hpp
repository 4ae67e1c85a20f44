/// @file
/// Clocks of a K step from parts that were measured by themselves (`ladder parts`, docs/parts.md).
#pragma once
#include <string>
#include <vector>

#include "common/model/model.hpp"

namespace ladder::model {

/// What a load takes, by how often loads come. L2 and memory keep their own clock, so both are times.
struct Pace {
  double interval_ns;  ///< from one load of an SM to its next
  double landed_ns;    ///< from the request until the load has landed
};
/// One kind of load at some paces, the fastest first. No loads come faster.
using Paces = std::vector<Pace>;

/// What a load takes where one comes every `interval_ns`: on the line between the two nearest paces, and as
/// at the slowest beyond it.
double landed_ns(const Paces& paces, double interval_ns);

/// The parts that a step is made of: loads in ns, all else in clocks of an SM. Blocks of a product share
/// tiles, which come from memory for the first that asks; so they do where the loads were measured.
struct Parts {
  Paces load_128;              ///< TMA, a step of a tile of 128 x 128
  Paces load_256;              ///< and of 128 x 256
  Paces load_steady;           ///< as load_128, where loads are asked for one at a time and at a steady pace
  Paces async;                 ///< two blocks of 256 threads, a step of 128 x 128 by cp.async
  Paces registers;             ///< and through registers, beside 64 sums
  double copy_meets = 0;       ///< that such a copy takes longer for each product that meets it on an SM
  double product_meets = 0;    ///< and that a product takes longer beside such copies
  double async_asked = 0;      ///< by cp.async, until a thread has asked
  double hand_over = 0;        ///< through a pair of mbarriers, there and back
  double sync = 0;             ///< __syncthreads of 256 threads
  double fence_and_sync = 0;   ///< the same behind stores, with the fence between proxies
  double drain = 0;            ///< that a product takes longer because a warpgroup waits for it
  double stage_128 = 0;        ///< conversion and stmatrix, 128 x 128
  double stage_256 = 0;        ///< and 128 x 256
  double store_128 = 0;        ///< TMA stores of 128 x 128, until the staging tile has been read
  double store_256 = 0;        ///< and of 128 x 256
  double store_registers = 0;  ///< 128 x 128 straight from registers
  double exchange = 0;         ///< 64 KB of sums each way by st.async, in a cluster of four
  double launch = 0;           ///< from a launch to the next
};

/// Where the records of `ladder parts` are: of each part by itself, of loads by how often they come, and of
/// copies beside products.
struct PartRecords {
  std::string parts, paces, path;
};

/// Reads records of parts.
/// @param argument what the reader called the paths, for messages
/// @throws std::invalid_argument naming `argument`, the path and the row that is missing or double
Parts read_parts(const std::string& argument, const PartRecords& records);

/// Rows of every kernel's tile of C, and its step along K.
constexpr int kTileM = 128, kTileK = 64;

/// Who brings the tiles of a step.
enum class Mover {
  registers,      ///< all threads, through registers (02)
  cp_async,       ///< all threads, and each waits only for its own (03)
  thread,         ///< one of the threads that multiply asks TMA (04.1)
  thread_behind,  ///< the same through mbarriers, while other warps go on (05's variant without roles)
  role,           ///< a warp that does nothing else (04.2 and later)
};

/// What decides a step: 128 rows, tile_n columns of C, and 64 of K.
struct StepKind {
  Mover mover = Mover::role;
  int tile_n = 128;
  int slots = 1;
  int blocks_per_sm = 1;
  double mhz = 1000;  ///< the clock of the SMs
};

/// Clocks of a step on the tensor cores of an SM, without a pause.
double product_clocks(int tile_n);

/// Load and compute of one block that has the SM for itself, in clocks, where a load takes `load`. What a
/// hand-over takes, and what a product takes longer because it is waited for, is part of the load: only the
/// slot waits for it.
Pipeline pipeline_of(const Parts& parts, const StepKind& kind, double load);

/// What a load of that kernel takes, in clocks, where its steps are clocks_of_step() apart.
double clocks_of_load(const Parts& parts, const StepKind& kind);

/// Clocks from one step of an SM to the next: the pace at which a load takes as long as that pace allows.
///
/// Of one block: time_per_tile() of its pipeline. Of two blocks: neither waits for the other, and chance
/// decides when they meet. One that comes to the tensor cores finds the other there in the share of time for
/// which that one is, and waits for half of its stay.
double clocks_of_step(const Parts& parts, const StepKind& kind);

/// What decides that: "tensor cores", "load", "load + compute" or "copy, then compute".
const char* bound_of_step(const Parts& parts, const StepKind& kind);

/// Clocks that compute spends on a tile of C between its last step and the next tile's first. Two blocks hide
/// each other's.
double clocks_of_epilogue(const Parts& parts, const StepKind& kind);

/// What splitting K between the blocks of a cluster adds to that: the exchange. A block then stores half of
/// the columns.
double clocks_of_exchange(const Parts& parts, const StepKind& kind);

}  // namespace ladder::model
