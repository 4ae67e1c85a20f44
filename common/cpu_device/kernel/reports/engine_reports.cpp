/// @file
/// What a reader sees when a kernel broke a rule.
#include "common/cpu_device/kernel/reports/engine_reports.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
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

void Cluster::fail(const Thread& thread, const std::string& rule, Location where) {
  record_failure(&thread, rule, where);
  throw Abandoned{};
}

void Cluster::leave_if_failed() {
  if (failed() && current_thread && !unwinds()) throw Abandoned{};
}

namespace {

/// "0b0011": a bit for each block of the cluster.
std::string binary(uint32_t mask, const Block& block) {
  std::string digits;
  for (uint64_t blocks = block.ids.cluster_dim.count(); blocks || mask; mask >>= 1, blocks -= blocks > 0)
    digits.insert(digits.begin(), mask & 1 ? '1' : '0');
  return "0b" + digits;
}

}  // namespace

std::string list(const std::vector<Mbarrier::Arrival>& arrivals, const Block* own, bool says_bytes) {
  /// Who did something at a place so often.
  struct Entry {
    std::string did;
    unsigned times;
    std::vector<std::pair<const Block*, std::vector<unsigned>>> warps;
  };
  std::vector<Entry> entries;
  const auto same_did = [](const Entry& one, const Entry& other) {
    return one.did == other.did && one.times == other.times;
  };
  std::vector<Entry> single;  // of one warp each
  for (const Mbarrier::Arrival& arrival : arrivals) {
    const Thread& thread = *arrival.thread;
    const std::string mask = arrival.multicast_mask
                                 ? " with mask " + binary(arrival.multicast_mask, *thread.block)
                                 : std::string();
    const std::string bytes = says_bytes && arrival.bytes ? print("%u ", arrival.bytes) : "";
    const std::string rows =
        says_bytes && arrival.box_rows ? print(" of a box of %u rows", arrival.box_rows) : "";
    const std::string did = print(" (%s%s%s%s at %s)", bytes.c_str(), arrival.what, rows.c_str(),
                                  mask.c_str(), own_place(arrival.where).c_str());
    const auto same = std::find_if(single.begin(), single.end(), [&](const Entry& entry) {
      return entry.did == did && entry.warps.front().first == thread.block &&
             entry.warps.front().second.front() == thread.warp->index;
    });
    if (same == single.end()) {
      single.push_back({did, 1, {{thread.block, {thread.warp->index}}}});
    } else {
      ++same->times;
    }
  }
  for (const Entry& one : single) {
    const auto& [block, warps] = one.warps.front();
    if (entries.empty() || !same_did(entries.back(), one)) {
      entries.push_back(one);
    } else if (entries.back().warps.back().first == block) {
      entries.back().warps.back().second.push_back(warps.front());
    } else {
      entries.back().warps.push_back(one.warps.front());
    }
  }
  std::string text;
  for (const Entry& entry : entries) {
    text += text.empty() ? "" : ",";
    for (const auto& [block, warps] : entry.warps) {
      if (&entry.warps.front().first != &block) text += ",";
      if (block->ids.cluster_dim.count() > 1 && block != own) text += " " + describe(*block);
      text += warps.size() == 1 ? " warp" : " warps";
      for (size_t i = 0; i < warps.size(); ++i) {
        size_t last = i;
        while (last + 1 < warps.size() && warps[last + 1] == warps[last] + 1) ++last;
        text += print("%s %u", i ? "," : "", warps[i]);
        if (last > i) text += print("-%u", warps[last]);
        i = last;
      }
    }
    const bool several = entry.warps.size() > 1 || entry.warps.front().second.size() > 1;
    text += entry.did + (entry.times > 1 ? print(" x%u", entry.times) + (several ? " each" : "") : "");
  }
  return text;
}

std::vector<Mbarrier::Arrival> with_bytes(const std::vector<Mbarrier::Arrival>& arrivals, bool bytes) {
  std::vector<Mbarrier::Arrival> chosen;
  std::copy_if(arrivals.begin(), arrivals.end(), std::back_inserter(chosen),
               [&](const Mbarrier::Arrival& arrival) { return (arrival.bytes > 0) == bytes; });
  return chosen;
}

namespace {

bool has_sent(const std::vector<Mbarrier::Arrival>& arrivals, const Thread* thread, Location where) {
  return std::any_of(arrivals.begin(), arrivals.end(), [&](const Mbarrier::Arrival& arrival) {
    return arrival.bytes && arrival.thread == thread && arrival.where == where;
  });
}

}  // namespace

std::string explain_count(const Mbarrier& barrier, const std::vector<Mbarrier::Arrival>& before,
                          const std::vector<Mbarrier::Arrival>& after) {
  std::set<const Thread*> first, second;
  for (const Mbarrier::Arrival& arrival : with_bytes(before, false)) first.insert(arrival.thread);
  for (const Mbarrier::Arrival& arrival : with_bytes(after, false)) second.insert(arrival.thread);
  const bool is_disjoint = std::none_of(second.begin(), second.end(),
                                        [&](const Thread* thread) { return first.count(thread) > 0; });
  if (first.size() != barrier.expected || second.size() != barrier.expected || !is_disjoint) return "";
  if (!explain_wrong_wait(*barrier.block, nullptr).empty()) return "";  // which is why they came early
  return print("; different threads ended the last two: more arrive than the count of %u at %s says",
               barrier.expected, place_of(origin_of(barrier)).c_str());
}

namespace {

/// The sender waited until the slot was empty, and some of the blocks to which it sends have not said so.
std::string explain_missing_releases(Cluster& cluster, const CountedCopy& copy) {
  const uint32_t mask = copy.multicast_mask();
  const Thread& sender = *copy.issuer;
  const Mbarrier* const empty = sender.last_seen.barrier;
  if (!mask || !empty || !sender.last_seen.phase || !other_end(*empty) || empty->is_full) return "";
  if (empty->phase < sender.last_seen.phase || empty->phase > sender.last_seen.phase + 1) return "";
  const auto& arrivals =
      empty->phase == sender.last_seen.phase ? empty->last_arrivals : empty->earlier_arrivals;
  std::string silent;
  for (const auto& block : cluster.blocks()) {
    const bool came = std::any_of(arrivals.begin(), arrivals.end(),
                                  [&](const auto& arrival) { return arrival.thread->block == block.get(); });
    if (!came && mask >> block->ids.rank_in_cluster & 1)
      silent += (silent.empty() ? "" : " and ") + describe(*block);
  }
  if (silent.empty()) return "";
  return ": the phase in which it was issued has ended before its bytes came: " + describe(sender) +
         " waited for " + describe(*empty) +
         print(", whose phase %llu ended with no arrival from ",
               static_cast<unsigned long long>(sender.last_seen.phase - 1)) +
         silent + ", to which it sends\n  it ended with those of" + list(arrivals) +
         ": does each block release the slot to every block that fills it, and does the count include them?";
}

struct Multicast {
  const Thread* issuer;
  Location where;
  uint32_t mask;
};

/// This one that lands, and all that count at the barriers of the cluster's blocks that lie where its own
/// lies, as far as they were issued in the same phase; each as often as it arrives.
std::vector<Multicast> multicasts_like(Cluster& cluster, const CountedCopy& copy) {
  const uint32_t offset = copy.barrier->offset;
  const uint64_t phase = copy.phase;
  std::vector<Multicast> found = {{copy.issuer, copy.where, copy.multicast_mask()}};
  for (const auto& block : cluster.blocks())
    for (const auto& barrier : block->mbarriers) {
      if (barrier->offset != offset || phase > barrier->phase || phase + 2 < barrier->phase) continue;
      for (const Mbarrier::Arrival& one : phase == barrier->phase       ? barrier->arrivals
                                          : phase + 1 == barrier->phase ? barrier->last_arrivals
                                                                        : barrier->earlier_arrivals)
        if (one.multicast_mask) found.push_back({one.thread, one.where, one.multicast_mask});
    }
  for (const auto& operation : cluster.in_flight()) {
    const auto* const one = dynamic_cast<const CountedCopy*>(operation.get());
    if (one && one->barrier->offset == offset && one->phase == phase && one->multicast_mask())
      found.push_back({one->issuer, one->where, one->multicast_mask()});
  }
  return found;
}

/// Bytes of the phase that the barrier still waits for, without those on the way.
int64_t bytes_nobody_sends(Cluster& cluster, const Mbarrier& barrier, uint64_t phase) {
  if (barrier.phase != phase) return 0;
  int64_t missing = barrier.missing_bytes;
  for (const auto& operation : cluster.in_flight()) {
    const auto* const one = dynamic_cast<const CountedCopy*>(operation.get());
    if (one && one->barrier == &barrier && one->phase == phase) missing -= one->bytes();
  }
  return missing;
}

std::string names_of_blocks(Cluster& cluster, uint32_t mask) {
  std::string names;
  for (const auto& block : cluster.blocks())
    if (mask >> block->ids.rank_in_cluster & 1) names += (names.empty() ? "" : " and ") + describe(*block);
  return names;
}

/// Copies of one line go to the same blocks if they have one in common. Which of them goes to a block that
/// itself sends elsewhere, while those that it meets there agree? Nothing where several differ so.
std::optional<Multicast> find_wrong_mask(const std::vector<Multicast>& all, const Mbarrier& barrier) {
  const auto differs = [&](const Multicast& one, const Multicast& other) {
    return other.where == one.where && other.mask != one.mask &&
           one.mask >> other.issuer->block->ids.rank_in_cluster & 1;
  };
  const auto is_contradicted = [&](const Multicast& one) {
    return std::any_of(all.begin(), all.end(), [&](const Multicast& other) { return differs(one, other); });
  };
  std::optional<Multicast> wrong;
  for (const Multicast& one : all) {
    if (!(one.mask >> barrier.block->ids.rank_in_cluster & 1) || !is_contradicted(one)) continue;
    if (wrong && (wrong->where != one.where || wrong->mask != one.mask)) return {};
    for (const Multicast& other : all)
      if (differs(one, other) && is_contradicted(other)) return {};
    wrong = one;
  }
  return wrong;
}

}  // namespace

std::string explain_wrong_mask(Cluster& cluster, const CountedCopy& copy, const Thread*& sender,
                               Location& where) {
  const Mbarrier& barrier = *copy.barrier;
  if (!copy.multicast_mask() || barrier.phase != copy.phase + 1) return "";
  const std::vector<Multicast> all = multicasts_like(cluster, copy);
  const std::optional<Multicast> wrong = find_wrong_mask(all, barrier);
  if (!wrong) return "";
  std::string waiting;
  uint32_t agreed = 0;
  for (const Multicast& other : all)
    if (other.where == wrong->where && other.mask != wrong->mask &&
        other.mask >> barrier.block->ids.rank_in_cluster & 1)
      agreed = other.mask;
  for (const auto& block : cluster.blocks())
    for (const auto& other : block->mbarriers)
      if (other->offset == barrier.offset && !(wrong->mask >> block->ids.rank_in_cluster & 1))
        if (const int64_t missing = bytes_nobody_sends(cluster, *other, copy.phase); missing > 0)
          waiting += (waiting.empty() ? "; it leaves out " : " and ") + describe(*block) +
                     print(", to which nobody has sent %lld of its bytes", static_cast<long long>(missing));
  sender = wrong->issuer;
  where = wrong->where;
  uint32_t senders = 0;
  for (const Multicast& one : all)
    if (one.where == wrong->where && one.mask == wrong->mask)
      senders |= 1u << one.issuer->block->ids.rank_in_cluster;
  return ": does the mask " + binary(wrong->mask, *barrier.block) + " of " +
         names_of_blocks(cluster, senders) + " (" + own_place(where) + ") name a wrong block? It sends to " +
         names_of_blocks(cluster, wrong->mask) + waiting + "\n  more bytes are sent to " + describe(barrier) +
         print(" than the %lld that its phase %llu expected",
               static_cast<long long>(barrier.last_expected_bytes),
               static_cast<unsigned long long>(copy.phase)) +
         (agreed ? ": that line also sends to " + describe(*barrier.block) + " with the mask " +
                       binary(agreed, *barrier.block)
                 : "") +
         "\n  that phase ended with those of" +
         list(with_bytes(barrier.last_arrivals, true), nullptr, /*says_bytes=*/true);
}

namespace {

/// " 0 expected 32768 bytes, and got those of ...": the phase before, which has ended without the copy.
std::string got_of_phase(const CountedCopy& copy) {
  const Mbarrier& barrier = *copy.barrier;
  return print(" %llu expected %lld bytes, and got those of", static_cast<unsigned long long>(copy.phase),
               static_cast<long long>(barrier.last_expected_bytes)) +
         list(with_bytes(barrier.last_arrivals, true), nullptr, /*says_bytes=*/true);
}

}  // namespace

