/// @file
/// A timeline: what the roles of a few blocks did, and when. It becomes a file for Perfetto or
/// chrome://tracing, and a table.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace ladder {

enum class SpanKind { wait, load, compute, store };
constexpr std::array<const char*, 4> kSpanKindNames = {"wait", "load", "compute", "store"};

struct TimelineSpan {
  SpanKind kind = SpanKind::wait;
  std::string name;  ///< "wait full[1]", "load", ...
  double begin = 0, end = 0;
};

/// The spans of a lane are in order and do not overlap. A role has one lane for what its threads do, and may
/// have others for what runs in the background for them ("loader: copies in flight").
struct TimelineLane {
  unsigned block = 0;
  std::string role;        ///< "loader", "compute 0", "storer", "warpgroup 1"
  std::string background;  ///< empty: the threads themselves
  std::vector<TimelineSpan> spans;

  std::string name() const { return background.empty() ? role : role + ": " + background; }
};

struct Timeline {
  std::string unit;  ///< of all times: "ns", or "cycles" of the CPU device's virtual clock
  std::vector<TimelineLane> lanes;
  std::map<unsigned, int> tiles;  ///< of C, that each block began
  uint64_t lost = 0;              ///< spans for which there was no room; what lies after the first is cut off
};

/// Times of a role in one block, for each tile of C. Where a role has background lanes, times may overlap.
struct RoleSummary {
  unsigned block = 0;
  std::string role;
  int tiles = 0;
  std::array<double, 4> per_tile{};  ///< by SpanKind
  double other_per_tile = 0;         ///< covered by no span: all that is not recorded
  double waited_percent = 0;         ///< of the block's time
};

/// Spans of one warp, unordered and overlapping as they may be.
struct WarpSpans {
  unsigned block = 0, warp = 0;
  std::vector<TimelineSpan> threads, copies, products, stores;  ///< the last three run in the background
};

/// Turns spans of warps into lanes of roles. A warpgroup that computes is one role, for which its first warp
/// speaks; of the others every warp is one. Roles are named after what they do;
/// a warp that does nothing has no lane.
std::vector<TimelineLane> lanes_of_roles(std::vector<WarpSpans> warps);

/// Leaves out all but the first `count` of the blocks.
void keep_blocks(Timeline& timeline, size_t count);

/// In the order of the lanes.
std::vector<RoleSummary> summarise(const Timeline& timeline);

/// What a timeline file says about the launch besides its spans; goes into "metadata" as it is.
using TimelineFacts = std::vector<std::pair<std::string, std::string>>;

/// The file, see common/host/timeline/trace_events.hpp: a process for each block, a thread for each lane. A
/// cycle is written as a nanosecond.
std::string to_trace_events(const Timeline& timeline, const TimelineFacts& facts);

/// One row for each role: the average over the blocks.
void print_summary(std::ostream& out, const Timeline& timeline);

}  // namespace ladder
