/// @file
/// What a reader sees called by its name when a kernel broke a rule, and the record of the failure.
#include "common/cpu_device/kernel/reports/names.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cuda/barrier_names.hpp"

namespace cpu_device {

bool operator==(const Location& a, const Location& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

std::string print(const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(static_cast<size_t>(length), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

std::string to_string(Location where) {
  const char* name = std::strrchr(where.file, '/');
  return print("%s:%u", name ? name + 1 : where.file, where.line);
}

std::string own_place(Location where) { return own_line(where).place; }

std::string place_and_caller(Location where) {
  const Unobserved unobserved;
  const auto file_of = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  const HelperCall call = call_of_helper(where);
  const std::string place = to_string(where), caller = file_of(call.file);
  if (!call.line || place.rfind(caller + ":", 0) == 0) return place;
  return place + " (called at " + caller + ":" + std::to_string(call.line) + ")";
}

std::string describe(const Block& block) {
  return print("block (%u,%u,%u)", block.ids.index.x, block.ids.index.y, block.ids.index.z);
}

namespace {

/// The line that initialises a barrier: where a helper of the reader's does, the line that calls the helper.
struct Origin {
  std::string file;
  unsigned line = 0;
  std::string function;

  bool operator==(const Origin&) const = default;
  ladder::BarrierOrigin in(const Mbarrier& barrier) const {
    return {file.c_str(), line, barrier.end, barrier.slot, function.c_str()};
  }
};

const Origin& origin_of(const Mbarrier& barrier) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::tuple<std::string, unsigned, const void*, const void*>, Origin>;
  const std::lock_guard<std::mutex> lock(mutex);
  const Location where = barrier.initialised_at;
  const auto [entry, is_new] = known.try_emplace({where.file, where.line, where.call, where.outer_call});
  Origin& origin = entry->second;
  if (!is_new) return origin;
  origin = {where.file, where.line, "mbarrier_init"};
  if (ladder::names_barrier(origin.in(barrier))) return origin;
  const HelperCall helper = call_of_helper(where);
  const Origin called{helper.file, helper.line, helper.function};
  if (helper.line && ladder::names_barrier(called.in(barrier))) origin = called;
  return origin;
}

std::string place_of(const Origin& origin) {
  return to_string(Location{origin.file.c_str(), origin.line, nullptr, nullptr});
}

}  // namespace

std::string name_of(const Mbarrier& barrier) {
  const Unobserved unobserved;
  if (barrier.name && std::strcmp(barrier.name, "cuda::barrier") != 0)
    return barrier.name_index < 0 ? barrier.name : print("%s[%d]", barrier.name, barrier.name_index);
  if (const std::string declared = barrier.initialised_by->cluster.layout().name_of_barrier(barrier.offset);
      !declared.empty())
    return declared;
  if (barrier.name) return barrier.name;
  const Origin& origin = origin_of(barrier);
  std::set<uint32_t> before, others;  // that the block initialised at the same place, by their offsets
  for (const auto& other : barrier.block->mbarriers) {
    if (other->offset == barrier.offset || other->slot != barrier.slot || other->name ||
        std::strcmp(other->end, barrier.end) != 0 || !(origin_of(*other) == origin))
      continue;
    others.insert(other->offset);
    if (other->offset < barrier.offset) before.insert(other->offset);
  }
  return ladder::barrier_name(origin.in(barrier), static_cast<unsigned>(before.size()), !others.empty());
}

bool may_hold(const Block& block, const std::string& operand, size_t offset) {
  const std::string path = operand.substr(operand.find_first_of(".>") + 1);
  bool is_barrier = false;
  for (const auto& barrier : block.mbarriers) {
    const std::string name = name_of(*barrier);
    const bool is_named =
        name.compare(0, path.size(), path) == 0 &&
        (name.size() == path.size() || name[path.size()] == '.' || name[path.size()] == '[');
    if (is_named && barrier->offset <= offset && offset < barrier->offset + sizeof(uint64_t)) return true;
    is_barrier |= is_named;
  }
  return !is_barrier;
}

std::vector<MbarrierRecord> records_of_mbarriers(const Block& block) {
  std::vector<MbarrierRecord> records;
  for (const auto& barrier : block.mbarriers) {
    const auto& seen = barrier->phases_seen;
    const auto witnesses = std::count_if(seen.begin(), seen.end(), [](uint64_t phase) { return phase > 0; });
    records.push_back({name_of(*barrier), place_of(origin_of(*barrier)), barrier->expected, barrier->fenced,
                       barrier->phase, static_cast<unsigned>(witnesses)});
  }
  return records;
}

std::string describe(const Thread& thread) {
  return describe(*thread.block) + print(" warp %u lane %u", thread.warp->index, thread.lane);
}

std::string place_of_initialisation(const Mbarrier& barrier) { return place_of(origin_of(barrier)); }

std::string describe(const Mbarrier& barrier) {
  const bool has_neighbours = barrier.block->ids.cluster_dim.count() > 1;
  return name_of(barrier) + (has_neighbours ? " of " + describe(*barrier.block) : "") +
         print(" (initialised at %s, count %u)", place_of(origin_of(barrier)).c_str(), barrier.expected);
}

std::string names_of_blocks(Cluster& cluster, uint32_t mask) {
  std::string names;
  for (const auto& block : cluster.blocks())
    if (mask >> block->ids.rank_in_cluster & 1) names += (names.empty() ? "" : " and ") + describe(*block);
  return names;
}

std::string binary(uint32_t mask, const Block& block) {
  std::string digits;
  for (uint64_t blocks = block.ids.cluster_dim.count(); blocks || mask; mask >>= 1, blocks -= blocks > 0)
    digits.insert(digits.begin(), mask & 1 ? '1' : '0');
  return "0b" + digits;
}

std::string names_of_lanes(const Block& block, const std::function<bool(const Thread&)>& is_meant) {
  const auto lanes_of = [&](const Warp& warp) {
    uint32_t lanes = 0;
    for (const Thread* thread : warp.lanes)
      if (thread && is_meant(*thread)) lanes |= 1u << thread->lane;
    return lanes;
  };
  std::string text;
  for (size_t first = 0, next; first < block.warps.size(); first = next) {
    const uint32_t lanes = lanes_of(block.warps[first]);
    const bool is_whole = lanes == block.warps[first].present;
    for (next = first + 1; next < block.warps.size() && lanes_of(block.warps[next]) == lanes &&
                           (lanes == block.warps[next].present) == is_whole;)
      ++next;
    if (!lanes) continue;
    text += text.empty() ? "" : ", ";
    text += next == first + 1 ? print("warp %zu", first) : print("warps %zu-%zu", first, next - 1);
    if (is_whole) continue;
    text += (lanes & (lanes - 1) ? " lanes " : " lane ") + ranges_of_lanes(lanes);
  }
  return text;
}

std::string names_of(const std::vector<const Thread*>& threads) {
  std::map<unsigned, std::map<unsigned, std::vector<const Thread*>>> lanes;  // of each block and warp
  for (const Thread* thread : threads) {
    auto& of_warp = lanes[thread->block->ids.rank_in_cluster][thread->warp->index];
    if (std::find(of_warp.begin(), of_warp.end(), thread) == of_warp.end()) of_warp.push_back(thread);
  }
  std::string text;
  for (const auto& [rank, warps] : lanes) {
    const Block& block = *warps.begin()->second.front()->block;
    const std::string of_block = block.ids.cluster_dim.count() > 1 ? describe(block) + " " : "";
    for (auto warp = warps.begin(); warp != warps.end();) {
      const unsigned first = warp->first;
      unsigned last = first;
      const bool is_lane = warp->second.size() == 1;
      const unsigned lane = warp->second.front()->lane;
      const auto is_alike = [&](const std::vector<const Thread*>& of_warp) {
        return is_lane ? of_warp.size() == 1 && of_warp.front()->lane == lane : of_warp.size() > 1;
      };
      for (++warp; warp != warps.end() && is_alike(warp->second) && warp->first == last + 1; ++warp) ++last;
      text += (text.empty() ? "" : ", ") + of_block +
              (first == last ? print("warp %u", first) : print("warps %u-%u", first, last)) +
              (is_lane ? print(" lane %u", lane) : "");
    }
  }
  return text;
}

std::string ranges_of_lanes(uint32_t lanes) {
  std::string text;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    unsigned last = lane;
    while (last + 1 < kWarpLanes && lanes >> (last + 1) & 1) ++last;
    text += (text.empty() ? "" : ", ") + print("%u", lane) + (last > lane ? print("-%u", last) : "");
    lane = last;
  }
  return text;
}

std::string names_of_warps(uint32_t warps) {
  return (warps & (warps - 1) ? "warps " : "warp ") + ranges_of_lanes(warps);
}

bool are_several(const std::string& names) {
  return names.find("warps") != names.npos || names.find("lanes") != names.npos ||
         names.find(", ") != names.npos;
}

std::string without_row(std::string name) {
  for (int index = 0; index < 2; ++index) name.erase(std::min(name.size(), name.rfind('[')));
  return name;
}

std::pair<size_t, size_t> array_around(SharedLayout& layout, size_t bytes, size_t offset) {
  constexpr size_t kStep = 16;
  const std::string array = without_row(layout.name_of(offset));
  size_t begin = offset / kStep * kStep, end = begin;
  if (array.empty()) return {begin, end};
  const auto is_in_array = [&](size_t at) { return without_row(layout.name_of(at)) == array; };
  while (begin >= kStep && is_in_array(begin - kStep)) begin -= kStep;
  while (end < bytes && is_in_array(end)) end += kStep;
  return {begin, end};
}

Site Cluster::site(Location where) { return race_checker_->site(where); }

void Cluster::record_failure(const Thread* thread, const std::string& rule, Location where) {
  if (failed()) return;
  failure_ = print("kernel '%s': ", kernel_.name) + rule;
  if (thread) {
    failure_ += "\n  in " + describe(*thread);
    if (where.line) failure_ += " at " + to_string(where);
    failure_ += describe_callers(where);
  }
  failure_ += "\n  schedule " + options_.schedule.explained();
}

void Cluster::record_race(const Thread* thread, const std::string& race) {
  const bool names_others = thread && race.find(" by block (") != race.npos;
  record_failure(names_others && race.find(describe(*thread)) == race.npos ? nullptr : thread, race, {});
}

void Cluster::fail(const Thread& thread, const std::string& rule, Location where) {
  record_failure(&thread, rule, where);
  throw Abandoned{};
}

void Cluster::leave_if_failed() {
  if (failed() && current_thread && !unwinds()) throw Abandoned{};
}

}  // namespace cpu_device