std::string explain_bytes_too_late(Cluster& cluster, const CountedCopy& copy) {
  const Mbarrier& barrier = *copy.barrier;
  int64_t surplus = copy.bytes();
  bool was_sent_before = has_sent(barrier.last_arrivals, copy.issuer, copy.where);
  for (const auto& operation : cluster.in_flight()) {
    const auto* other = dynamic_cast<const CountedCopy*>(operation.get());
    if (!other || other->barrier != &barrier || other->phase != copy.phase) continue;
    surplus += other->bytes();
    was_sent_before &= has_sent(barrier.last_arrivals, other->issuer, other->where);
  }
  const bool is_next = barrier.phase == copy.phase + 1;
  const bool is_whole_phase = is_next && was_sent_before && surplus == barrier.last_expected_bytes;
  if (const std::string releases = explain_missing_releases(cluster, copy); !releases.empty())
    return releases;
  const uint32_t mask = copy.multicast_mask();
  // Copies of one line that fill the same slot go to the same blocks.
  const auto& others = barrier.last_arrivals;
  const auto other_mask = std::find_if(others.begin(), others.end(), [&](const Mbarrier::Arrival& other) {
    return other.multicast_mask && other.multicast_mask != mask && other.where == copy.where;
  });
  if (mask && is_next && other_mask != others.end()) {
    std::string receivers;
    for (const auto& block : cluster.blocks())
      if (mask >> block->ids.rank_in_cluster & 1)
        receivers += (receivers.empty() ? "" : " and ") + describe(*block);
    return ": does its mask name a wrong block? Its mask " + binary(mask, *copy.target) + " sends it to " +
           receivers + "; " + describe(barrier) +
           print(" has had all the %lld bytes that its phase %llu expected without it, of",
                 static_cast<long long>(barrier.last_expected_bytes),
                 static_cast<unsigned long long>(copy.phase)) +
           list(with_bytes(others, true), nullptr, /*says_bytes=*/true);
  }
  if (const std::string box = is_next && !is_whole_phase ? explain_box_over_rows(cluster, copy) : "";
      !box.empty())
    return ": " + box + "\n  the copy came after its phase at " + describe(barrier) + " had ended: phase" +
           got_of_phase(copy);
  std::string text =
      is_whole_phase
          ? print(
                ": the sender is ahead (it sent the %lld bytes of a phase before the phase before had "
                "ended, and did not wait until the slot was empty), or too few bytes were expected at ",
                static_cast<long long>(surplus))
          : std::string(
                ": the phase in which it was issued has ended before its bytes came: too few bytes "
                "were expected at ");
  text += describe(barrier) + (is_whole_phase ? "" : copy.too_late_because()) +
          (!is_whole_phase && copy.box_rows() ? ", or a box is too large" : "");
  if (mask) text += ", or a mask names a wrong block";
  if (mask && !(mask >> copy.issuer->block->ids.rank_in_cluster & 1))
    text += ": this one, of " + describe(*copy.issuer->block) + ", leaves out the block that sends";
  if (is_next) text += "\n  phase" + got_of_phase(copy);
  if (mask) {
    text += "\n  its mask " + binary(mask, *copy.target) + " sends it to";
    for (const auto& block : cluster.blocks())
      if (mask >> block->ids.rank_in_cluster & 1) text += " " + describe(*block);
  }
  return text;
}

namespace {

/// A name of an element of an array.
struct Element {
  std::string array;  ///< "smem.b"
  std::string name;   ///< "smem.b[1]"
  std::string index;  ///< "1"; empty where the name has none
};
Element element_in(const std::string& name, size_t bracket) {
  const size_t end = bracket == name.npos ? bracket : name.find(']', bracket);
  if (end == name.npos) return {};
  return {name.substr(0, bracket), name.substr(0, end + 1), name.substr(bracket + 1, end - bracket - 1)};
}
Element element_of(const Mbarrier& barrier) {
  const std::string name = name_of(barrier);
  return element_in(name, name.rfind('['));
}

}  // namespace

std::string explain_slot_of_load(const Thread& sender, size_t offset, const Mbarrier& barrier) {
  const Unobserved unobserved;
  const auto slot_at = [&](size_t at) {
    const std::string name = sender.cluster.layout().name_of(at);
    return element_in(name, name.find('['));
  };
  const Element slot = slot_at(offset), counts_at = element_of(barrier);
  if (slot.index.empty() || counts_at.index.empty() || slot.index == counts_at.index) return "";
  for (auto load = sender.last_loads.rbegin(); load != sender.last_loads.rend(); ++load) {
    if (load->barrier->block != barrier.block) continue;
    const Element other = slot_at(load->offset), others = element_of(*load->barrier);
    if (other.index != slot.index || other.array == slot.array) continue;
    if (others.index != slot.index || others.array != counts_at.array) continue;
    return "the load of " + slot.name + " counts at " + counts_at.name + ", and that of " + other.name +
           " (" + own_place(load->where) + ") at " + others.name + ": is " + counts_at.name +
           " the barrier of another slot?";
  }
  return "";
}

std::string explain_surplus(const Mbarrier& barrier) {
  if (barrier.pending && barrier.expected_bytes)
    return print(" (%lld expected, %lld came): who has not arrived has not said yet how many it expects",
                 static_cast<long long>(barrier.expected_bytes),
                 static_cast<long long>(barrier.expected_bytes - barrier.missing_bytes));
  const std::vector<Mbarrier::Arrival> came = with_bytes(barrier.arrivals, true);
  const auto was_sent_twice = [&](const Mbarrier::Arrival& arrival) {
    const auto is_alike = [&](const Mbarrier::Arrival& other) {
      return other.thread == arrival.thread && other.where == arrival.where;
    };
    return barrier.expected_bytes ? std::count_if(came.begin(), came.end(), is_alike) % 2 == 0
                                  : has_sent(barrier.last_arrivals, arrival.thread, arrival.where);
  };
  const int64_t phase = barrier.expected_bytes ? barrier.expected_bytes : barrier.last_expected_bytes;
  if (!phase || barrier.missing_bytes != -phase || !std::all_of(came.begin(), came.end(), was_sent_twice))
    return "";
  return " (as many as a phase has: the sender is ahead, its bytes came before the phase before was waited "
         "for)";
}

namespace {

/// A line that names a wait which passed at once, as its parity is that of a phase before the first.
std::string explain_early_pass(const Mbarrier& barrier) {
  const auto& [thread, where, phase] = barrier.early_pass;
  if (!thread || barrier.phase) return "";
  return "\n  the wait of " + names_of({thread}) + " (" + own_place(where) +
         ") has parity 1, which passes before the first phase has ended";
}

}  // namespace

std::string explain_open_phase(const Mbarrier& barrier) {
  if (barrier.missing_bytes <= 0) return "";
  return (barrier.waiting_warps ? "" : explain_early_pass(barrier)) +
         print("\n  its phase %llu has had all arrivals, of%s, and waits for %lld bytes%s",
               static_cast<unsigned long long>(barrier.phase),
               list(with_bytes(barrier.arrivals, false)).c_str(),
               static_cast<long long>(barrier.missing_bytes),
               barrier.waiting_warps ? "" : "; no thread waits for it");
}

std::string explain_early_release(const Mbarrier& one_of_its_ends) {
  const Mbarrier* const other = other_end(one_of_its_ends);
  if (!other) return "";
  const Mbarrier& full = one_of_its_ends.is_full ? one_of_its_ends : *other;
  const Mbarrier& empty = one_of_its_ends.is_full ? *other : one_of_its_ends;
  if (empty.phase != full.phase + 1) return "";
  const auto arrivals = with_bytes(empty.last_arrivals, false);
  // Those of other blocks speak of slots of theirs.
  if (arrivals.empty() || std::any_of(arrivals.begin(), arrivals.end(), [&](const Mbarrier::Arrival& one) {
        return one.thread->block != full.block;
      }))
    return "";
  return name_of(empty) + " was released too early, by" + list(arrivals) +
         print(": phase %llu of ", static_cast<unsigned long long>(full.phase)) + name_of(full) +
         " has not ended";
}

namespace {

/// "pipe_lc.full", of pipe_lc.full[0].
std::string ring_of(const Mbarrier& barrier) {
  const std::string name = name_of(barrier);
  return name.substr(0, name.rfind('['));
}

/// Has the thread waited for an end of a pipeline?
bool has_waited_in(const std::string& ring, const Thread& thread) {
  if (thread.last_seen.barrier && ring_of(*thread.last_seen.barrier) == ring) return true;
  const auto& all = thread.block->mbarriers;
  return std::any_of(all.begin(), all.end(), [&](const auto& one) {
    return !one->phases_seen.empty() && one->phases_seen[thread.ids.rank] && ring_of(*one) == ring;
  });
}

/// The ring that slots of another pipeline are filled in, at which nobody has ever arrived; or nothing.
std::string ring_without_arrivals(const Mbarrier& full) {
  std::map<std::string, bool> is_unused;
  for (const auto& one : full.block->mbarriers)
    if (other_end(*one) && one->is_full)
      is_unused.try_emplace(ring_of(*one), true).first->second &= one->times_arrived.empty() && !one->phase;
  for (const auto& [ring, unused] : is_unused)
    if (unused && ring != ring_of(full)) return ring;
  return "";
}

}  // namespace

std::string explain_wrong_pipeline(const Mbarrier& barrier, const Thread* arrives, Location where) {
  const Mbarrier* const empty = other_end(barrier);
  if (!empty || !barrier.is_full) return "";
  // Those who read the slots, and wait until they are empty, too; and those who only fill them.
  std::vector<const Thread*> both, fill;
  std::set<std::string> places_of_both, places_of_fill;
  const auto note = [&](const Thread& one, Location at) {
    if (one.block != barrier.block) return;
    const bool reads = has_waited_in(ring_of(barrier), one);
    if (reads && !has_waited_in(ring_of(*empty), one)) return;
    (reads ? both : fill).push_back(&one);
    (reads ? places_of_both : places_of_fill).insert(own_place(at));
  };
  if (arrives) note(*arrives, where);
  for (const auto* arrivals : {&barrier.arrivals, &barrier.last_arrivals, &barrier.earlier_arrivals})
    for (const Mbarrier::Arrival& one : with_bytes(*arrivals, false)) note(*one.thread, one.where);
  if (places_of_both.size() != 1 || places_of_fill.size() != 1 || places_of_both == places_of_fill) return "";
  const std::string unused = ring_without_arrivals(barrier);
  if (unused.empty()) return "";
  const std::string who = names_of(both), others = names_of(fill);
  return who + (are_several(who) ? " read " : " reads ") + "what " + others +
         (are_several(others) ? " fill" : " fills") + " at " + ring_of(barrier) + " (" +
         *places_of_fill.begin() + "), and" + (are_several(who) ? " arrive" : " arrives") + " there, too (" +
         *places_of_both.begin() + "); nobody has ever arrived at " + unused + ": is " +
         (*barrier.end ? "a Producer made of the wrong pipeline?" : "this the wrong barrier?");
}

std::string explain_arrival_too_many(const Thread& thread, const Mbarrier& barrier, const char* what,
                                     Location where) {
  std::string text = explain_open_phase(barrier);
  if (const std::string early = explain_early_release(barrier); !early.empty() && barrier.is_full)
    return "\n  " + early + text;
  const Thread::Seen& seen = thread.last_seen;
  for (const Mbarrier::Arrival& earlier : barrier.arrivals) {
    const bool is_first_lap = !seen.barrier || seen.phase == 0 || (!other_end(barrier) && barrier.phase == 0);
    if (!earlier.of_operation && earlier.thread->warp != thread.warp && barrier.expected == 1 &&
        is_first_lap && earlier.thread->block == thread.block) {
      const OwnLine before = own_line(earlier.where), now = own_line(where);
      const bool is_same = before.place == now.place;
      const std::string both = "\n  " + names_of({earlier.thread}) + " and " + names_of({&thread});
      if (is_same && before.caller == now.caller)
        return both + " both arrive at " + now.place + ": should one thread of the block alone come here?" +
               text;
      // Two roles: each expects the bytes of its own loads.
      if (barrier.expected_bytes && std::strcmp(what, earlier.what) == 0 &&
          (!is_same || (!before.caller.empty() && !now.caller.empty())))
        return both + " both arrive, at " + before.place +
               (is_same ? ", called from " + before.caller + " and from " + now.caller
                        : " and at " + now.place) +
               ": should the count be 2?" + text;
      if (is_same)
        return both + " both arrive at " + now.place + ": should one thread of the block alone come here?" +
               text;
    }
    if (earlier.of_operation || earlier.thread->warp != thread.warp) continue;
    if (earlier.thread != &thread && barrier.expected == 1 && is_first_lap)
      return print("\n  lane %u of the same warp arrived in this phase before, at ", earlier.thread->lane) +
             own_place(earlier.where) + ": should one thread alone come here?" + text;
    if (earlier.thread != &thread) continue;
    const std::string before = "\n  the thread arrived in this phase before, at " + own_place(earlier.where);
    if (earlier.waits_before == thread.mbarrier_waits)
      return before + ", and has waited for no mbarrier since" + text;
    const Mbarrier* const other = other_end(barrier);
    if (other && seen.barrier && seen.barrier != other && other_end(*seen.barrier) &&
        seen.barrier->is_full == other->is_full && seen.barrier->initialised_at == other->initialised_at)
      return before + ", and must wait for " + name_of(*other) +
             " before it does so again; it waited last for " + name_of(*seen.barrier) +
             ", of another slot: does the arrival (" + own_place(earlier.where) + ") come before the wait?" +
             text;
    const bool has_waited_there = other && !other->waits.empty() && other->waits[thread.ids.rank];
    if (other && barrier.is_full && barrier.block == thread.block && !has_waited_there && seen.barrier)
      return before + ", and must wait for " + name_of(*other) +
             " before it does so again; it has never waited there, and waited last for " +
             name_of(*seen.barrier) + text;
    if (seen.barrier == &barrier && seen.phase == 0)
      return before + "; its wait there since then (" + own_place(seen.where) +
             ") had parity 1, which passes before the first phase has ended: should it have been parity 0?" +
             text;
    if (seen.barrier && seen.phase == 0 && !other_end(*seen.barrier))
      return before + "; since then it waited for " + describe(*seen.barrier) + " with parity 1 (" +
             own_place(seen.where) +
             "), which passes before the first phase has ended: should its parity have flipped?" + text;
    if (seen.barrier && seen.phase == 0)
      return before + "; since then it waited for " + describe(*seen.barrier) +
             ", which was in its first phase and let it pass: did its position move on, and its parity "
             "flip?" +
             text;
  }
  if (!seen.barrier) return text + "\n  the thread has waited for no mbarrier";
  const std::string open_phase = text;
  text += "\n  the thread waited last for " + describe(*seen.barrier);
  if (seen.phase == 0) return text + ", which was in its first phase and let it pass";
  text += print(", whose phase %llu had ended", static_cast<unsigned long long>(seen.phase - 1));
  if (seen.barrier->phase == seen.phase) {
    text += " with the arrivals of" + list(seen.barrier->last_arrivals);
    const auto& before = seen.barrier->earlier_arrivals;
    const std::string count = explain_count(*seen.barrier, before, seen.barrier->last_arrivals);
    if (!count.empty())  // which is why it did not wait long enough
      return "\n  the count of " + name_of(*seen.barrier) +
             ", for which the thread waited last, is too small" + count +
             "\n  its last phase ended with the arrivals of" + list(seen.barrier->last_arrivals) +
             ", and the phase before with those of" + list(before) + open_phase;
  }
  if (seen.barrier->phase == seen.phase + 1)
    text += " with the arrivals of" + list(seen.barrier->earlier_arrivals);
  return text;
}

