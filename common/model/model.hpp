/// @file
/// The cost model of a pipeline: when each tile is loaded, computed and stored, if tiles pass through a ring
/// of slots.
#pragma once
#include <optional>
#include <vector>

namespace ladder::model {

/// When compute gives a slot back to the loader.
enum class Release {
  after_compute,    ///< as soon as its tile is computed
  after_next_wait,  ///< when its tile is computed and the next one has landed; needs two slots or more
};

/// The times of one tile in each role, in any one unit, and the rings between the roles. Two roles are three
/// with a store that takes no time.
struct Pipeline {
  double load = 0;        ///< from the start of a copy until its tile has landed
  double compute = 0;     ///< from the start on a tile until its slot has been read
  double store = 0;       ///< from the hand-over to the storer until the staging slot may be filled again
  int slots = 1;          ///< between load and compute
  int staging_slots = 1;  ///< between compute and store
  /// A copy may start this long after the one before it. Empty: when that one has landed.
  std::optional<double> load_interval = std::nullopt;
  Release release = Release::after_compute;
};

struct Span {
  double begin = 0, end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

/// What happens to one tile.
struct TileTimes {
  Span load, compute, store;
};

/// The recurrence: every event happens as soon as all that it waits for has happened (max), and takes its
/// time (plus). The first copy starts at 0.
/// @returns one entry a tile, in order
/// @throws std::invalid_argument naming the member of Pipeline that has no sense, or `tiles` if negative
std::vector<TileTimes> schedule(const Pipeline& pipeline, int tiles);

/// The same roles with rings of `slots` slots on both sides. With one slot, a late release becomes an early
/// one.
Pipeline with_slots(Pipeline pipeline, int slots);

/// Two roles whose copies are asynchronous: one may start wherever a slot is free.
Pipeline ring_of(int slots, double load, double compute, Release release);

/// When the last tile is stored; 0 without tiles. @throws as schedule does
double total_time(const Pipeline& pipeline, int tiles);

/// total_time() without a loop over tiles: what one tile takes alone, and what each further one adds.
/// @returns nothing where no closed form is known: three roles whose copies overlap or whose slots are
/// released late
/// @throws as schedule does
std::optional<double> closed_form(const Pipeline& pipeline, int tiles);

/// What each further tile adds in a long run. @returns and @throws as closed_form does
std::optional<double> time_per_tile(const Pipeline& pipeline);

}  // namespace ladder::model
