/// @file
/// What a reader sees when a kernel broke a rule.
#include "common/cpu_device/kernel/engine_reports.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

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

std::string describe(const Block& block) {
  return print("block (%u,%u,%u)", block.ids.index.x, block.ids.index.y, block.ids.index.z);
}

std::string name_of(const Mbarrier& barrier) {
  const Unobserved unobserved;
  if (barrier.name)
    return barrier.name_index < 0 ? barrier.name : print("%s[%d]", barrier.name, barrier.name_index);
  std::set<uint32_t> before, others;  // that the block initialised at the same place, by their offsets
  for (const auto& other : barrier.block->mbarriers) {
    if (other->offset == barrier.offset || other->slot != barrier.slot || other->name ||
        !(other->initialised_at == barrier.initialised_at) || std::strcmp(other->end, barrier.end) != 0)
      continue;
    others.insert(other->offset);
    if (other->offset < barrier.offset) before.insert(other->offset);
  }
  const Location where = barrier.initialised_at;
  return ladder::barrier_name({where.file, where.line, barrier.end, barrier.slot},
                              static_cast<unsigned>(before.size()), !others.empty());
}

std::vector<MbarrierRecord> records_of_mbarriers(const Block& block) {
  std::vector<MbarrierRecord> records;
  for (const auto& barrier : block.mbarriers) {
    const auto& seen = barrier->phases_seen;
    const auto witnesses = std::count_if(seen.begin(), seen.end(), [](uint64_t phase) { return phase > 0; });
    records.push_back({name_of(*barrier), to_string(barrier->initialised_at), barrier->expected,
                       barrier->fenced, barrier->phase, static_cast<unsigned>(witnesses)});
  }
  return records;
}

std::string describe(const Thread& thread) {
  return describe(*thread.block) + print(" warp %u lane %u", thread.warp->index, thread.lane);
}

std::string describe(const Mbarrier& barrier) {
  const bool has_neighbours = barrier.block->ids.cluster_dim.count() > 1;
  return name_of(barrier) + (has_neighbours ? " of " + describe(*barrier.block) : "") +
         print(" (initialised at %s, count %u)", to_string(barrier.initialised_at).c_str(), barrier.expected);
}

Site Cluster::site(Location where, const void* return_address) {
  return race_checker_->site(where.file, where.line, return_address);
}

void Cluster::record_failure(const Thread* thread, const std::string& rule, Location where,
                             const void* return_address) {
  if (failed()) return;
  failure_ = print("kernel '%s': ", kernel_.name) + rule;
  if (thread) {
    failure_ += "\n  in " + describe(*thread);
    if (where.line) failure_ += " at " + to_string(where);
    if (return_address) failure_ += describe_callers(return_address, where.file, where.line);
  }
  failure_ += "\n  schedule " + options_.schedule.explained();
}