namespace {

/// What a thread had waited for last in its epoch, if that is known; epoch 0 is now. An operation may be
/// found long after its issue.
std::optional<Thread::Seen> seen_in(const Thread& thread, uint32_t epoch) {
  if (!epoch) return thread.last_seen;
  for (auto seen = thread.seen_before.rbegin(); seen != thread.seen_before.rend(); ++seen)
    if (seen->epoch <= epoch) return *seen;
  if (thread.seen_before.size() < Thread::kSeenKept) return Thread::Seen{};
  return std::nullopt;
}

/// Of a wait that passed before the first phase had ended, as its parity says: the second in a row does so
/// because the parity has not changed.
std::string explain_first_parity(const Thread::Seen& seen) {
  if (!seen.repeats.line) return " with parity 1, which passes before the first phase has ended";
  const std::string now = own_place(seen.where), before = own_place(seen.repeats);
  return " with parity 1 (" + now + "), as it had the time before" +
         (now == before ? "" : " (" + before + ")") +
         ": the parity has not flipped between the two, and parity 1 passes before the first phase has ended";
}

/// The same of a later phase, for which the thread had waited before; else nothing.
std::string explain_same_parity(const Thread::Seen& seen) {
  if (!seen.phase || !seen.repeats.line) return "";
  return print("; its wait there before (%s) was for the same phase: the parity, %u, has not flipped between",
               own_place(seen.repeats).c_str(), static_cast<unsigned>((seen.phase - 1) % 2));
}

/// What a thread that reads too early had waited for last, in its epoch.
std::string explain_last_wait(const Thread& thread, uint32_t epoch) {
  const Thread::Seen seen = seen_in(thread, epoch).value_or(Thread::Seen{});
  if (!seen.barrier) return "";
  std::string text = "the reader waited last for " + name_of(*seen.barrier);
  if (seen.phase == 0) return text + explain_first_parity(seen);
  text += print(", whose phase %llu had ended", static_cast<unsigned long long>(seen.phase - 1));
  if (seen.barrier->phase != seen.phase || seen.barrier->last_waits.empty()) return text;
  const Mbarrier::Wait& wait = seen.barrier->last_waits[thread.ids.rank];
  const auto& arrivals = seen.barrier->last_arrivals;
  const auto store = std::find_if(arrivals.begin(), arrivals.end(),
                                  [](const auto& arrival) { return arrival.needs_cluster_scope; });
  if (wait.of_cluster || store == arrivals.end())
    return text + " (" + own_place(wait.where) + ")" + explain_same_parity(seen);
  return text + ": the " + wait.what + " at " + to_string(wait.where) +
         " has the scope of the block, and for what another block stores (" + store->what + " at " +
         to_string(store->where) + ") it must be the cluster";
}

/// An arrival that a thread has waited for.
struct WaitedFor {
  const Mbarrier* barrier = nullptr;
  const Mbarrier::Arrival* arrival = nullptr;
  const Mbarrier::Wait* wait = nullptr;
};

/// Of the arrivals that `waiter` had waited for in its epoch, the first that `is_wanted`; with `only`, of
/// those at that barrier.
template <class Condition>
WaitedFor find_waited_for(const Thread& waiter, uint32_t epoch, const Condition& is_wanted,
                          const Mbarrier* only = nullptr) {
  WaitedFor found;
  for (const auto& barrier : waiter.block->mbarriers) {
    if (only && barrier.get() != only) continue;
    if (barrier->last_waits.empty()) continue;
    const Mbarrier::Wait& wait = barrier->last_waits[waiter.ids.rank];
    if (!wait.phase || (epoch && wait.epoch > epoch) || barrier->phase - wait.phase > 1) continue;
    for (const auto& one :
         barrier->phase == wait.phase ? barrier->last_arrivals : barrier->earlier_arrivals) {
      if (one.bytes || !is_wanted(one)) continue;
      if (found.arrival && found.arrival->epoch <= one.epoch) continue;
      found = {barrier.get(), &one, &wait};
    }
  }
  return found;
}

std::string who_and_where(const Thread& thread, const Mbarrier& barrier, const Mbarrier::Arrival& arrival) {
  return print("warp %u lane %u arrives at ", thread.warp->index, thread.lane) + name_of(barrier) + " (" +
         own_place(arrival.where) + ")";
}

bool is_of_warpgroup(const Thread& one, const Thread& other) {
  return one.block == other.block && one.ids.rank / kWarpgroupThreads == other.ids.rank / kWarpgroupThreads;
}

/// "phase 0 of empty ended with the arrivals of warp 0 (...) x32, as its count of 32 says (mine.cuh:64); warp
/// 1 lane 0, which reads, ...": where lanes of one warp arrive each for itself, and a thread of its warpgroup
/// is none of them. Else nothing.
std::string explain_lanes_without(const Thread& thread, const char* does, const Mbarrier& barrier,
                                  uint64_t phase, const std::vector<Mbarrier::Arrival>& kept) {
  const std::vector<Mbarrier::Arrival> arrivals = with_bytes(kept, false);
  const Mbarrier::Arrival* first = nullptr;
  std::set<const Thread*> lanes;
  for (const Mbarrier::Arrival& one : arrivals) {
    if (one.thread == &thread) return "";
    if (!first && is_of_warpgroup(*one.thread, thread)) first = &one;
    if (first && one.thread->warp == first->thread->warp && one.where == first->where)
      lanes.insert(one.thread);
  }
  if (lanes.size() < 2) return "";
  return print("phase %llu of ", static_cast<unsigned long long>(phase - 1)) + name_of(barrier) +
         " ended with the arrivals of" + list(arrivals) +
         print(", as its count of %u says (", barrier.expected) + place_of(origin_of(barrier)) + "); " +
         names_of({&thread}) + ", which " + does +
         ", is not among them: should it arrive, too, and the count include it?";
}

/// An arrival of the first thread, later than its access, that orders nothing: it is relaxed, or the wait has
/// too small a scope.
std::string explain_weak_arrival(const WaitedFor& hand_over, const Thread& first, const Thread& second) {
  const Mbarrier::Arrival& arrival = *hand_over.arrival;
  if (!arrival.remote) return "";
  const std::string came = "between them: " + std::string(arrival.what) + " at " +
                           name_of(*hand_over.barrier) + ", at " + to_string(arrival.where);
  if (*arrival.remote == ArrivalOrder::relaxed)
    return came + ": it is relaxed, and says nothing of loads and stores before it";
  const Mbarrier::Wait& wait = *hand_over.wait;
  if (wait.of_cluster || first.block == second.block) return "";
  return came + ", of another block, and the " + wait.what + " at " + to_string(wait.where) +
         ": its scope is the block, and for an arrival of another block it must be the cluster";
}

/// Where a cp.async belongs to no group when its thread comes to the next __syncthreads: no wait before that
/// covers it. Empty if it does, or if that is not known.
std::string explain_late_commit(const Thread& thread, uint32_t epoch, size_t offset) {
  const auto is_the_copy = [&](const Copy& copy) {
    const auto begin = static_cast<size_t>(copy.shared - thread.block->shared.generic());
    return copy.epoch == epoch && begin <= offset && offset < begin + copy.bytes;
  };
  const auto explain = [&](const std::vector<Copy>& copies, const Location* committed_at,
                           uint32_t commit_epoch) -> std::string {
    const auto copy = std::find_if(copies.begin(), copies.end(), is_the_copy);
    const auto next = std::find_if(thread.block_barriers.begin(), thread.block_barriers.end(),
                                   [&](const Thread::Order& one) { return one.epoch >= epoch; });
    if (copy == copies.end() || next == thread.block_barriers.end()) return "";
    if (committed_at && commit_epoch <= next->epoch) return "";
    return "no commit comes between the cp.async and the next __syncthreads (" + own_place(next->where) +
           ")" +
           (committed_at ? "; the one at " + own_place(*committed_at) +
                               " closes its group after that, so that no wait before covers it"
                         : "");
  };
  const Unobserved unobserved;
  std::string text;
  const auto explain_group = [&](const CopyGroup* group) {
    if (text.empty() && group && group->issuer == &thread && !group->barrier)
      text = explain(group->copies, group->committed_at.line ? &group->committed_at : nullptr,
                     group->commit_epoch);
  };
  explain_group(thread.open_copies.get());
  explain_group(thread.landing_copies);
  for (const auto& operation : thread.cluster.in_flight())
    explain_group(dynamic_cast<const CopyGroup*>(operation.get()));
  for (const LandedGroup& group : thread.landed_groups)
    if (text.empty()) text = explain(group.copies, &group.committed_at, group.commit_epoch);
  return text;
}

/// Of a thread whose cp.async no wait had covered when it came to a __syncthreads: its last wait, which comes
/// after that, or leaves newer copies in flight on purpose. Empty if neither is so.
std::string explain_copy_wait(const Thread& thread, const Thread::Order& barrier) {
  const bool is_too_early = thread.uncommitted_wait_at.line;
  if (!thread.copy_groups_at_wait && !is_too_early) return "";
  const std::string wait = ": the wait at " + own_place(thread.last_copy_wait_at);
  if (thread.last_copy_wait_epoch > barrier.epoch) return wait + " comes after it";
  if (!thread.copy_groups_left) return is_too_early ? wait + " comes before the commit" : "";
  return wait +
         (thread.copy_groups_left == 1 ? std::string(" leaves out the newest group")
                                       : print(" leaves out the %u newest groups", thread.copy_groups_left)) +
         " of copies";
}

/// Why a thread had not waited for its wgmma when it came to a __syncthreads.
std::string explain_wgmma_wait(const Thread& thread, uint32_t issued_in, const Thread::Order& barrier) {
  const Thread::Order& wait = thread.last_wgmma_wait;
  if (!issued_in || wait.epoch <= issued_in) return "no wait for wgmma comes between";
  const std::string text = "no wait had covered that by then: the wait for wgmma at " + own_place(wait.where);
  if (wait.epoch > barrier.epoch) return text + " comes after it";
  if (!thread.wgmma_groups_left) return text + " comes before the commit";
  return text +
         (thread.wgmma_groups_left == 1
              ? std::string(" leaves out the newest group")
              : print(" leaves out the %u newest groups", thread.wgmma_groups_left)) +
         " of products";
}

/// Of a thread whose wait leaves newer groups in flight: whether it has not closed the newest yet.
std::string explain_open_copies(const Thread& thread) {
  const CopyGroup* const open = thread.open_copies.get();
  if (!open || open->copies.empty() || !thread.copy_groups_left || !thread.copy_groups_at_wait ||
      open->copies.front().epoch > thread.last_copy_wait_epoch)
    return "";
  return print(
             "the wait at %s leaves out the newest %u groups, and the last cp.async before it are in none: ",
             own_place(thread.last_copy_wait_at).c_str(), thread.copy_groups_left) +
         "commit in each round";
}

/// The thread's last wait for TMA stores leaves out groups from this one on. Would it not, if the stores
/// before it were committed? Then where they are; else nothing.
std::string explain_uncommitted(const Thread& issuer, size_t first_left) {
  const size_t open_at_wait = first_left + issuer.store_groups_left;
  if (open_at_wait >= issuer.store_groups.size()) return "";
  const TmaStoreGroup& group = issuer.store_groups[open_at_wait];
  const auto& operations = group.race_operations;
  const uint32_t issued_in = operations.empty() ? 0 : operations.back().issue_epoch();  // at group.where
  if (!issued_in || issued_in >= issuer.last_store_wait.epoch) return "";
  const bool is_committed = open_at_wait + 1 < issuer.store_groups.size();
  if (is_committed && group.waits_before_commit != issuer.store_waits) return "";
  return ": the store before that wait, at " + own_place(group.where) + ", was in no group by then" +
         (is_committed ? ", because it is committed behind the wait, at " + own_place(group.committed_at)
                       : "") +
         ": commit first, and wait then";
}

/// A TMA store of `issuer` may still read what `writer` overwrites: which commit or wait of the issuer is
/// missing, or what must order its wait and the write.
std::string explain_store_wait(const Thread& issuer, uint32_t issued_in, const Thread& writer) {
  if (!issued_in) return "";
  const std::string store = "the TMA store of " + describe(issuer);
  const uint64_t committed =
      issuer.forgotten_store_groups + (issuer.store_groups.empty() ? 0 : issuer.store_groups.size() - 1);
  const bool has_waited = issuer.last_store_wait.epoch > issued_in;
  const auto explain_order_behind_wait = [&](Location where) {
    return describe(issuer) + " waits for its TMA store at " + own_place(where) +
           ", and nothing orders that before the write of " +
           (issuer.warp == writer.warp
                ? print(
                      "lane %u of the same warp: lanes do not run in step, so a __syncwarp must come between",
                      writer.lane)
                : describe(writer) + (issuer.block_barriers.size() > 1 && writer.block_barriers.size() > 1
                                          ? ": a __syncthreads must come between"
                                          : ": a barrier must come between"));
  };
  const std::string wait = "its wait for TMA stores at " + own_place(issuer.last_store_wait.where);
  for (size_t i = 0; i < issuer.store_groups.size(); ++i) {
    const auto& operations = issuer.store_groups[i].race_operations;
    if (std::none_of(operations.begin(), operations.end(),
                     [&](const AsyncOperation& one) { return one.issue_epoch() == issued_in; }))
      continue;
    const uint64_t group = issuer.forgotten_store_groups + i;
    if (group == committed)
      return "no tma_store_commit of the thread that issues " + store + " comes behind it" +
             (has_waited ? ", so that " + wait + " does not cover it" : "") +
             (has_waited && issuer.last_store_commit.line
                  ? ": the last commit, at " + own_place(issuer.last_store_commit) +
                        ", comes before the store"
                  : "");
    const TmaStoreGroup& closed = issuer.store_groups[i];
    if (has_waited && closed.waits_before_commit == issuer.store_waits)
      return wait + " comes before the tma_store_commit at " + own_place(closed.committed_at) +
             // In a loop, a commit in front of the store closes the store's group in the next round.
             (closed.committed_at.line < closed.where.line ? " of the next round" : "") +
             ", and so does not cover " + store + ": " +
             (closed.committed_at.line < closed.where.line
                  ? "the commit must come behind the store, and the wait behind the commit"
                  : "commit first, and wait then");
    if (group < issuer.read_store_groups_known) break;
    const auto& now = issuer.wait;
    if (!has_waited && now.kind == WaitKind::stores && group < now.argument >> 1 && &issuer != &writer)
      return explain_order_behind_wait(now.where);
    if (!has_waited) return "no tma_store_wait_read of the thread that issues " + store + " comes between";
    return wait +
           (issuer.store_groups_left == 1
                ? std::string(" leaves out the newest group")
                : print(" leaves out the %u newest groups", issuer.store_groups_left)) +
           " of stores, and with it " + store + explain_uncommitted(issuer, i);
  }
  if (!has_waited || &issuer == &writer) return "";
  return explain_order_behind_wait(issuer.last_store_wait.where);
}

/// Does the thread's TMA store of the byte read what threads of other warps have written?
bool stores_of_other_warps(const Thread& issuer, size_t offset) {
  const auto store = std::find_if(
      issuer.last_stores.rbegin(), issuer.last_stores.rend(),
      [&](const Thread::StoredBox& one) { return one.offset <= offset && offset < one.offset + one.bytes; });
  if (store == issuer.last_stores.rend()) return false;
  constexpr size_t kStep = 16;
  for (size_t at = store->offset; at < store->offset + store->bytes; at += kStep) {
    const std::optional<unsigned> who =
        issuer.cluster.races()->last_writer(issuer.block->ids.rank_in_cluster, at);
    const auto is_own = [&](const Thread* lane) { return lane && who && lane->number == *who; };
    if (who && std::none_of(std::begin(issuer.warp->lanes), std::end(issuer.warp->lanes), is_own))
      return true;
  }
  return false;
}

/// Both have met in a __syncthreads between the TMA store and the write, and the issuer waits for its store
/// behind that, or not at all: half a sentence; else nothing.
std::string explain_barrier_before_store_wait(const Thread& issuer, uint32_t issued_in, const Thread& writer,
                                              uint32_t written_in) {
  if (!issued_in || !written_in || issuer.block != writer.block) return "";
  size_t met = std::min(issuer.block_barriers.size(), writer.block_barriers.size());
  while (met && writer.block_barriers[met - 1].epoch >= written_in) --met;
  if (!met || issuer.block_barriers[met - 1].epoch < issued_in) return "";
  const Thread::Order& barrier = issuer.block_barriers[met - 1];
  const bool has_met_since = met < issuer.block_barriers.size();
  const Thread::Order& wait = issuer.last_store_wait;
  const bool waits_now = issuer.wait.kind == WaitKind::stores && !has_met_since;
  if (!waits_now && wait.epoch <= issued_in) return explain_store_wait(issuer, issued_in, writer);
  // A wait for what comes later is not the one that is meant.
  if (!waits_now &&
      (wait.epoch <= barrier.epoch || (has_met_since && wait.epoch > issuer.block_barriers[met].epoch)))
    return "";
  return "the last __syncthreads of both (" + own_place(barrier.where) + ") comes before " +
         describe(issuer) + " has waited for its TMA store (" +
         own_place(waits_now ? issuer.wait.where : wait.where) + "): the wait must come first";
}

/// A thread writes what a TMA store of another reads, in the same round, and nothing orders the write before
/// the store, though it is meant to be. Half a sentence; nothing where the write may be one of a later round.
std::string explain_store_before_write(const Thread& writer, const Thread& issuer,
                                       const RaceChecker::Unordered& accesses) {
  if (!accesses.may_write_before_issue || accesses.second_what != "TMA store" || !accesses.second_epoch ||
      accesses.lacks_fence || &writer == &issuer || writer.block != issuer.block)
    return "";
  const auto met_before = [](const Thread& thread, uint32_t epoch) {
    size_t met = 0;
    while (met < thread.block_barriers.size() && thread.block_barriers[met].epoch < epoch) ++met;
    return met;
  };
  const size_t met = met_before(writer, accesses.first_epoch);
  if (!met || met != met_before(issuer, accesses.second_epoch)) return "";
  // An mbarrier that either has waited for since explains more, or has told the writer of the store.
  const auto has_waited_since = [&](const Thread& thread, uint32_t epoch) {
    const auto& seen = thread.seen_before;
    return std::any_of(seen.begin(), seen.end(), [&](const Thread::Seen& one) {
      return one.epoch <= epoch && one.epoch > thread.block_barriers[met - 1].epoch;
    });
  };
  if (has_waited_since(writer, accesses.first_epoch) || has_waited_since(issuer, accesses.second_epoch))
    return "";
  if (writer.warp == issuer.warp && !stores_of_other_warps(issuer, accesses.offset)) return "";
  return "the last __syncthreads of both (" + own_place(issuer.block_barriers[met - 1].where) +
         ") comes before both: another must come between the write and the TMA store";
}

/// Of a thread that has waited for TMA stores since it issued this one: why that does not cover it.
std::string explain_useless_wait(const Thread& issuer, const std::string& what, uint32_t issued_in,
                                 const Thread& writer) {
  if (what != "TMA store" || issuer.last_store_wait.epoch <= issued_in) return "";
  const std::string order = explain_store_wait(issuer, issued_in, writer);
  return order.empty() ? "" : ": " + order;
}

}  // namespace

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

