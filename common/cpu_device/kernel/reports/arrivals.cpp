/// @file
/// Arrivals and bytes at an mbarrier: too many, too few, too late, of a wrong multicast or a box too large.
#include "common/cpu_device/kernel/reports/reports.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "common/cpu_device/kernel/deadlock/mbarriers.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/loads.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {

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
               barrier.expected, place_of_initialisation(barrier).c_str());
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

/// The loads of the phase fill arrays from end to end, so no box is too large, and no mask brings bytes of
/// others to the same place: more than this line expects. A line of the report; empty if it is not so.
std::string explain_expected_bytes(const CountedCopy& copy, const std::vector<LoadOfPhase>& loads) {
  const Mbarrier& barrier = *copy.barrier;
  std::set<std::string> expected_at;
  for (const Mbarrier::Arrival& arrival : with_bytes(barrier.last_arrivals, false))
    expected_at.insert(std::strstr(arrival.what, "expect") ? own_place(arrival.where) : "");
  if (loads.empty() || !barrier.last_expected_bytes || expected_at.size() != 1 ||
      expected_at.begin()->empty() || !fill_arrays(loads))
    return "";
  int64_t started = 0;
  std::map<unsigned, std::map<std::string, int64_t>> bytes_at;  // of each block, and line
  for (const auto& [issuer, load] : loads) {
    started += load.bytes;
    bytes_at[issuer->block->ids.rank_in_cluster][own_place(load.where)] += load.bytes;
  }
  std::string text =
      print("\n  phase %llu expected %lld bytes (", static_cast<unsigned long long>(copy.phase),
            static_cast<long long>(barrier.last_expected_bytes)) +
      *expected_at.begin() +
      print("), and loads of %lld were started for it, each to a place of its own:",
            static_cast<long long>(started));
  for (const auto& [rank, lines] : bytes_at) {
    text += (rank == bytes_at.begin()->first ? " " : ", ") + describe(*copy.issuer->cluster.blocks()[rank]);
    for (const auto& [line, bytes] : lines)
      text += (line == lines.begin()->first ? "" : " and") + print(" %lld (", static_cast<long long>(bytes)) +
              line + ")";
  }
  return text;
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
  const std::vector<LoadOfPhase> loads = is_next && !is_whole_phase
                                             ? loads_of_phase(barrier, copy.phase, copy.issuer)
                                             : std::vector<LoadOfPhase>();
  if (const std::string same = explain_same_place(loads); !same.empty())
    return ": more bytes are sent to " + describe(barrier) +
           print(" than the %lld that its phase %llu expected\n  ",
                 static_cast<long long>(barrier.last_expected_bytes),
                 static_cast<unsigned long long>(copy.phase)) +
           same;
  std::string text =
      is_whole_phase
          ? print(
                ": the sender is ahead (it sent the %lld bytes of a phase before the phase before had "
                "ended, and did not wait until the slot was empty), or too few bytes were expected at ",
                static_cast<long long>(surplus))
          : std::string(
                ": the phase in which it was issued has ended before its bytes came: too few bytes "
                "were expected at ");
  text += describe(barrier);
  const bool reaches_sender = !mask || mask >> copy.issuer->block->ids.rank_in_cluster & 1;
  if (const std::string expected = reaches_sender ? explain_expected_bytes(copy, loads) : "";
      !expected.empty())
    return text + expected;
  text += std::string(is_whole_phase ? "" : copy.too_late_because()) +
          (!is_whole_phase && copy.box_rows() ? ", or a box is too large" : "");
  if (mask) text += ", or a mask names a wrong block";
  if (!reaches_sender)
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

namespace {

/// Two warps of a block arrive in one phase, at a barrier that expects one arrival; else nothing.
std::string explain_two_who_arrive(const Thread& thread, const Mbarrier& barrier,
                                   const Mbarrier::Arrival& earlier, const char* what, Location where) {
  const OwnLine before = own_line(earlier.where), now = own_line(where);
  const bool is_same = before.place == now.place;
  const std::string both = "\n  " + names_of({earlier.thread}) + " and " + names_of({&thread});
  if (is_same && before.caller == now.caller)
    return both + " both arrive at " + now.place + ": should one thread of the block alone come here?";
  // Two roles: each expects the bytes of its own loads.
  if (barrier.expected_bytes && std::strcmp(what, earlier.what) == 0 &&
      (!is_same || (!before.caller.empty() && !now.caller.empty())))
    return both + " both arrive, at " + before.place +
           (is_same ? ", called from " + before.caller + " and from " + now.caller : " and at " + now.place) +
           ": should the count be 2?";
  if (is_same)
    return both + " both arrive at " + now.place + ": should one thread of the block alone come here?";
  return "";
}

/// The warp of the thread arrived in this phase before: why it does so again; else nothing.
std::string explain_second_arrival(const Thread& thread, const Mbarrier& barrier,
                                   const Mbarrier::Arrival& earlier, bool is_first_lap, const char* what,
                                   Location where) {
  const Thread::Seen& seen = thread.last_seen;
  if (earlier.of_operation || earlier.thread->warp != thread.warp) return "";
  if (earlier.thread != &thread && barrier.expected == 1 && is_first_lap)
    return print("\n  lane %u of the same warp arrived in this phase before, at ", earlier.thread->lane) +
           own_place(earlier.where) + ": should one thread alone come here?";
  if (earlier.thread != &thread) return "";
  const std::string before = "\n  the thread arrived in this phase before, at " + own_place(earlier.where);
  const bool is_expected_apart = own_place(earlier.where) != own_place(where) &&
                                 std::strcmp(earlier.what, "mbarrier_arrive_expect_bytes") == 0 &&
                                 std::strcmp(what, earlier.what) == 0;
  if (earlier.waits_before == thread.mbarrier_waits)
    return before + (is_expected_apart
                         ? ", and arrives again at " + own_place(where) +
                               " without a wait between: an "
                               "arrive.expect_tx is an arrival, too: should the phase have one for all its "
                               "bytes, or is the count too small?"
                         : ", and has waited for no mbarrier since");
  const Mbarrier* const other = other_end(barrier);
  if (other && seen.barrier && seen.barrier != other && other_end(*seen.barrier) &&
      seen.barrier->is_full == other->is_full && seen.barrier->initialised_at == other->initialised_at)
    return before + ", and must wait for " + name_of(*other) +
           " before it does so again; it waited last for " + name_of(*seen.barrier) +
           ", of another slot: does the arrival (" + own_place(earlier.where) + ") come before the wait?";
  const bool has_waited_there = other && !other->waits.empty() && other->waits[thread.ids.rank];
  if (other && barrier.is_full && barrier.block == thread.block && !has_waited_there && seen.barrier)
    return before + ", and must wait for " + name_of(*other) +
           " before it does so again; it has never waited there, and waited last for " +
           name_of(*seen.barrier);
  if (seen.barrier == &barrier && seen.phase == 0)
    return before + "; its wait there since then (" + own_place(seen.where) +
           ") had parity 1, which passes before the first phase has ended: should it have been parity 0?";
  if (seen.barrier && seen.phase == 0 && !other_end(*seen.barrier))
    return before + "; since then it waited for " + describe(*seen.barrier) + " with parity 1 (" +
           own_place(seen.where) +
           "), which passes before the first phase has ended: should its parity have flipped?";
  if (other && seen.barrier == other) {
    const uint64_t waits = waits_in_ring(*other, thread), arrivals = arrivals_in_ring(barrier, thread);
    if (waits <= arrivals)
      return before + ", and must wait for " + name_of(*other) +
             " before it does so again; it has waited there " + times(waits) +
             ", and arrives for the next time: does the arrival (" + own_place(earlier.where) +
             ") come before the wait (" + own_place(seen.where) + ")?";
  }
  if (seen.barrier && seen.phase == 0)
    return before + "; since then it waited for " + describe(*seen.barrier) +
           ", which was in its first phase and let it pass: did its position move on, and its parity "
           "flip?";
  return "";
}

/// "is too small", of a count for which explain_count() has found a reason. Where different blocks ended the
/// two phases, some of them may arrive at a wrong barrier instead.
std::string is_too_small(const Mbarrier& barrier) {
  const auto blocks_of = [](const std::vector<Mbarrier::Arrival>& arrivals) {
    std::set<std::string> blocks;
    for (const Mbarrier::Arrival& arrival : with_bytes(arrivals, false))
      blocks.insert(describe(*arrival.thread->block));
    return blocks;
  };
  const std::set<std::string> before = blocks_of(barrier.earlier_arrivals),
                              after = blocks_of(barrier.last_arrivals);
  const bool share_blocks = std::any_of(after.begin(), after.end(),
                                        [&](const std::string& block) { return before.count(block) > 0; });
  if (share_blocks) return "is too small";
  return fmt::format("is too small, or arrivals of {}, or those of {}, are meant for another barrier",
                     fmt::join(before, ", "), fmt::join(after, ", "));
}

}  // namespace

std::string explain_arrival_too_many(const Thread& thread, const Mbarrier& barrier, const char* what,
                                     Location where) {
  std::string text = explain_open_phase(barrier);
  if (const std::string early = explain_early_release(barrier); !early.empty() && barrier.is_full)
    return "\n  " + early + text;
  const Thread::Seen& seen = thread.last_seen;
  for (const Mbarrier::Arrival& earlier : barrier.arrivals) {
    const bool is_first_lap = !seen.barrier || seen.phase == 0 || (!other_end(barrier) && barrier.phase == 0);
    const bool are_two = !earlier.of_operation && earlier.thread->warp != thread.warp &&
                         barrier.expected == 1 && is_first_lap && earlier.thread->block == thread.block;
    std::string why = are_two ? explain_two_who_arrive(thread, barrier, earlier, what, where) : "";
    if (why.empty()) why = explain_second_arrival(thread, barrier, earlier, is_first_lap, what, where);
    if (!why.empty()) return why + text;
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
      return "\n  the count of " + name_of(*seen.barrier) + ", for which the thread waited last, " +
             is_too_small(*seen.barrier) + count + "\n  its last phase ended with the arrivals of" +
             list(seen.barrier->last_arrivals) + ", and the phase before with those of" + list(before) +
             open_phase;
  }
  if (seen.barrier->phase == seen.phase + 1)
    text += " with the arrivals of" + list(seen.barrier->earlier_arrivals);
  return text;
}

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

}  // namespace cpu_device