void Cluster::fail(const Thread& thread, const std::string& rule, Location where,
                   const void* return_address) {
  record_failure(&thread, rule, where, return_address);
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

/// " warp 0 (arrive at gemm.cuh:40) x32, ...". In a cluster with the block of each.
std::string list(const std::vector<Mbarrier::Arrival>& arrivals) {
  std::vector<std::pair<std::string, unsigned>> counted;
  for (const Mbarrier::Arrival& arrival : arrivals) {
    const Block& from = *arrival.thread->block;
    const std::string block = from.ids.cluster_dim.count() > 1 ? " " + describe(from) : std::string();
    const std::string mask =
        arrival.multicast_mask ? " with mask " + binary(arrival.multicast_mask, from) : std::string();
    const std::string text = block + print(" warp %u (%s%s at %s)", arrival.thread->warp->index, arrival.what,
                                           mask.c_str(), to_string(arrival.where).c_str());
    const auto same =
        std::find_if(counted.begin(), counted.end(), [&](auto& entry) { return entry.first == text; });
    if (same == counted.end()) {
      counted.emplace_back(text, 1);
    } else {
      ++same->second;
    }
  }
  std::string text;
  for (const auto& [what, times] : counted) {
    text += (text.empty() ? "" : ",") + what + (times > 1 ? print(" x%u", times) : "");
  }
  return text;
}

/// Those that brought bytes, or those that arrived.
std::vector<Mbarrier::Arrival> with_bytes(const std::vector<Mbarrier::Arrival>& arrivals, bool bytes) {
  std::vector<Mbarrier::Arrival> chosen;
  std::copy_if(arrivals.begin(), arrivals.end(), std::back_inserter(chosen),
               [&](const Mbarrier::Arrival& arrival) { return (arrival.bytes > 0) == bytes; });
  return chosen;
}

bool has_sent(const std::vector<Mbarrier::Arrival>& arrivals, const Thread* thread, Location where) {
  return std::any_of(arrivals.begin(), arrivals.end(), [&](const Mbarrier::Arrival& arrival) {
    return arrival.bytes && arrival.thread == thread && arrival.where == where;
  });
}

/// Of the threads that arrived in two phases, none in both: perhaps all were meant for one.
std::string explain_count(const Mbarrier& barrier, const std::vector<Mbarrier::Arrival>& before,
                          const std::vector<Mbarrier::Arrival>& after) {
  std::set<const Thread*> first, second;
  for (const Mbarrier::Arrival& arrival : with_bytes(before, false)) first.insert(arrival.thread);
  for (const Mbarrier::Arrival& arrival : with_bytes(after, false)) second.insert(arrival.thread);
  const bool is_disjoint = std::none_of(second.begin(), second.end(),
                                        [&](const Thread* thread) { return first.count(thread) > 0; });
  if (first.size() != barrier.expected || second.size() != barrier.expected || !is_disjoint) return "";
  return print(
      "; different threads ended the two: if one phase was meant to need both, the count at %s "
      "must be %zu, not %u",
      to_string(barrier.initialised_at).c_str(), first.size() + second.size(), barrier.expected);
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
  std::string text =
      is_whole_phase
          ? print(
                ": the sender is ahead (it sent the %lld bytes of a phase before the phase before had "
                "ended, and did not wait until the slot was empty), or too few bytes were expected at ",
                static_cast<long long>(surplus))
          : std::string(
                ": the phase in which it was issued has ended before its bytes came: too few bytes "
                "were expected at ");
  text += describe(barrier) + (is_whole_phase ? "" : copy.too_late_because());
  if (const uint32_t mask = copy.multicast_mask()) {
    text += ", or a mask names a wrong block\n  its mask " + binary(mask, *copy.target) + " sends it to";
    for (const auto& block : cluster.blocks())
      if (mask >> block->ids.rank_in_cluster & 1) text += " " + describe(*block);
  }
  if (is_next) {
    text += print("\n  phase %llu expected %lld bytes, and got those of",
                  static_cast<unsigned long long>(copy.phase),
                  static_cast<long long>(barrier.last_expected_bytes)) +
            list(with_bytes(barrier.last_arrivals, true));
  }
  return text;
}

std::string explain_surplus(const Mbarrier& barrier) {
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

std::string explain_open_phase(const Mbarrier& barrier) {
  if (barrier.missing_bytes <= 0) return "";
  return print(
      "\n  its phase %llu has had all arrivals, of%s, and waits for %lld bytes%s",
      static_cast<unsigned long long>(barrier.phase), list(with_bytes(barrier.arrivals, false)).c_str(),
      static_cast<long long>(barrier.missing_bytes), barrier.waiting_warps ? "" : "; no thread waits for it");
}

std::string explain_arrival_too_many(const Thread& thread, const Mbarrier& barrier) {
  std::string text = explain_open_phase(barrier);
  for (const Mbarrier::Arrival& earlier : barrier.arrivals) {
    if (earlier.thread != &thread || earlier.of_operation || earlier.waits_before != thread.mbarrier_waits)
      continue;
    return text + "\n  the thread arrived in this phase before, at " + to_string(earlier.where) +
           ", and has waited for no mbarrier since";
  }
  const Thread::Seen& seen = thread.last_seen;
  if (!seen.barrier) return text + "\n  the thread has waited for no mbarrier";
  text += "\n  the thread waited last for " + describe(*seen.barrier);
  if (seen.phase == 0) return text + ", which was in its first phase and let it pass";
  text += print(", whose phase %llu had ended", static_cast<unsigned long long>(seen.phase - 1));
  if (seen.barrier->phase == seen.phase) {
    text += " with the arrivals of" + list(seen.barrier->last_arrivals);
    const auto& before = seen.barrier->earlier_arrivals;
    const std::string count = explain_count(*seen.barrier, before, seen.barrier->last_arrivals);
    if (!count.empty()) text += ", and the phase before with those of" + list(before) + count;
  }
  if (seen.barrier->phase == seen.phase + 1)
    text += " with the arrivals of" + list(seen.barrier->earlier_arrivals);
  return text;
}

std::string explain_last_wait(const Thread& thread) {
  const Thread::Seen& seen = thread.last_seen;
  if (!seen.barrier) return "";
  const std::string text = "\n  the reader waited last for " + name_of(*seen.barrier);
  if (seen.phase == 0) return text + " with parity 1, which passes before the first phase has ended";
  const std::string ended =
      text + print(", whose phase %llu had ended", static_cast<unsigned long long>(seen.phase - 1));
  if (seen.barrier->phase != seen.phase || seen.barrier->last_waits.empty()) return ended;
  const Mbarrier::Wait& wait = seen.barrier->last_waits[thread.ids.rank];
  const auto& arrivals = seen.barrier->last_arrivals;
  const auto store = std::find_if(arrivals.begin(), arrivals.end(),
                                  [](const auto& arrival) { return arrival.needs_cluster_scope; });
  if (wait.of_cluster || store == arrivals.end()) return ended;
  return ended + ": the " + wait.what + " at " + to_string(wait.where) +
         " has the scope of the block, and for what another block stores (" + store->what + " at " +
         to_string(store->where) + ") it must be the cluster";
}

std::string explain_weak_arrival(const Thread& first, uint32_t first_epoch, const Thread& second,
                                 uint32_t second_epoch) {
  const Mbarrier* barrier = nullptr;
  const Mbarrier::Arrival* arrival = nullptr;  // the first that comes after the access
  for (const auto& candidate : second.block->mbarriers) {
    if (candidate->last_waits.empty()) continue;
    const Mbarrier::Wait& wait = candidate->last_waits[second.ids.rank];
    if (!wait.phase || wait.epoch > second_epoch || candidate->phase - wait.phase > 1) continue;
    for (const auto& one :
         candidate->phase == wait.phase ? candidate->last_arrivals : candidate->earlier_arrivals) {
      if (!one.remote || one.thread != &first || one.epoch < first_epoch) continue;
      if (arrival && arrival->epoch <= one.epoch) continue;
      barrier = candidate.get();
      arrival = &one;
    }
  }
  if (!arrival) return "";
  const std::string came = "\n  between them: " + std::string(arrival->what) + " at " + name_of(*barrier) +
                           ", at " + to_string(arrival->where);
  if (*arrival->remote == ArrivalOrder::relaxed)
    return came + ": it is relaxed, and says nothing of loads and stores before it";
  const Mbarrier::Wait& wait = barrier->last_waits[second.ids.rank];
  if (wait.of_cluster || first.block == second.block) return "";
  return came + ", of another block, and the " + wait.what + " at " + to_string(wait.where) +
         ": its scope is the block, and for an arrival of another block it must be the cluster";
}

std::string explain_two_phases(const Mbarrier& barrier) {
  return print("\n  phase %llu ended with the arrivals of",
               static_cast<unsigned long long>(barrier.phase - 2)) +
         list(barrier.earlier_arrivals) +
         print("; phase %llu of", static_cast<unsigned long long>(barrier.phase - 1)) +
         list(barrier.last_arrivals) +
         explain_count(barrier, barrier.earlier_arrivals, barrier.last_arrivals);
}

std::string explain_exit(const Block& block) {
  const std::string where =
      block.last_call.line ? " (its last call seen was at " + to_string(block.last_call) + ")" : "";
  return print("block %u must reach a last cluster_sync, or wait for what others do there, before it exits%s",
               block.ids.rank_in_cluster, where.c_str());
}

// --- deadlock -----------------------------------------------------------------------------------------

/// Writes who waits where. Neighbouring lanes, and warps, that wait alike are named together.
class DeadlockReport {
 public:
  explicit DeadlockReport(const Cluster& cluster) : cluster_(cluster) {}

  std::string write(const char* why) {
    text_ = print("deadlock: %s; %u of %zu threads have not finished", why, cluster_.live_,
                  cluster_.threads_.size());
    for (const auto& block : cluster_.blocks_) {
      for (size_t first = 0; first < block->warps.size();) {
        size_t end = first + 1;
        while (end < block->warps.size() && wait_alike(block->warps[first], block->warps[end])) ++end;
        write_warps(*block, first, end);
        first = end;
      }
    }
    for (const Mbarrier* barrier : mbarriers_) write_arrivals(*barrier);
    for (const auto& [barrier, block] : block_barriers_) {
      if (barrier->expected) continue;  // any warps may be the ones that a named barrier counts
      text_ += "\n  never arrived at the __syncthreads of " + describe(*block) + ":";
      write_absent(*barrier, *block);
    }
    if (cluster_barrier_waits_) {
      for (const auto& block : cluster_.blocks_) {
        if (!is_absent(cluster_.cluster_barrier_, *block)) continue;
        text_ += "\n  never arrived at the cluster.sync, of " + describe(*block) + ":";
        write_absent(cluster_.cluster_barrier_, *block);
      }
    }
    return text_;
  }

 private:
  static bool wait_alike(const Thread& a, const Thread& b) {
    return a.done == b.done && a.wait.kind == b.wait.kind && a.wait.object == b.wait.object &&
           a.wait.argument == b.wait.argument && a.wait.where == b.wait.where;
  }

  static bool wait_alike(const Warp& a, const Warp& b) {
    if (a.present != b.present) return false;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      if (!(a.present >> lane & 1)) continue;
      const Thread &x = *a.lanes[lane], &y = *b.lanes[lane];
      // Warps wait for their own lanes at objects of their own.
      const bool both_in_warp = x.wait.kind == WaitKind::warp && y.wait.kind == WaitKind::warp &&
                                x.wait.where == y.wait.where && x.wait.argument == y.wait.argument;
      if (!both_in_warp && !wait_alike(x, y)) return false;
    }
    return true;
  }

  void write_warps(const Block& block, size_t first, size_t end) {
    const Warp& warp = block.warps[first];
    std::string who =
        "\n  " + describe(block) +
        (end - first == 1 ? print(" warp %zu", first) : print(" warps %zu-%zu", first, end - 1));
    for (unsigned lane = 0; lane < kWarpLanes;) {
      if (!(warp.live >> lane & 1)) {
        ++lane;
        continue;
      }
      unsigned last = lane;
      while (last + 1 < kWarpLanes && (warp.live >> (last + 1) & 1) &&
             wait_alike(*warp.lanes[lane], *warp.lanes[last + 1])) {
        ++last;
      }
      text_ += who;
      const bool whole_warp = last - lane + 1 == static_cast<unsigned>(__builtin_popcount(warp.present));
      if (!whole_warp) text_ += lane == last ? print(" lane %u", lane) : print(" lanes %u-%u", lane, last);
      const bool several = end - first > 1 || (!whole_warp && lane != last);
      write_wait(block, *warp.lanes[lane], several ? "wait" : "waits");
      lane = last + 1;
    }
  }

  void write_wait(const Block& block, const Thread& thread, const char* verb) {
    const Wait& wait = thread.wait;
    text_ += print(" %s at %s in %s", verb, to_string(wait.where).c_str(), wait.what);
    switch (wait.kind) {
      case WaitKind::mbarrier:
      case WaitKind::poll:
        if (!wait.object) break;
        text_ += " for " + name_of(*static_cast<const Mbarrier*>(wait.object)) +
                 print(", phase of parity %u", static_cast<unsigned>(wait.argument));
        write_missed_phases(*static_cast<const Mbarrier*>(wait.object), thread);
        remember(static_cast<const Mbarrier*>(wait.object));
        break;
      case WaitKind::block_barrier: {
        const auto* barrier = static_cast<const NamedBarrier*>(wait.object);
        const bool is_of_cluster = barrier == &cluster_.cluster_barrier_;
        const unsigned expected = is_of_cluster       ? cluster_.live_
                                  : barrier->expected ? barrier->expected
                                                      : block.live;
        if (wait.argument) text_ += print(" %u", static_cast<unsigned>(wait.argument));
        text_ += print(": %u of %u threads arrived", barrier->arrived, expected);
        if (is_of_cluster) {
          cluster_barrier_waits_ = true;
        } else {
          block_barriers_[barrier] = &block;
        }
        break;
      }
      case WaitKind::warp:
        text_ += print(" for lanes of mask 0x%08x", static_cast<unsigned>(wait.argument));
        break;
      case WaitKind::registers:
        text_ += print(" for %u registers: its threads have %u, and %u are free",
                       static_cast<unsigned>(wait.argument), thread.warp->registers, block.free_registers);
        break;
      case WaitKind::wgmma:
        write_warps_without_commit(block, thread);
        break;
      case WaitKind::none:
      case WaitKind::copies:
      case WaitKind::stores:
        break;
    }
  }

  /// A thread that begins to wait for a phase two phases too late takes the one in progress for it.
  void write_missed_phases(const Mbarrier& barrier, const Thread& thread) {
    const uint64_t seen = barrier.phases_seen.empty() ? 0 : barrier.phases_seen[thread.ids.rank];
    if (seen >= barrier.phase) return;
    if ((barrier.phase - seen) % 2) {
      text_ += print(": it has not waited for phase %llu, of parity %u, which has ended",
                     static_cast<unsigned long long>(barrier.phase - 1),
                     static_cast<unsigned>((barrier.phase - 1) % 2));
      return;
    }
    text_ += print(": it came too late, and has not seen phases %llu to %llu end",
                   static_cast<unsigned long long>(seen), static_cast<unsigned long long>(barrier.phase - 1));
  }

  /// Which warps of the warpgroup are behind, and who has told others of the product although it is in
  /// flight.
  void write_warps_without_commit(const Block& block, const Thread& waiting) {
    const size_t first = waiting.ids.rank / kWarpgroupThreads * (kWarpgroupThreads / kWarpLanes);
    std::string missing;
    std::vector<std::string> early;
    for (size_t w = first; w < first + kWarpgroupThreads / kWarpLanes; ++w) {
      bool is_missing = false;
      for (const Thread* lane : block.warps[w].lanes) {
        is_missing |= lane->wgmma_committed_groups < waiting.wait.argument;
        const Thread::ArrivalInFlight& arrival = lane->arrival_in_flight;
        if (!arrival.barrier || lane->wait.kind != WaitKind::wgmma) continue;
        early.push_back(print("\n    warp %zu lane %u arrived at ", w, lane->lane) +
                        name_of(*arrival.barrier) + " (" + to_string(arrival.where) +
                        ") before this wait, while the product was in flight and others had yet to start it");
      }
      if (is_missing) missing += print("%s warp %zu", missing.empty() ? "" : ",", w);
    }
    if (missing.empty()) return;
    text_ += "; missing:" + missing;
    for (const std::string& line : early) {
      if (text_.find(line) == std::string::npos) text_ += line;
    }
  }

  void remember(const Mbarrier* barrier) {
    if (std::find(mbarriers_.begin(), mbarriers_.end(), barrier) == mbarriers_.end())
      mbarriers_.push_back(barrier);
  }

  void write_arrivals(const Mbarrier& barrier) {
    text_ += "\n  " + describe(barrier) +
             print(": in phase %llu (parity %u), %u of %u arrivals missing",
                   static_cast<unsigned long long>(barrier.phase), static_cast<unsigned>(barrier.phase & 1),
                   barrier.pending, barrier.expected);
    if (barrier.missing_bytes > 0)
      text_ += print(", %lld bytes missing", static_cast<long long>(barrier.missing_bytes));
    if (barrier.missing_bytes < 0)
      text_ += print(", %lld bytes more than expected", static_cast<long long>(-barrier.missing_bytes)) +
               explain_surplus(barrier);
    text_ +=
        barrier.arrivals.empty() ? "; nobody arrived in this phase" : "; arrived:" + list(barrier.arrivals);
    if (barrier.pending && barrier.expected > 1) write_absent_blocks(barrier);
    std::vector<Mbarrier::Arrival> absent;
    for (const Mbarrier::Arrival& earlier : barrier.last_arrivals) {
      const bool came = std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(),
                                    [&](const auto& arrival) { return arrival.thread == earlier.thread; });
      if (!came) absent.push_back(earlier);
    }
    if (!absent.empty()) text_ += "; arrived in the phase before but not in this one:" + list(absent);
  }

  /// Where several blocks may arrive: those of which nobody did.
  void write_absent_blocks(const Mbarrier& barrier) {
    if (cluster_.blocks_.size() == 1) return;
    std::string names;
    for (const auto& block : cluster_.blocks_) {
      const bool came =
          std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(),
                      [&](const auto& arrival) { return arrival.thread->block == block.get(); });
      if (!came) names += (names.empty() ? " " : ", ") + describe(*block);
    }
    if (!names.empty()) text_ += "; no arrival from" + names;
  }

  /// Threads of the warp that have not exited and have not arrived.
  static unsigned count_absent(const NamedBarrier& barrier, const Warp& warp) {
    unsigned absent = 0;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      if (!(warp.live >> lane & 1)) continue;
      const auto& arrivals = barrier.arrivals;
      absent += std::find(arrivals.begin(), arrivals.end(), warp.lanes[lane]) == arrivals.end();
    }
    return absent;
  }

  static bool is_absent(const NamedBarrier& barrier, const Block& block) {
    return std::any_of(block.warps.begin(), block.warps.end(),
                       [&](const Warp& warp) { return count_absent(barrier, warp) > 0; });
  }

  void write_absent(const NamedBarrier& barrier, const Block& block) {
    std::string names;
    for (const Warp& warp : block.warps) {
      const unsigned absent = count_absent(barrier, warp);
      if (absent) names += (names.empty() ? "" : ",") + print(" warp %u (%u threads)", warp.index, absent);
    }
    text_ += names;
  }

  const Cluster& cluster_;
  std::string text_;
  std::vector<const Mbarrier*> mbarriers_;
  std::map<const NamedBarrier*, const Block*> block_barriers_;
  bool cluster_barrier_waits_ = false;
};

std::string describe_deadlock(const Cluster& cluster, const char* why) {
  return DeadlockReport(cluster).write(why);
}

}  // namespace cpu_device