namespace {

/// One of the two waits in a __syncthreads to which the other has not come: who does, and who has not; else
/// nothing.
std::string explain_absence(const Thread& first, const Thread& second) {
  const NamedBarrier& barrier = first.block->barriers[0];
  const auto waits = [&](const Thread& thread) {
    return std::find(barrier.waiting.begin(), barrier.waiting.end(), &thread) != barrier.waiting.end();
  };
  if (waits(first) == waits(second)) return "";
  const std::string present = names_of({barrier.waiting.begin(), barrier.waiting.end()});
  const std::string others = names_of_lanes(*first.block, [&](const Thread& one) { return !waits(one); });
  return ": " + present + (are_several(present) ? " wait" : " waits") + " there (" +
         own_place(barrier.where) + "), and " + others + (are_several(others) ? " have" : " has") +
         " not come there yet";
}

/// The other end of the slot that a copy of this note fills: what its writer must wait for. Null if unknown.
const Mbarrier* empty_end_of(const Block& block, const std::string& note_of_writer) {
  for (const auto& full : block.mbarriers)
    if (" for " + name_of(*full) == note_of_writer) return other_end(*full);
  return nullptr;
}

/// The group of the thread's cp.async that was issued in this epoch and writes the byte; 0 if it is in none
/// yet, or not known any more.
uint64_t group_of_copy(const Thread& thread, uint32_t epoch, size_t offset) {
  const auto has_the_copy = [&](const std::vector<Copy>& copies) {
    return std::any_of(copies.begin(), copies.end(), [&](const Copy& copy) {
      const auto begin = static_cast<size_t>(copy.shared - thread.block->shared.generic());
      return copy.epoch == epoch && begin <= offset && offset < begin + copy.bytes;
    });
  };
  const auto is_its_group = [&](const CopyGroup* group) {
    return group && group->issuer == &thread && !group->barrier && has_the_copy(group->copies);
  };
  if (is_its_group(thread.landing_copies)) return thread.landing_copies->number;
  for (const auto& operation : thread.cluster.in_flight())
    if (const auto* group = dynamic_cast<const CopyGroup*>(operation.get()); is_its_group(group))
      return group->number;
  for (const LandedGroup& group : thread.landed_groups)
    if (has_the_copy(group.copies)) return group.number;
  return 0;
}

/// One thread does both, so no barrier can order them: which of its waits does not cover the copy.
std::string explain_own_copy(const Thread& thread, const RaceChecker::Unordered& accesses) {
  const std::string copy = "cp.async";
  const bool first_is_copy = accesses.first_what == copy;
  const std::string first = first_is_copy && accesses.second_what == copy ? "first " : "";
  const std::string what =
      "one thread does both, and no wait of its own for the " + first + copy + " comes between";
  if (accesses.reads_early) {
    const uint64_t group =
        group_of_copy(thread, first_is_copy ? accesses.first_epoch : accesses.second_epoch, accesses.offset);
    if (group && group <= thread.copy_groups_at_wait &&
        group + thread.copy_groups_left > thread.copy_groups_at_wait)
      return "one thread does both, and no wait of its own covers the " + copy +
             explain_copy_wait(thread, {{}, thread.last_copy_wait_epoch}) + ", and this is one of them";
  }
  if (!first_is_copy || !accesses.second_epoch || !thread.copy_groups_at_wait || !thread.copy_groups_left ||
      thread.last_copy_wait_epoch < accesses.first_epoch ||
      thread.last_copy_wait_epoch > accesses.second_epoch)
    return what +
           (first.empty() ? "" : ": wait for it before the second, or is the second for another place?");
  return what + explain_copy_wait(thread, {{}, thread.last_copy_wait_epoch});
}

/// Both threads have met in a __syncthreads, or one of them has.
std::string explain_block_barrier(const Thread& first, const Thread& second,
                                  const RaceChecker::Unordered& accesses) {
  if (first.block != second.block || !accesses.first_epoch) return "";
  if (&first == &second && (accesses.first_what == "cp.async" || accesses.second_what == "cp.async") &&
      accesses.first_what != "wgmma" && accesses.second_what != "wgmma")
    return explain_own_copy(first, accesses);
  // A thread that has gone on may wait at a __syncthreads to which the other has not come yet.
  size_t met = std::min(first.block_barriers.size(), second.block_barriers.size());
  // The second may have been issued first, and have gone on.
  const bool second_was_first = !accesses.reads_early && accesses.first_writes &&
                                accesses.second_is_operation && accesses.second_epoch && met &&
                                second.block_barriers[met - 1].epoch > accesses.second_epoch;
  // A copy that was issued before the read, and has not landed.
  const bool copy_was_first =
      accesses.reads_early && !accesses.first_writes && accesses.second_is_operation && accesses.second_epoch;
  if (copy_was_first)
    while (met && first.block_barriers[met - 1].epoch > accesses.first_epoch) --met;
  if (accesses.second_is_operation && accesses.second_epoch && !second_was_first && !copy_was_first)
    while (met && second.block_barriers[met - 1].epoch >= accesses.second_epoch) --met;
  const bool copy_was_before =
      copy_was_first && met && second.block_barriers[met - 1].epoch > accesses.second_epoch;
  const bool met_since =
      second_was_first || copy_was_before ||
      (met && accesses.first_is_operation && first.block_barriers[met - 1].epoch >= accesses.first_epoch);
  // Where threads wait for mbarriers, these explain more, unless the threads have met since.
  if ((first.last_seen.barrier || second.last_seen.barrier) && !met_since) return "";
  if (!met) return "the two threads have not met in a __syncthreads" + explain_absence(first, second);
  const std::string where =
      "the last __syncthreads of both (" + own_place(second.block_barriers[met - 1].where) + ")";
  if (met_since) {
    const bool of_second = second_was_first || copy_was_before;
    const Thread& issuer = of_second ? second : first;
    const uint32_t issued_in = of_second ? accesses.second_epoch : accesses.first_epoch;
    const std::string& what = of_second ? accesses.second_what : accesses.first_what;
    const Thread::Order& barrier = issuer.block_barriers[met - 1];
    const bool is_copy = what == "cp.async";
    std::string late = is_copy ? explain_late_commit(issuer, issued_in, accesses.offset) : "";
    if (late.empty() && is_copy) late = explain_open_copies(issuer);
    if (!late.empty()) return late;
    const bool is_read_early = copy_was_first || (accesses.reads_early && accesses.first_writes);
    const std::string other = is_copy && is_read_early ? accesses.landed_and_unread() : "";
    if (!other.empty())
      return "no wait has covered this cp.async, and " + other +
             ", whose copies have landed, is read by nobody: should the " +
             (accesses.first_writes ? accesses.second_what : accesses.first_what) + " read another slot?";
    return where + " comes after the " + what + " is issued, but " +
           (what == "wgmma"
                ? explain_wgmma_wait(issuer, issued_in, barrier)
                : "no wait had covered that by then" + (is_copy ? explain_copy_wait(issuer, barrier) : ""));
  }
  // A copy that is issued before the read, and lands where the reader still wants what was there.
  if (!accesses.reads_early && !accesses.first_writes && accesses.second_is_operation &&
      accesses.second_epoch) {
    const size_t both = std::min(first.block_barriers.size(), second.block_barriers.size());
    size_t between = met;
    while (between < both && first.block_barriers[between].epoch < accesses.first_epoch) ++between;
    if (between > met)
      return "the " + accesses.second_what + " is issued before the __syncthreads of both (" +
             own_place(second.block_barriers[met].where) + "), and the " + accesses.first_what +
             " that still wants what was there comes after it: should it fill another slot?";
  }
  if (first.warp == second.warp && !accesses.first_is_operation && !accesses.second_is_operation)
    return where +
           print(
               " comes before both; these are lanes of warp %u, which do not run in step: a __syncwarp, at "
               "least, must come between",
               first.warp->index) +
           (accesses.reads_of_other_warps()
                ? ", or a __syncthreads if other warps go on writing what the line reads"
                : "");
  const bool is_copy = accesses.first_what == "cp.async" || accesses.second_what == "cp.async";
  return where + " comes before both: another must come between" +
         (is_copy && !accesses.are_writes ? ", or should the cp.async fill another slot?" : "");
}

/// The mask of the multicast that writes the byte in `target`; nothing where another copy does.
std::string explain_mask(const Thread& writer, const Block& target, const RaceChecker::Unordered& accesses) {
  if (accesses.second_what != "TMA multicast") return "";
  for (auto load = writer.last_loads.rbegin(); load != writer.last_loads.rend(); ++load)
    if (load->mask && load->barrier->block == &target && load->offset <= accesses.offset &&
        accesses.offset < load->offset + load->bytes)
      return ", with the mask " + binary(load->mask, *writer.block);
  return "";
}

/// The last load of a thread that brings the byte to the block; null if none does.
const Thread::CountedLoad* load_over(const Thread& sender, const Block& target, size_t offset) {
  for (auto load = sender.last_loads.rbegin(); load != sender.last_loads.rend(); ++load)
    if (load->barrier->block == &target && load->offset <= offset && offset < load->offset + load->bytes)
      return &*load;
  return nullptr;
}

/// "smem.b[0].panels[1]", of "smem.b[0].panels[1][32][0]": without row and column.
std::string without_row(std::string name) {
  for (int index = 0; index < 2; ++index) name.erase(std::min(name.size(), name.rfind('[')));
  return name;
}

/// The bytes of the array that holds this one, as far as they have names: where it begins and ends.
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

/// "smem.b[0].panels[1][32][0] to [63][63]": of the array that holds a byte the first place to which nobody
/// has brought anything; nothing if there is none.
std::string not_brought(const Cluster& cluster, SharedLayout& layout, const RaceChecker& races,
                        const Block& target, size_t offset) {
  constexpr size_t kStep = 16;
  const auto [begin, array_end] = array_around(layout, target.shared.bytes(), offset);
  const auto is_brought = [&](size_t at) {
    if (races.is_written(target.ids.rank_in_cluster, at)) return true;
    for (const auto& block : const_cast<Cluster&>(cluster).blocks())
      for (const Warp& warp : block->warps)
        for (const Thread* lane : warp.lanes)
          if (lane && load_over(*lane, target, at)) return true;
    return false;
  };
  size_t first = begin;
  while (first < array_end && is_brought(first)) first += kStep;
  if (first >= array_end) return "";
  size_t end = first;
  while (end < array_end && !is_brought(end)) end += kStep;
  return layout.name_of(first) + " to " +
         layout.name_of(end - 1).substr(without_row(layout.name_of(first)).size());
}

/// A TMA store reads where another warp writes, and what its own warp has written is as large and lies beside
/// that in the same array: the place of the source is another warp's.
std::string explain_source_of_store(const Thread& writer, const Thread& reader,
                                    const RaceChecker::Unordered& accesses) {
  if (writer.warp == reader.warp || writer.block != reader.block) return "";
  const Unobserved unobserved;
  Cluster& cluster = reader.cluster;
  SharedLayout& layout = cluster.layout();
  const auto store =
      std::find_if(reader.last_stores.rbegin(), reader.last_stores.rend(), [&](const Thread::StoredBox& one) {
        return one.offset <= accesses.offset && accesses.offset < one.offset + one.bytes;
      });
  if (store == reader.last_stores.rend()) return "";
  const size_t end_of_store = store->offset + store->bytes;
  const auto [begin, end] = array_around(layout, reader.block->shared.bytes(), store->offset);
  if (end_of_store > end) return "";
  size_t first = end, last = begin;  // of what its warp has written
  constexpr size_t kStep = 16;
  size_t own = 0;
  for (size_t at = begin; at < end; at += kStep) {
    const std::optional<unsigned> who = cluster.races()->last_writer(reader.block->ids.rank_in_cluster, at);
    const auto is_own = [&](const Thread* lane) { return lane && who && lane->number == *who; };
    if (std::none_of(std::begin(reader.warp->lanes), std::end(reader.warp->lanes), is_own)) continue;
    if (store->offset <= at && at < end_of_store) return "";
    first = std::min(first, at);
    last = at + kStep;
    own += kStep;
  }
  if (own != store->bytes || last - first != own) return "";
  const std::string array = without_row(layout.name_of(first));
  const auto name_of_bytes = [&](size_t from, size_t to) {
    return layout.name_of(from) + " to " + layout.name_of(to - 1).substr(array.size());
  };
  return print("warp %u stores ", reader.warp->index) + name_of_bytes(store->offset, end_of_store) +
         print(", where warp %u writes, and not what it has written itself, ", writer.warp->index) +
         name_of_bytes(first, last) + ": is the row of its source another warp's?";
}

/// Two blocks send to the same place of a block, and another part of the array gets nothing: the place lacks
/// what tells the one block from the other.
std::string explain_loads_to_one_place(const Thread& first, const Thread& second,
                                       const RaceChecker::Unordered& accesses) {
  if (accesses.first_what != "TMA multicast" || accesses.second_what != accesses.first_what ||
      first.block == second.block)
    return "";
  Cluster& cluster = first.cluster;
  const Block& target = *cluster.blocks()[accesses.block];
  const Thread::CountedLoad *const one = load_over(first, target, accesses.offset), *const other = load_over(
                                                                                        second, target,
                                                                                        accesses.offset);
  if (!one || !other || one->barrier != other->barrier || one->offset != other->offset) return "";
  const Unobserved unobserved;
  const std::string left = not_brought(cluster, cluster.layout(), *cluster.races(), target, one->offset);
  if (left.empty()) return "";
  return print("both bring %u bytes to the same place of ", one->bytes) + describe(target) +
         ", and nobody brings anything to " + left +
         ": does the place in shared memory lack the offset of the block's own part?";
}

/// Who reads has waited for nothing, or for another barrier, and the warp that writes arrives somewhere.
std::string explain_no_wait(const Thread& writer, const Thread& reader) {
  const Mbarrier* const last = reader.last_seen.barrier;
  for (const auto& barrier : reader.block->mbarriers) {
    if (last && (!barrier->phases_seen.empty() || !barrier->waiting.empty())) continue;
    for (const auto* arrivals : {&barrier->earlier_arrivals, &barrier->last_arrivals, &barrier->arrivals})
      for (const Mbarrier::Arrival& arrival : *arrivals)
        if (!arrival.bytes && arrival.thread->warp == writer.warp && std::strcmp(barrier->end, "empty") != 0)
          return (last ? "the reader waited last for " + name_of(*last)
                       : std::string("the reader has waited for nothing")) +
                 ", and " + who_and_where(*arrival.thread, *barrier, arrival) +
                 (last ? ", for which no thread has waited" : "");
  }
  return "";
}

/// The reader has waited until a slot was full, and its warpgroup that fills it does so without waiting.
std::string explain_writer_ahead(const Thread& writer, const Thread& reader) {
  const Mbarrier* const full = reader.last_seen.barrier;
  const Mbarrier* const empty = full ? other_end(*full) : nullptr;
  if (!empty || std::strcmp(full->end, "full") != 0 || writer.block != reader.block) return "";
  // Of another pipeline than the one that the writer fills.
  const Block& block = *writer.block;
  const size_t first = writer.ids.rank / kWarpgroupThreads * kWarpgroupWarps;
  const auto fills = [&](const Warp& warp) {
    return std::any_of(std::begin(warp.lanes), std::end(warp.lanes),
                       [&](const Thread* lane) { return lane && has_ever_arrived(*full, *lane); });
  };
  const auto end = std::min(first + kWarpgroupWarps, block.warps.size());
  if (std::none_of(block.warps.begin() + first, block.warps.begin() + end, fills)) return "";
  uint64_t seen = 0;
  for (size_t i = 0; i < empty->phases_seen.size(); ++i)
    if (i / kWarpgroupThreads == writer.ids.rank / kWarpgroupThreads)
      seen = std::max(seen, empty->phases_seen[i]);
  uint64_t arrivals = 0;  // of its warp: it has done its part in so many phases
  for (const Thread* const lane : writer.warp->lanes)
    if (lane && has_ever_arrived(*full, *lane))
      arrivals = std::max<uint64_t>(arrivals, full->times_arrived[lane->number]);
  // What the reader reads after the phase, the warp has not written before its arrival.
  const bool reads_after = reader.last_seen.phase >= full->phase && arrivals >= full->phase;
  const bool is_ahead = full->phase > seen + (reads_after ? 0 : 1);
  if (!is_ahead) return "";
  return describe(writer) + " writes again without waiting for " + name_of(*empty) + ": " +
         (full->phase == 1 ? "1 phase of " + name_of(*full) + " has"
                           : print("%llu phases of ", static_cast<unsigned long long>(full->phase)) +
                                 name_of(*full) + " have") +
         print(" ended, and it has waited for %llu of ", static_cast<unsigned long long>(seen)) +
         name_of(*empty);
}

/// Those that ended the phase before; null if they are not kept any more.
const std::vector<Mbarrier::Arrival>* arrivals_of(const Thread::Seen& seen) {
  if (seen.barrier->phase == seen.phase) return &seen.barrier->last_arrivals;
  if (seen.barrier->phase == seen.phase + 1) return &seen.barrier->earlier_arrivals;
  return nullptr;
}

/// " with the arrivals of warps 0, 4 (...)". Where threads arrived, too, not of the bytes.
std::string with_arrivals_of(const Thread::Seen& seen) {
  const auto* const arrivals = arrivals_of(seen);
  if (!arrivals) return "";
  const auto threads = with_bytes(*arrivals, false);
  return " with the arrivals of" + list(threads.empty() ? *arrivals : threads);
}

/// The thread has released a slot more often than a thread of its warpgroup has waited for it; else nothing.
std::string explain_unread_release(const Mbarrier& empty, const Thread& thread) {
  const Mbarrier& full_there = *other_end(empty);
  const auto& all = thread.block->mbarriers;
  const auto full =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->offset == full_there.offset; });
  if (full == all.end() || !has_ever_arrived(empty, thread)) return "";
  uint64_t waits = 0;
  for (const Warp& warp : thread.block->warps)
    for (const Thread* const lane : warp.lanes)
      if (lane && is_of_warpgroup(*lane, thread) && !(*full)->waits.empty())
        waits = std::max(waits, (*full)->waits[lane->ids.rank]);
  if (waits >= empty.times_arrived[thread.number]) return "";
  return "; " + names_of({&thread}) + " arrives there, and no thread of its warpgroup has waited for " +
         name_of(**full) + (waits ? " as often" : "") +
         ": should it release a slot that it has not waited for?";
}

