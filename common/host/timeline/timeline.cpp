/// @file
/// From spans of warps to lanes of roles, and from those to a file and a table.
#include "common/host/timeline/timeline.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "common/cuda/warps.hpp"
#include "common/host/base/json.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/timeline/trace_events.hpp"

namespace ladder {
namespace {

using Spans = std::vector<TimelineSpan>;

bool holds(const Spans& spans, SpanKind kind) {
  return std::any_of(spans.begin(), spans.end(), [&](const TimelineSpan& span) { return span.kind == kind; });
}

/// In order, and cut where they overlap: an earlier span keeps its time.
Spans in_turn(Spans spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TimelineSpan& a, const TimelineSpan& b) { return a.begin < b.begin; });
  Spans result;
  for (TimelineSpan& span : spans) {
    if (!result.empty()) span.begin = std::max(span.begin, result.back().end);
    if (span.end > span.begin) result.push_back(std::move(span));
  }
  return result;
}

/// In order; spans that touch or overlap become one.
Spans merged(Spans spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TimelineSpan& a, const TimelineSpan& b) { return a.begin < b.begin; });
  Spans result;
  for (TimelineSpan& span : spans) {
    if (!result.empty() && span.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, span.end);
    } else {
      result.push_back(std::move(span));
    }
  }
  return result;
}

double total_length(const Spans& spans) {
  double sum = 0;
  for (const TimelineSpan& span : spans) sum += span.end - span.begin;
  return sum;
}

void append(Spans& to, const Spans& from) { to.insert(to.end(), from.begin(), from.end()); }

/// One warp, or a warpgroup that computes.
struct Group {
  WarpSpans spans;
  std::string role;
};

bool computes(const WarpSpans& warp) {
  return !warp.products.empty() || holds(warp.threads, SpanKind::compute);
}

/// Empty for warps that only pass the barriers of the whole block.
std::string role_of(const WarpSpans& spans) {
  const bool loads = !spans.copies.empty() || holds(spans.threads, SpanKind::load);
  const bool stores = !spans.stores.empty() || holds(spans.threads, SpanKind::store);
  if (computes(spans)) return loads ? "warpgroup" : "compute";
  return loads ? "loader" : stores ? "storer" : "";
}

/// The warps of one block.
std::vector<Group> group_warps(std::vector<WarpSpans> warps) {
  std::set<unsigned> computing;  // warpgroups
  for (const WarpSpans& warp : warps)
    if (computes(warp)) computing.insert(warp.warp / kWarpsPerWarpgroup);

  std::vector<Group> groups;
  for (WarpSpans& warp : warps) {
    const unsigned warpgroup = warp.warp / kWarpsPerWarpgroup;
    const bool joins = computing.count(warpgroup) > 0 && !groups.empty() &&
                       groups.back().spans.warp / kWarpsPerWarpgroup == warpgroup;
    if (!joins) {
      groups.push_back({std::move(warp), ""});
      continue;
    }
    WarpSpans& group = groups.back().spans;
    append(group.copies, warp.copies);
    append(group.products, warp.products);
    append(group.stores, warp.stores);
  }

  for (Group& group : groups) group.role = role_of(group.spans);
  groups.erase(
      std::remove_if(groups.begin(), groups.end(), [](const Group& group) { return group.role.empty(); }),
      groups.end());
  std::map<std::string, int> count, number;
  for (const Group& group : groups) ++count[group.role];
  for (Group& group : groups)
    if (count[group.role] > 1) {
      const std::string role = group.role;
      group.role += " " + std::to_string(number[role]++);
    }
  return groups;
}

}  // namespace

std::vector<TimelineLane> lanes_of_roles(std::vector<WarpSpans> warps) {
  std::map<unsigned, std::vector<WarpSpans>> blocks;
  std::sort(warps.begin(), warps.end(), [](const WarpSpans& a, const WarpSpans& b) {
    return std::pair(a.block, a.warp) < std::pair(b.block, b.warp);
  });
  for (WarpSpans& warp : warps) blocks[warp.block].push_back(std::move(warp));

  std::vector<TimelineLane> lanes;
  for (auto& [block, of_block] : blocks)
    for (Group& group : group_warps(std::move(of_block))) {
      lanes.push_back({block, group.role, "", in_turn(std::move(group.spans.threads))});
      const auto add_background = [&, block = block](const char* what, Spans& spans) {
        if (!spans.empty()) lanes.push_back({block, group.role, what, merged(std::move(spans))});
      };
      add_background("copies in flight", group.spans.copies);
      add_background("products in flight", group.spans.products);
      add_background("stores in flight", group.spans.stores);
    }
  return lanes;
}

void keep_blocks(Timeline& timeline, size_t count) {
  std::set<unsigned> blocks;
  for (const TimelineLane& lane : timeline.lanes) blocks.insert(lane.block);
  const std::set<unsigned> kept(blocks.begin(), std::next(blocks.begin(), std::min(count, blocks.size())));
  const auto left_out = [&](unsigned block) { return kept.count(block) == 0; };
  auto& lanes = timeline.lanes;
  lanes.erase(std::remove_if(lanes.begin(), lanes.end(),
                             [&](const TimelineLane& lane) { return left_out(lane.block); }),
              lanes.end());
  for (const unsigned block : blocks)
    if (left_out(block)) timeline.tiles.erase(block);
}

std::vector<RoleSummary> summarise(const Timeline& timeline) {
  struct Extent {
    double begin = 1e300, end = 0;
  };
  std::map<unsigned, Extent> blocks;
  std::vector<std::pair<RoleSummary, Spans>> roles;
  for (const TimelineLane& lane : timeline.lanes) {
    Extent& block = blocks[lane.block];
    for (const TimelineSpan& span : lane.spans) {
      block.begin = std::min(block.begin, span.begin);
      block.end = std::max(block.end, span.end);
    }
    if (roles.empty() || roles.back().first.block != lane.block || roles.back().first.role != lane.role) {
      const auto tiles = timeline.tiles.find(lane.block);
      roles.push_back({{lane.block, lane.role, tiles == timeline.tiles.end() ? 0 : tiles->second}, {}});
    }
    append(roles.back().second, lane.spans);
  }

  std::vector<RoleSummary> summaries;
  for (auto& [summary, spans] : roles) {
    const double length = blocks[summary.block].end - blocks[summary.block].begin;
    const double tiles = std::max(1, summary.tiles);
    for (size_t kind = 0; kind < kSpanKindNames.size(); ++kind) {
      Spans of_kind;
      std::copy_if(spans.begin(), spans.end(), std::back_inserter(of_kind),
                   [&](const TimelineSpan& span) { return span.kind == static_cast<SpanKind>(kind); });
      summary.per_tile[kind] = total_length(merged(std::move(of_kind))) / tiles;
    }
    summary.other_per_tile = (length - total_length(merged(std::move(spans)))) / tiles;
    const double waited = summary.per_tile[static_cast<size_t>(SpanKind::wait)] * tiles;
    summary.waited_percent = length > 0 ? waited / length * 100 : 0;
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

std::string to_trace_events(const Timeline& timeline, const TimelineFacts& facts) {
  std::vector<TraceLane> lanes;
  for (const TimelineLane& lane : timeline.lanes) {
    lanes.push_back({lane.block, "block " + std::to_string(lane.block), lane.name(), {}});
    for (const TimelineSpan& span : lane.spans)
      lanes.back().events.push_back(
          {span.name, kSpanKindNames[static_cast<size_t>(span.kind)], span.begin, span.end});
  }

  Json metadata = Json::object();
  for (const auto& [name, value] : facts) metadata[name] = value;
  metadata["unit"] = timeline.unit;
  metadata["lost_spans"] = timeline.lost;
  metadata["summary"] = Json::array();
  for (const RoleSummary& role : summarise(timeline)) {
    Json per_tile;
    for (size_t kind = 0; kind < kSpanKindNames.size(); ++kind)
      per_tile[kSpanKindNames[kind]] = role.per_tile[kind];
    per_tile["other"] = role.other_per_tile;
    metadata["summary"].push_back({{"block", role.block},
                                   {"role", role.role},
                                   {"tiles", role.tiles},
                                   {"per_tile", per_tile},
                                   {"waited_percent", role.waited_percent}});
  }
  return to_trace_events(lanes, metadata);
}

void print_summary(std::ostream& out, const Timeline& timeline) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<RoleSummary>> roles;
  for (RoleSummary& summary : summarise(timeline)) {
    if (roles[summary.role].empty()) order.push_back(summary.role);
    roles[summary.role].push_back(std::move(summary));
  }
  out << "Times in " << timeline.unit << " for each tile of C, average of " << timeline.tiles.size()
      << (timeline.tiles.size() == 1 ? " block\n" : " blocks\n");
  Table table(out, {{"role", 12, false},
                    {"waited %", 8},
                    {"wait", 9},
                    {"load", 9},
                    {"compute", 9},
                    {"store", 9},
                    {"other", 9}});
  table.header();
  for (const std::string& role : order) {
    const std::vector<RoleSummary>& summaries = roles[role];
    const auto average = [&](const auto& figure, int digits) {
      double sum = 0;
      for (const RoleSummary& summary : summaries) sum += figure(summary);
      return fixed(sum / static_cast<double>(summaries.size()), digits);
    };
    std::vector<std::string> cells = {role, average([](const auto& s) { return s.waited_percent; }, 1)};
    for (size_t kind = 0; kind < kSpanKindNames.size(); ++kind)
      cells.push_back(average([&](const auto& s) { return s.per_tile[kind]; }, 0));
    cells.push_back(average([](const auto& s) { return s.other_per_tile; }, 0));
    table.row(cells);
  }
}

}  // namespace ladder