/// ", called at gemm.cuh:121": of a place in a helper that lies in another file than its call; else nothing.
std::string called_at(Location where) {
  const OwnLine own = own_line(where);
  const auto file_of = [](const std::string& place) { return place.substr(0, place.find(':')); };
  const HelperCall call = call_of_helper(where);
  const std::string caller = call.file.substr(call.file.rfind('/') + 1);
  const bool is_helper =
      call.line && file_of(to_string(where)) == file_of(own.place) && caller != file_of(own.place);
  return is_helper ? ", called at " + caller + ":" + std::to_string(call.line) : "";
}

/// Those who arrived are of blocks to which the multicasts that fill the slot do not go: which; else nothing.
std::string explain_strangers(const Mbarrier& empty, const std::vector<Mbarrier::Arrival>& arrivals) {
  uint32_t receivers = 0, strangers = 0;
  for (const Mbarrier* end : {&empty, other_end(empty)})
    for (const auto* all : {&end->earlier_arrivals, &end->last_arrivals, &end->arrivals})
      for (const Mbarrier::Arrival& one : *all) receivers |= one.multicast_mask;
  if (!receivers) return "";
  Cluster& cluster = arrivals.front().thread->cluster;
  for (const Mbarrier::Arrival& one : arrivals) strangers |= 1u << one.thread->block->ids.rank_in_cluster;
  strangers &= ~receivers;
  if (!strangers) return "";
  return "; the multicasts that fill the slot do not go to " + names_of_blocks(cluster, strangers) +
         ": should " + (strangers & (strangers - 1) ? "these release" : "it release") +
         " the slot of another block?";
}

/// Two warpgroups have passed the wait for one phase of the full slot, and those who ended the phase of the
/// empty one are of one of them: the slot may be meant for these alone. Else nothing.
std::string explain_two_readers(const Thread::Seen& writers, const Thread& reader,
                                const std::vector<Mbarrier::Arrival>& arrivals) {
  const Mbarrier& full = *other_end(*writers.barrier);
  const uint64_t phase = writers.phase;  // as many have been filled as were emptied
  const auto has_waited = [&](const Thread& thread) {
    return thread.block == full.block && !full.waits.empty() && full.waits[thread.ids.rank] &&
           full.phases_seen[thread.ids.rank] >= phase;
  };
  std::vector<const Thread*> own, others;
  for (const Warp& warp : reader.block->warps)
    for (const Thread* const lane : warp.lanes) {
      if (!lane || !has_waited(*lane)) continue;
      const bool arrives = std::any_of(arrivals.begin(), arrivals.end(),
                                       [&](const auto& one) { return is_of_warpgroup(*one.thread, *lane); });
      if (is_of_warpgroup(*lane, reader))
        own.push_back(lane);
      else if (arrives)
        others.push_back(lane);
    }
  if (own.empty() || others.empty()) return "";
  const std::string who = names_of(own), those = names_of(others);
  const Mbarrier::Wait* const wait =
      full.last_waits.empty() ? nullptr : &full.last_waits[own.front()->ids.rank];
  return "; " + who + (are_several(who) ? " have" : " has") + " waited for " + name_of(full) +
         (wait && wait->where.line ? " (" + own_place(wait->where) + ")" : "") + ", as " + those +
         (are_several(those) ? " have" : " has") + ": is this slot for " + those +
         " alone, or must the count include both?";
}

/// More phases have ended than any thread has waited for, and threads of one warpgroup ended the last two by
/// one line, each thread one of them: half a sentence; or nothing.
std::string explain_phases_ahead(const Mbarrier& barrier) {
  const auto& seen = barrier.phases_seen;
  const uint64_t waited_for = seen.empty() ? 0 : *std::max_element(seen.begin(), seen.end());
  if (barrier.phase < waited_for + 2 || barrier.last_arrivals.empty()) return "";
  const Mbarrier::Arrival& last = barrier.last_arrivals.back();
  for (const auto* arrivals : {&barrier.earlier_arrivals, &barrier.last_arrivals})
    for (const Mbarrier::Arrival& one : *arrivals)
      if (!(one.where == last.where) || !is_of_warpgroup(*one.thread, *last.thread)) return "";
  return explain_count(barrier, barrier.earlier_arrivals, barrier.last_arrivals);
}

/// Where nobody of the reader's block, or warpgroup, arrived in the phase of the empty slot that the writer
/// waited for: what this did with, and its count; else nothing.
std::string explain_unneeded(const Thread::Seen& seen, const Thread& reader) {
  const Unobserved unobserved;
  const Mbarrier& barrier = *seen.barrier;
  const auto* kept = arrivals_of(seen);
  if (!kept || !other_end(barrier) || barrier.is_full) return "";
  const std::vector<Mbarrier::Arrival> arrivals = with_bytes(*kept, false);
  bool block_came = false;
  for (const Mbarrier::Arrival& one : arrivals) {
    if (is_of_warpgroup(*one.thread, reader)) return "";
    block_came |= one.thread->block == reader.block;
  }
  if (arrivals.empty()) return "";
  std::string why;
  for (const Mbarrier::Arrival& one : arrivals)
    if (why.empty()) why = explain_unread_release(barrier, *one.thread);
  if (why.empty()) why = explain_strangers(barrier, arrivals);
  if (why.empty()) why = explain_two_readers(seen, reader, arrivals);
  const unsigned warp = reader.warp->index / kWarpgroupWarps * kWarpgroupWarps;
  return " without an arrival of " +
         (block_came ? print("warps %u-%u, which read", warp, warp + kWarpgroupWarps - 1)
                     : describe(*reader.block) + ", which reads") +
         ": its count is " + print("%u (", barrier.expected) + place_of(origin_of(barrier)) +
         "), made up by" + list(arrivals) + called_at(arrivals.front().where) + why;
}

/// The reader's warpgroup arrives at a barrier of the writer's block for which nobody has ever waited.
std::string explain_unheard(const Thread& first, const Thread& second,
                            const RaceChecker::Unordered& accesses) {
  if (accesses.first_writes || first.block == second.block) return "";
  for (const bool of_its_warp : {true, false})  // which says more than another warp of its warpgroup
    for (const auto& barrier : second.block->mbarriers) {
      if (!barrier->phases_seen.empty() || !barrier->waiting.empty()) continue;
      for (const auto* arrivals : {&barrier->earlier_arrivals, &barrier->last_arrivals, &barrier->arrivals})
        for (const Mbarrier::Arrival& one : *arrivals) {
          const bool fits =
              of_its_warp ? one.thread->warp == first.warp : is_of_warpgroup(*one.thread, first);
          if (!one.bytes && fits)
            return describe(*first.block) +
                   print(" warp %u, %s, arrives at ", one.thread->warp->index,
                         of_its_warp ? "which reads" : "of the warpgroup that reads") +
                   name_of(*barrier) + " of " + describe(*second.block) + " (" + own_place(one.where) +
                   "), for which no thread has waited";
        }
    }
  return "";
}

/// The writer waited until one slot of a pipeline was empty, and the reader until another was full.
std::string explain_other_slot(const Thread::Seen& writers, const std::optional<Thread::Seen>& readers) {
  if (!readers || !readers->barrier) return "";
  const Mbarrier &one = *writers.barrier, &other = *readers->barrier;
  const bool are_two_slots = other_end(one) && other_end(other) && !one.is_full && other.is_full &&
                             one.initialised_at == other.initialised_at && one.block == other.block &&
                             one.slot != other.slot;
  return are_two_slots ? "; the reader, for " + name_of(other) + ": these are two slots" : "";
}

/// A copy fills a slot again, and its reader has waited for all phases that have ended: then the loader is
/// ahead, which has not waited as often until the slot was empty; likewise where two copies fill the slot.
/// Half a sentence; nothing if it has waited.
std::string explain_loader_ahead(const Thread& loader, const Mbarrier& full, uint64_t seen_by_reader,
                                 bool are_writes = false) {
  const Mbarrier* const empty = other_end(full);
  if (!empty || !full.is_full || !full.phase || seen_by_reader < full.phase || loader.block != full.block)
    return "";
  uint64_t seen = 0, waits = 0;  // of its warp, of which one lane may wait for all
  for (const Thread* const lane : loader.warp->lanes) {
    if (!lane || empty->waits.empty()) continue;
    seen = std::max(seen, empty->phases_seen[lane->ids.rank]);
    waits = std::max(waits, empty->waits[lane->ids.rank]);
  }
  if (seen >= full.phase) return "";
  return describe(loader) + " fills the slot again, and has " +
         (waits ? "not waited for phase " + std::to_string(full.phase - 1) + " of "
                : std::string("never waited for ")) +
         name_of(*empty) +
         (are_writes ? ""
                     : "; the reader has waited for phase " + std::to_string(full.phase - 1) + " of " +
                           name_of(full) + ", and reads what that has brought");
}

/// A copy of the writer's that counts its bytes at the barrier of this note is read before they have landed.
std::string explain_copy_not_waited_for(const Thread& reader, uint32_t epoch, const Thread& writer,
                                        const RaceChecker::Unordered& accesses) {
  const std::string& note = accesses.note_of_writer;
  const Mbarrier* completes_on = nullptr;
  for (const auto& barrier : reader.block->mbarriers)
    if (" for " + name_of(*barrier) == note) completes_on = barrier.get();
  if (!completes_on) return "";
  if (const std::string slot = explain_slot_of_load(writer, accesses.offset, *completes_on); !slot.empty())
    return slot;
  const uint64_t seen = completes_on->phases_seen.empty() ? 0 : completes_on->phases_seen[reader.ids.rank];
  if (const std::string ahead = explain_loader_ahead(writer, *completes_on, seen); !ahead.empty()) {
    accesses.retell("overwritten while it may still be read: no barrier or wait orders the two");
    return ahead;
  }
  for (const auto& operation : reader.cluster.in_flight()) {
    const auto* copy = dynamic_cast<const CountedCopy*>(operation.get());
    if (copy && copy->barrier == completes_on && copy->phase < seen)
      return print("phase %llu of ", static_cast<unsigned long long>(copy->phase)) + name_of(*completes_on) +
             print(
                 ", which the reader has waited for, has ended without all bytes: %lld were expected, too "
                 "few",
                 static_cast<long long>(completes_on->last_expected_bytes));
  }
  const std::optional<Thread::Seen> before = seen_in(reader, epoch);
  if (!before || before->barrier == completes_on) return "";
  if (const std::string last = explain_last_wait(reader, epoch); !last.empty())
    return "the reader must wait for " + name_of(*completes_on) + "; " + last;
  return "the reader must wait for " + name_of(*completes_on) + "; it has waited for nothing";
}

}  // namespace

std::string explain_box_over_rows(Cluster& cluster, const CountedCopy& copy) {
  const Unobserved unobserved;
  SharedLayout& layout = cluster.layout();
  const auto explain = [&](const Thread::CountedLoad& load, size_t shared_bytes) -> std::string {
    if (load.barrier != copy.barrier || load.rows < 2) return "";
    const size_t row_bytes = load.bytes / load.rows;
    const auto [begin, end] = array_around(layout, shared_bytes, load.offset);
    const std::string array = without_row(layout.name_of(begin));
    const size_t room = end - load.offset;
    if (array.empty() || begin == load.offset || load.bytes <= room || (load.offset - begin) % row_bytes ||
        room % row_bytes || layout.name_of(begin + row_bytes) != array + "[1][0]")
      return "";
    const auto bytes_of = [&](const Location& where, uint32_t bytes) {
      return where == load.where ? static_cast<int64_t>(room) : int64_t{bytes};
    };
    int64_t left = copy.barrier->last_expected_bytes - bytes_of(copy.where, copy.bytes());
    for (const Mbarrier::Arrival& arrival : with_bytes(copy.barrier->last_arrivals, true))
      left -= bytes_of(arrival.where, arrival.bytes);
    if (left < 0 || left % static_cast<int64_t>(room)) return "";
    return print("a box of %u rows%s begins at ", load.rows,
                 load.where == copy.where ? "" : (", loaded at " + own_place(load.where) + ",").c_str()) +
           array + print("[%zu], and ", (load.offset - begin) / row_bytes) + array +
           print(" has %zu rows: is the box of the tensor map too large?", (end - begin) / row_bytes);
  };
  for (const auto& block : cluster.blocks())
    for (const Warp& warp : block->warps)
      for (const Thread* lane : warp.lanes) {
        if (!lane) continue;
        for (const Thread::CountedLoad& load : lane->last_loads)
          if (const std::string text = explain(load, block->shared.bytes()); !text.empty()) return text;
      }
  return "";
}

std::string explain_box_over_end(Thread& thread, const TmaBox& box, const void* shared) {
  constexpr size_t kStep = 16;
  SharedMemory& memory = thread.block->shared;
  if (!memory.contains(shared) || box.is_bulk) return "";
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(shared) - memory.generic());
  if (offset + box.shared_bytes() <= memory.bytes()) return "";
  const Unobserved unobserved;
  SharedLayout& layout = thread.cluster.layout();
  const std::string over_end =
      print(" reaches over the end of the block's %zu bytes of shared memory: a box of %u rows of %u bytes ",
            memory.bytes(), box.rows(), box.row_bytes());
  // Of the array there, or of the last one before whose rows are as long as the box's.
  for (size_t at = offset;;) {
    const auto [begin, end] = array_around(layout, memory.bytes(), at);
    const std::string array = without_row(layout.name_of(begin));
    const size_t bytes = end - begin, row = (offset - begin) / box.row_bytes();
    const bool has_rows = bytes >= box.row_bytes() && bytes % box.row_bytes() == 0 && !array.empty();
    if (has_rows && begin == offset && bytes < box.bytes())
      return over_end + print("(%u bytes) goes to ", box.bytes()) + array +
             print(", which has room for %zu (%zu bytes): is the box of the tensor map too large?",
                   bytes / box.row_bytes(), bytes);
    if (has_rows && layout.name_of(begin + box.row_bytes()) == array + "[1][0]" &&
        (offset - begin) % box.row_bytes() == 0)
      return over_end + (offset < end ? "begins at " : "begins where ") + array + print("[%zu]", row) +
             (offset < end ? "" : " would be") + ", and " + array +
             print(" has %zu rows: is ", bytes / box.row_bytes()) +
             (box.bytes() > bytes ? "the box of the tensor map" : "an index") + " too large?";
    if (begin < kStep) return "";
    at = begin - kStep;
  }
}

namespace {

/// "smem.q", of "smem.q.panels[0][1][8]" and "smem.q[2][8]".
std::string outermost_array(const std::string& name) {
  const size_t member = name.find('.');
  return name.substr(0, name.find_first_of(".[", member == name.npos ? 0 : member + 1));
}

/// The descriptor of a wgmma begins in one array, and what it reads lies in another: half a sentence. Nothing
/// if an operand of the same epoch that begins in the array of the byte reads it, too.
std::string explain_operand_over_end(const Thread& reader, uint32_t epoch, size_t offset) {
  const Unobserved unobserved;
  SharedLayout& layout = reader.cluster.layout();
  const auto array_of = [&](size_t at) { return outermost_array(layout.name_of(at)); };
  const std::string array = array_of(offset);
  if (array.empty()) return "";
  std::string text;
  for (const auto& one : reader.block->warpgroups[reader.ids.rank / kWarpgroupThreads].operands_read) {
    if (!epoch || one.epoch != epoch) continue;
    if (offset < one.begin || one.end <= offset || reader.block->shared.bytes() <= one.start) continue;
    const std::string meant = array_of(one.start);
    if (meant == array || meant.empty() || offset < one.start) return "";
    constexpr size_t kStep = 16;
    size_t end = one.start / kStep * kStep;
    while (end < offset && array_of(end) == meant) end += kStep;
    text = print("the wgmma reads byte %zu behind the end of ", offset - end) + meant + ", in " + array +
           ": is the start address of its descriptor too large?";
  }
  return text;
}

/// Does the barrier speak of slots that loads fill, while a thread writes what a TMA store reads? Such a
/// place is no slot of that ring, and no arrival there hands it over.
bool speaks_of_other_places(const Mbarrier& barrier, const RaceChecker::Unordered& accesses) {
  const Mbarrier* const other = other_end(barrier);
  if (!other || !accesses.note_of_writer.empty()) return false;
  if ((accesses.first_writes ? accesses.second_what : accesses.first_what) != "TMA store") return false;
  const Mbarrier& full = barrier.is_full ? barrier : *other;
  return full.expected_bytes || full.last_expected_bytes;
}

/// One thread issues two loads to one place, and arrives nowhere between: both are of one slot.
bool are_loads_of_one_slot(const Thread& thread, const RaceChecker::Unordered& accesses) {
  if (accesses.first_what.rfind("TMA ", 0) != 0 || accesses.second_what.rfind("TMA ", 0) != 0) return false;
  if (!accesses.first_epoch || !accesses.second_epoch) return false;
  const auto [from, to] = std::minmax(accesses.first_epoch, accesses.second_epoch);
  for (const auto& block : thread.cluster.blocks())
    for (const auto& barrier : block->mbarriers)
      for (const auto* arrivals : {&barrier->earlier_arrivals, &barrier->last_arrivals, &barrier->arrivals})
        for (const Mbarrier::Arrival& one : with_bytes(*arrivals, false))
          if (one.thread == &thread && from <= one.epoch && one.epoch < to) return false;
  return true;
}

}  // namespace

namespace {

/// Of the thread's proxy fences, of which the last comes behind an access: the last one before that, and the
/// first one behind it, which comes behind an arrival, too. In a loop both may be one line.
std::string explain_late_fence(const Thread& thread, uint32_t epoch, const Mbarrier::Arrival& arrival,
                               const std::string& comes_before) {
  const auto& fences = thread.proxy_fences;
  const Thread::Order *before = nullptr, *after = nullptr;
  for (const Thread::Order& one : fences)
    if (one.epoch < epoch)
      before = &one;
    else if (!after)
      after = &one;
  const bool is_behind = after && arrival.thread == &thread && after->epoch >= arrival.epoch;
  const std::string late = is_behind ? "comes after that arrival" : "comes too late";
  if (!before && fences.size() == Thread::kFencesKept)  // the first ones are not kept
    return "; its last one (" + own_place(fences.back().where) + ") comes too late";
  if (!before) return "; its first one (" + own_place(after->where) + ") " + late;
  const std::string one = own_place(before->where), other = own_place(after->where);
  return "; the one at " + one + " " + comes_before +
         (one == other ? ", and again only after that arrival" : ", and the next, at " + other + ", " + late);
}

}  // namespace

std::string explain_hand_over(const Thread& first, const Thread& second,
                              const RaceChecker::Unordered& accesses) {
  if (!accesses.are_writes && (accesses.first_writes ? accesses.second_what : accesses.first_what) == "wgmma")
    if (std::string text = explain_operand_over_end(
            accesses.first_writes ? second : first,
            accesses.first_writes ? accesses.second_epoch : accesses.first_epoch, accesses.offset);
        !text.empty())
      return text;
  if (accesses.are_writes)
    if (std::string text = explain_loads_to_one_place(first, second, accesses); !text.empty()) return text;
  if (accesses.are_writes && !accesses.note_of_writer.empty())
    if (const Mbarrier* const empty = empty_end_of(*second.block, accesses.note_of_writer))
      if (const Mbarrier& full = *other_end(*empty); full.is_full)
        if (std::string text = explain_loader_ahead(second, full, full.phase, /*are_writes=*/true);
            !text.empty())
          return text;
  if (accesses.are_writes && &first == &second && are_loads_of_one_slot(first, accesses))
    return "should each fill a part of its own?";
  const uint32_t first_epoch = accesses.first_epoch;
  const bool first_is_wgmma = accesses.first_is_operation && accesses.first_what == "wgmma";
  const auto is_later_of_first = [&](const Mbarrier::Arrival& arrival) {
    if (first_is_wgmma) return arrival.wgmma_in_flight && is_of_warpgroup(*arrival.thread, first);
    return arrival.thread == &first && first_epoch && arrival.epoch >= first_epoch;
  };
  // The writer relies on the slot's own barrier, or on the one that it waited for last.
  WaitedFor hand_over;
  if (const Mbarrier* const empty =
          accesses.first_writes ? nullptr : empty_end_of(*second.block, accesses.note_of_writer))
    hand_over = find_waited_for(second, accesses.second_epoch, is_later_of_first, empty);
  if (const std::optional<Thread::Seen> last = seen_in(second, accesses.second_epoch);
      !hand_over.arrival && last && last->barrier)
    hand_over = find_waited_for(second, accesses.second_epoch, is_later_of_first, last->barrier);
  if (!hand_over.arrival) hand_over = find_waited_for(second, accesses.second_epoch, is_later_of_first);
  if (accesses.first_what == "mbarrier.init" && accesses.second_what == "mbarrier.init")
    return "one thread alone must initialise a barrier";
  if (accesses.first_what == "mbarrier.init")
    return first.block == second.block
               ? "a __syncthreads must come between the initialisation and the use by other threads"
               : "a cluster_sync must come between the initialisation and the use by other blocks";
  if (!accesses.lacks_fence)
    for (const Thread* const thread : {&second, &first})
      if (std::string text = explain_restarted_ring(*thread->block, thread); !text.empty()) return text;
  if (accesses.lacks_fence) {
    const Thread::Order fence = first.proxy_fences.empty() ? Thread::Order{} : first.proxy_fences.back();
    std::string text =
        print("the thread that %s, or one that has met it since, must execute fence.proxy.async after that",
              accesses.first_writes ? "writes" : "reads");
    if (hand_over.arrival)
      text += ", and before it arrives at " + name_of(*hand_over.barrier) + " (" +
              own_place(hand_over.arrival->where) + ")";
    if (!fence.epoch) return text + "; it has executed none";
    const char* const before = accesses.first_writes ? "comes before the write" : "comes before the read";
    if (fence.epoch < first_epoch || !hand_over.arrival)
      return text + "; its last one (" + own_place(fence.where) + ") " +
             (fence.epoch < first_epoch     ? before
              : accesses.first_is_operation ? "comes before it has waited for the " + accesses.first_what
                                            : "comes too late");
    return text + explain_late_fence(first, first_epoch, *hand_over.arrival, before);
  }
  if (!accesses.are_writes && !accesses.reads_early) {
    if (std::string text = accesses.first_writes ? explain_store_before_write(first, second, accesses) : "";
        !text.empty()) {
      accesses.retell("may be read before it is written: no barrier or wait orders the two");
      return text;
    }
    const bool first_stores = !accesses.first_writes;
    if ((first_stores ? accesses.first_what : accesses.second_what) == "TMA store")
      if (std::string text =
              first_stores
                  ? explain_barrier_before_store_wait(first, first_epoch, second, accesses.second_epoch)
                  : explain_barrier_before_store_wait(second, accesses.second_epoch, first, first_epoch);
          !text.empty())
        return text;
  }
  if (hand_over.arrival && accesses.first_is_operation &&
      speaks_of_other_places(*hand_over.barrier, accesses))
    hand_over = {};
  if (hand_over.arrival) {
    if (accesses.first_is_operation)
      return who_and_where(*hand_over.arrival->thread, *hand_over.barrier, *hand_over.arrival) +
             " before it has waited for its " + accesses.first_what +
             explain_useless_wait(first, accesses.first_what, first_epoch, second);
    if (std::string weak = explain_weak_arrival(hand_over, first, second); !weak.empty()) return weak;
  }
  if (accesses.second_is_operation && !accesses.reads_early && accesses.second_epoch) {
    // The second was issued before the first came, and goes on.
    const auto is_later_of_second = [&](const Mbarrier::Arrival& arrival) {
      return arrival.thread == &second && arrival.epoch >= accesses.second_epoch;
    };
    WaitedFor back = find_waited_for(first, first_epoch, is_later_of_second);
    // Where the copy says what it fills, the slot's own barrier: its writer may have waited there again.
    const Mbarrier* const empty = empty_end_of(*second.block, accesses.note_of_writer);
    if (empty && back.arrival && empty != back.barrier)
      for (const auto* arrivals : {&empty->earlier_arrivals, &empty->last_arrivals, &empty->arrivals})
        for (const Mbarrier::Arrival& one : *arrivals)
          if (back.barrier != empty && is_later_of_second(one)) back = {empty, &one, nullptr};
    if (back.arrival && !speaks_of_other_places(*back.barrier, accesses))
      return who_and_where(second, *back.barrier, *back.arrival) + " before it has waited for its " +
             accesses.second_what +
             explain_useless_wait(second, accesses.second_what, accesses.second_epoch, first);
  }
  const Thread& reader = accesses.first_writes ? second : first;
  const uint32_t epoch_of_reader = accesses.first_writes ? accesses.second_epoch : accesses.first_epoch;
  if (accesses.reads_early &&
      (accesses.first_writes ? accesses.second_what : accesses.first_what) == "TMA store")
    if (std::string text = explain_source_of_store(accesses.first_writes ? first : second, reader, accesses);
        !text.empty())
      return text;
  if (accesses.reads_early && accesses.first_writes)
    if (std::string text = explain_store_before_write(first, second, accesses); !text.empty()) return text;
  if (!accesses.reads_early &&
      (accesses.first_writes ? accesses.second_what : accesses.first_what) == "TMA store") {
    const Thread& writer = accesses.first_writes ? first : second;
    if (reader.last_store_wait.epoch <= epoch_of_reader)  // the wait may come later, too late for this writer
      if (std::string text = explain_writer_ahead(writer, reader); !text.empty()) return text;
    if (std::string text =
            explain_store_wait(reader, epoch_of_reader, accesses.first_writes ? first : second);
        !text.empty())
      return text;
  }
  const bool reader_is_known = accesses.first_writes ? !accesses.second_is_operation || accesses.second_epoch
                                                     : !accesses.first_is_operation || accesses.first_epoch;
  if (accesses.reads_early && !accesses.note_of_writer.empty() && reader_is_known)
    if (std::string text = explain_copy_not_waited_for(reader, epoch_of_reader,
                                                       accesses.first_writes ? first : second, accesses);
        !text.empty())
      return text;
  if (accesses.reads_early && accesses.first_writes && !accesses.first_is_operation && first_epoch &&
      !hand_over.arrival && reader_is_known) {
    const WaitedFor before = find_waited_for(
        second, accesses.second_epoch,
        [&](const Mbarrier::Arrival& one) { return one.thread == &first && one.epoch < first_epoch; });
    if (before.arrival && before.barrier == second.last_seen.barrier)
      return who_and_where(first, *before.barrier, *before.arrival) + ", for which the reader has waited (" +
             own_place(before.wait->where) +
             "), and writes again: it must wait until that was read, or the reader wait for the next phase";
  }
  if (!hand_over.arrival) {
    const auto of_others_in = [&](bool same_warp) {
      return find_waited_for(second, accesses.second_epoch, [&](const Mbarrier::Arrival& arrival) {
        return arrival.remote != ArrivalOrder::relaxed && arrival.thread != &first &&
               is_of_warpgroup(*arrival.thread, first) && (!same_warp || arrival.thread->warp == first.warp);
      });
    };
    WaitedFor of_others = of_others_in(/*same_warp=*/true);  // which speaks for it more likely
    if (!of_others.arrival) of_others = of_others_in(/*same_warp=*/false);
    // Who overwrites relies on what it waited for last.
    const std::optional<Thread::Seen> relied_on = seen_in(second, accesses.second_epoch);
    const bool is_relied_on = accesses.first_writes || !relied_on || relied_on->barrier == of_others.barrier;
    const bool first_arrives =
        of_others.barrier &&
        find_waited_for(second, accesses.second_epoch, [&](const Mbarrier::Arrival& arrival) {
          return arrival.thread == &first;
        }).barrier == of_others.barrier;
    if (of_others.arrival && is_relied_on && !first_arrives && first.warp != second.warp &&
        !accesses.first_is_operation && accesses.second_epoch) {
      const Mbarrier& barrier = *of_others.barrier;
      if (std::string count = explain_lanes_without(
              first, accesses.first_writes ? "writes" : "reads", barrier, of_others.wait->phase,
              barrier.phase == of_others.wait->phase ? barrier.last_arrivals : barrier.earlier_arrivals);
          !count.empty())
        return count;
      const std::string arrives =
          who_and_where(*of_others.arrival->thread, *of_others.barrier, *of_others.arrival);
      // Does the thread that arrives do so before it reads itself? Then the others do, too.
      const bool arrives_first =
          !accesses.first_writes && accesses.last_read_there &&
          accesses.last_read_there(of_others.arrival->thread->number) > of_others.arrival->epoch;
      return arrives_first
                 ? arrives +
                       ", and reads after that: it must arrive after the reads, or the writer wait for its "
                       "next arrival"
                 : arrives + print(" for others, too, and nothing orders that behind what warp %u lane %u %s",
                                   first.warp->index, first.lane, accesses.first_writes ? "writes" : "reads");
    }
  }
  if (!hand_over.arrival && !accesses.first_is_operation) {
    const WaitedFor relaxed =
        find_waited_for(second, accesses.second_epoch, [&](const Mbarrier::Arrival& one) {
          return one.remote == ArrivalOrder::relaxed && is_of_warpgroup(*one.thread, first);
        });
    if (relaxed.arrival) return explain_weak_arrival(relaxed, first, second);
  }
  const Thread& of_write = accesses.first_writes ? first : second;
  const bool reader_sends =
      (accesses.first_writes ? accesses.second_what : accesses.first_what) == "TMA store" &&
      !(accesses.first_writes ? accesses.first_is_operation : accesses.second_is_operation);
  if (accesses.reads_early && reader_sends && first.warp == second.warp && &first != &second)
    return print(
        "lane %u writes, and lane %u of the same warp issues the TMA store: lanes do not run in step, "
        "so a __syncwarp must come between",
        of_write.lane, reader.lane);
  if (first.block != second.block && !first.last_seen.barrier && !second.last_seen.barrier &&
      !accesses.first_is_operation && !accesses.second_is_operation)
    return "these are threads of two blocks of the cluster, " + describe(*first.block) + " and " +
           describe(*second.block) + ": a cluster_sync must come between, and a __syncthreads is none" +
           (!accesses.overwrites
                ? ""
                : "; or the write, if it is of the next round, needs another element than the round before");
  if (std::string text = explain_block_barrier(first, second, accesses); !text.empty()) return text;
  if (accesses.reads_early && accesses.first_writes && !accesses.first_is_operation && reader_is_known)
    if (std::string text = explain_writer_ahead(first, reader); !text.empty()) return text;
  if (accesses.reads_early && accesses.first_writes && !accesses.first_is_operation)
    if (std::string text = explain_no_wait(first, reader); !text.empty()) return text;
  if (accesses.reads_early) return reader_is_known ? explain_last_wait(reader, epoch_of_reader) : "";
  const Thread& writer = accesses.first_writes ? first : second;
  const bool writer_is_known = accesses.first_writes ? !accesses.first_is_operation || accesses.first_epoch
                                                     : !accesses.second_is_operation || accesses.second_epoch;
  const uint32_t epoch_of_writer = accesses.first_writes ? first_epoch : accesses.second_epoch;
  const Thread::Seen seen = seen_in(writer, epoch_of_writer).value_or(Thread::Seen{});
  if (!writer_is_known || !seen.barrier || accesses.are_writes) return "";
  std::string released;  // by the reader, before it reads
  if (!accesses.first_writes && reader_is_known) {
    const WaitedFor early = find_waited_for(second, accesses.second_epoch, [&](const auto& arrival) {
      return arrival.thread == &first && first_epoch && arrival.epoch < first_epoch;
    });
    if (early.barrier == seen.barrier)
      released = print("; warp %u lane %u arrives there before this ", first.warp->index, first.lane) +
                 accesses.first_what;
  }
  const std::string mask = accesses.first_writes ? "" : explain_mask(writer, *first.block, accesses);
  if (const std::string unheard = explain_unheard(first, second, accesses); !unheard.empty()) return unheard;
  const auto* const ended_by = seen.phase ? arrivals_of(seen) : nullptr;
  if (ended_by && !accesses.first_writes && !accesses.first_is_operation)
    if (std::string count = explain_lanes_without(first, "reads", *seen.barrier, seen.phase, *ended_by);
        !count.empty())
      return count;
  const std::string unneeded = accesses.first_writes || !seen.phase ? "" : explain_unneeded(seen, first);
  if (const std::string count = explain_phases_ahead(*seen.barrier); seen.phase && !count.empty())
    return "the count of " + name_of(*seen.barrier) + ", for which " + describe(writer) +
           " waited before it writes, is too small" + count;
  return describe(writer) + " writes" + mask + ", and waited last for " + name_of(*seen.barrier) +
         (seen.phase
              ? print(", whose phase %llu had ended", static_cast<unsigned long long>(seen.phase - 1)) +
                    (unneeded.empty() ? with_arrivals_of(seen) : unneeded)
              : explain_first_parity(seen)) +
         (reader_is_known && unneeded.empty() ? explain_other_slot(seen, seen_in(reader, epoch_of_reader))
                                              : "") +
         released + explain_same_parity(seen);
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
      for (++warp; !is_lane && warp != warps.end() && warp->second.size() > 1 && warp->first == last + 1;
           ++warp)
        ++last;
      text += (text.empty() ? "" : ", ") + of_block +
              (is_lane         ? print("warp %u lane %u", first, lane)
               : first == last ? print("warp %u", first)
                               : print("warps %u-%u", first, last));
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

bool are_several(const std::string& names) {
  return names.find("warps") != names.npos || names.find("lanes") != names.npos ||
         names.find(", ") != names.npos;
}

namespace {

/// "warp 9 lane 0 waits at gemm.cuh:107 for pipe_cs.full[0]".
std::string what_it_waits_for(const Thread& thread) {
  return names_of({&thread}) + " waits at " + own_place(thread.wait.where) +
         (thread.wait.kind == WaitKind::mbarrier
              ? " for " + name_of(*static_cast<const Mbarrier*>(thread.wait.object))
              : "");
}

}  // namespace

std::string explain_early_exits(const Block& block) {
  constexpr size_t kMostThreads = 2;
  const auto& came = block.barriers[0].arrivals;
  std::vector<const Thread*> others;  // of warps that have lost lanes: they live, and wait elsewhere
  for (const Warp& warp : block.warps) {
    if (warp.live == warp.present) continue;
    for (const Thread* thread : warp.lanes)
      if (thread && !thread->done && thread->wait.kind != WaitKind::none &&
          std::find(came.begin(), came.end(), thread) == came.end())
        others.push_back(thread);
  }
  std::string text = ": " + names_of_lanes(block, [](const Thread& thread) { return thread.done; });
  if (others.empty()) return text;
  text += "; of the others, ";
  for (size_t i = 0; i < std::min(others.size(), kMostThreads); ++i)
    text += (i ? " and " : "") + what_it_waits_for(*others[i]);
  if (others.size() > kMostThreads) text += print(", and %zu more elsewhere", others.size() - kMostThreads);
  return text + (others.size() == 1 ? ", and it has not come here" : ", and they have not come here");
}

std::string explain_restarted_ring(const Block& block, const Thread* thread, const Thread* late) {
  const Unobserved unobserved;
  for (const Warp& warp : block.warps) {
    if (thread && &warp != thread->warp) continue;
    for (const Thread* const lane : warp.lanes) {
      if (!lane) continue;
      for (const Thread::RingPlace& place : lane->places_in_rings) {
        if (!place.restarted || (!place.is_wrong && lane != late)) continue;
        if (lane == late && late->wait.object != place.restarted && place.slots == 1) continue;
        const std::string name = name_of(*place.restarted);
        const std::string ring = name.substr(0, name.rfind('[')), end = place.restarted->end;
        const std::string pipeline = ring.substr(0, ring.size() - std::min(ring.size(), end.size() + 1));
        const char* const type = end == "full" ? "Consumer" : "Producer";
        const MadeInLoop made = made_in_loop(place.restarted_at, type, pipeline);
        // Without the object's line it is clear where a slot is left out; else a parity may not have flipped.
        const bool is_clear = !place.has_jumped && place.slot_before + 1 < place.slots;
        if (made.object.empty() && !is_clear) continue;
        std::string text = print("warp %u lane %u begins again at slot %d of ", warp.index, lane->lane,
                                 place.restarted->slot) +
                           ring + print(" with parity %u (", place.first_parity) +
                           own_place(place.restarted_at) + "), and the barriers have gone on: ";
        if (made.object.empty()) return text + "is its place in the ring made anew for each tile?";
        return text + "its " + type + " is made anew at " + made.object + ", in each round of the loop at " +
               made.loop + ": make it once, before the loop";
      }
    }
  }
  return "";
}

std::string explain_wrong_wait(const Block& block, const Thread* thread) {
  if (std::string text = explain_restarted_ring(block, thread); !text.empty()) return text;
  for (const auto& barrier : block.mbarriers) {
    const Mbarrier::EarlyWait& wait = barrier->early_wait;
    if (!wait.thread || (thread && wait.thread->warp != thread->warp)) continue;
    const auto times = [](uint64_t count) {
      return count == 0   ? std::string("never")
             : count == 1 ? std::string("once")
                          : print("%llu times", static_cast<unsigned long long>(count));
    };
    return print("the wait of warp %u lane %u for ", wait.thread->warp->index, wait.thread->lane) +
           name_of(*barrier) + print(" with parity %u (", wait.parity) + own_place(wait.where) +
           ") passed too early: its slot had " +
           (wait.filled == 0 ? "never been filled"
                             : "been filled " + times(wait.filled) + " and emptied " +
                                   (wait.emptied == wait.filled ? "as often" : times(wait.emptied)));
  }
  return "";
}

std::string explain_early_wait(const Block& block, const Thread* thread) {
  if (std::string text = explain_wrong_wait(block, thread); !text.empty()) return text;
  for (const auto& full : block.mbarriers) {
    const Mbarrier::LateLook& look = full->late_look;
    if (!look.thread || (thread && look.thread->warp != thread->warp)) continue;
    return names_of({look.releases}) + " arrives at " + name_of(*other_end(*full)) + " (" +
           own_place(look.released_at) + ") before " + names_of({look.thread}) + " has looked at " +
           name_of(*full) + " (" + own_place(look.where) +
           "): all who wait for the slot must have passed their wait before it is released";
  }
  return "";
}

std::string explain_left_behind(const Mbarrier& barrier, const std::vector<const Thread*>& late) {
  if (barrier.waits.empty()) return "";
  const unsigned rank = late.front()->ids.rank;
  const uint64_t waits = barrier.waits[rank];
  const bool is_slot = other_end(barrier);  // its ring may be shared by the warps of a warpgroup
  const auto group_of = [&](const Thread& one) {
    return one.ids.rank / (is_slot ? kWarpLanes : kWarpgroupThreads);
  };
  // A first wait with parity 1 is for the phase before the first.
  const Thread* const early = barrier.early_pass.thread;
  const bool is_first = !waits && late.front()->wait.argument == 1 && early && early->block == barrier.block;
  if ((barrier.phase - barrier.phases_seen[rank]) % 2 != is_first) return "";
  for (const Warp& warp : barrier.block->warps)
    for (const Thread* const ahead : warp.lanes) {
      if (!ahead || barrier.waits[ahead->ids.rank] <= waits) continue;
      for (const auto& other : barrier.block->mbarriers)
        for (const auto* arrivals : {&other->arrivals, &other->last_arrivals})
          for (const Mbarrier::Arrival& arrival : *arrivals) {
            if (arrival.thread != ahead || arrival.bytes || other.get() == &barrier) continue;
            // Who has arrived there itself needs nobody to do so for it.
            const auto is_late = [&](const Thread& one) {
              return std::find(late.begin(), late.end(), &one) != late.end() &&
                     group_of(one) == group_of(*ahead) && barrier.waits[one.ids.rank] == waits &&
                     (!is_first || group_of(*early) == group_of(one)) && !has_ever_arrived(*other, one);
            };
            const std::string names = names_of_lanes(*barrier.block, is_late);
            if (names.empty()) continue;
            return names_of({ahead}) + " passed this wait, and arrived at " + name_of(*other) + " (" +
                   own_place(arrival.where) + "), before " + names + " had looked at " + name_of(barrier) +
                   ", which has gone on since: all of them must have passed the wait before one thread "
                   "arrives for them";
          }
    }
  return "";
}

std::string explain_repeated_wait(const Block& block) {
  if (const std::string early = explain_early_wait(block, nullptr); !early.empty()) return "\n  " + early;
  for (const auto& barrier : block.mbarriers) {
    const Mbarrier::RepeatedWait& wait = barrier->repeated_wait;
    if (!wait.thread) continue;
    return print("\n  warp %u lane %u waits at ", wait.thread->warp->index, wait.thread->lane) +
           own_place(wait.where) + " for " + name_of(*barrier) +
           print(" with parity %u: that is phase %llu, which it had waited for before",
                 static_cast<unsigned>(wait.phase % 2), static_cast<unsigned long long>(wait.phase));
  }
  return "";
}

namespace {

/// The mistake in a count that lets this end of a slot go on by two phases may be that of the other end.
std::string count_of_either_end(const Mbarrier& barrier) {
  const auto explain = [](const Mbarrier& one) {
    return explain_count(one, one.earlier_arrivals, one.last_arrivals);
  };
  const Mbarrier* const other = other_end(barrier);
  std::string text = explain(barrier);
  if (text.empty() && other) text = explain(*other);
  const std::string ended = "; different threads ended the last two";
  if (text.empty() || explain(barrier) == text) return text;
  return ended + " of " + name_of(*other) + text.substr(ended.size());
}

}  // namespace

std::string explain_two_phases(const Mbarrier& barrier, bool asks_for_count) {
  return print("\n  phase %llu ended with the arrivals of",
               static_cast<unsigned long long>(barrier.phase - 2)) +
         list(barrier.earlier_arrivals) +
         print("; phase %llu of", static_cast<unsigned long long>(barrier.phase - 1)) +
         list(barrier.last_arrivals) + (asks_for_count ? count_of_either_end(barrier) : "");
}

std::string explain_exit(const Block& block) {
  const std::string where =
      block.last_call.line ? " (its last call seen was at " + to_string(block.last_call) + ")" : "";
  return print("block %u must reach a last cluster_sync, or wait for what others do there, before it exits%s",
               block.ids.rank_in_cluster, where.c_str());
}

}  // namespace cpu_device
