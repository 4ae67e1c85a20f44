/// @file
/// What a reader sees when nobody can go on: who waits for whom, and who never comes.
#include <algorithm>
#include <map>
#include <set>

#include "common/cpu_device/kernel/deadlock/cause.hpp"
#include "common/cpu_device/kernel/deadlock/mbarriers.hpp"
#include "common/cpu_device/kernel/deadlock/wait_graph.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"

namespace cpu_device {

/// Writes who waits where. Neighbouring lanes, and warps, that wait alike are named together.
class DeadlockReport {
 public:
  explicit DeadlockReport(const Cluster& cluster)
      : cluster_(cluster), graph_(cluster.threads_, cluster.cluster_barrier_) {}

  std::string write(const char* why) {
    if (graph_.root_mbarrier()) remember(graph_.root_mbarrier());
    lines_.push_back(
        print("  %s; %u of %zu threads have not finished", why, cluster_.live_, cluster_.threads_.size()));
    write_waits();
    write_mbarriers();
    for (const auto& [barrier, block] : block_barriers_) {
      if (barrier->expected) continue;  // any warps may be the ones that a named barrier counts
      lines_.push_back("  never arrived at the __syncthreads of " + describe(*block) + ":" +
                       absent_names(*barrier, *block));
    }
    if (cluster_barrier_waits_) {
      for (const auto& block : cluster_.blocks_) {
        if (!is_absent(cluster_.cluster_barrier_, *block)) continue;
        lines_.push_back("  never arrived at the cluster.sync, of " + describe(*block) + ":" +
                         absent_names(cluster_.cluster_barrier_, *block));
      }
    }
    // Two lines say what all wait for, one is that of the schedule, one says what is left out.
    const size_t limit = cluster_.options_.report_lines;
    // What is cut off is not that of the root.
    if (limit && lines_.size() + 3 > limit && graph_.root_mbarrier())
      std::rotate(lines_.begin() + 1, std::find(lines_.begin(), lines_.end(), root_line_),
                  std::find(lines_.begin(), lines_.end(), root_line_) + 1);
    const size_t shown = limit && lines_.size() + 3 > limit ? limit - 4 : lines_.size();
    std::string text = "deadlock: " + describe_root(graph_);
    for (size_t i = 0; i < shown; ++i) text += (i ? "\n" : "") + lines_[i].substr(i ? 0 : 2);
    if (shown < lines_.size()) text += print("\n  %zu lines more with --all", lines_.size() - shown);
    return text;
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

  /// The lines of each block; of blocks whose threads wait as those of a block before, their names.
  void write_waits() {
    std::vector<std::pair<std::vector<std::string>, std::vector<const Block*>>> alike;
    for (const auto& block : cluster_.blocks_) {
      std::vector<std::string> waits;
      for (size_t first = 0; first < block->warps.size();) {
        size_t end = first + 1;
        while (end < block->warps.size() && wait_alike(block->warps[first], block->warps[end])) ++end;
        for (std::string& line : waits_of(*block, first, end)) waits.push_back(std::move(line));
        first = end;
      }
      if (waits.empty()) continue;
      const auto same =
          std::find_if(alike.begin(), alike.end(), [&](const auto& one) { return one.first == waits; });
      if (same == alike.end()) {
        alike.push_back({waits, {block.get()}});
      } else {
        same->second.push_back(block.get());
      }
    }
    for (const auto& [waits, blocks] : alike) {
      for (const std::string& line : waits) lines_.push_back("  " + describe(*blocks.front()) + line);
      if (blocks.size() > 1)
        lines_.push_back("  likewise" + ranges_of_blocks({blocks.begin() + 1, blocks.end()}));
    }
  }

  /// One line for each barrier; those at the same place in other blocks with it, if they say the same.
  void write_mbarriers() {
    const size_t first_line = lines_.size();
    std::vector<std::pair<const Mbarrier*, std::string>> states;
    for (const Mbarrier* barrier : mbarriers_) states.emplace_back(barrier, state_of(*barrier));
    std::set<const Mbarrier*> written;
    for (const auto& [barrier, state] : states) {
      if (!written.insert(barrier).second) continue;
      std::vector<const Block*> likewise;
      for (const auto& [other, other_state] : states)
        if (other->offset == barrier->offset && other_state == state && written.insert(other).second)
          likewise.push_back(other->block);
      lines_.push_back("  " + describe(*barrier) + state +
                       (likewise.empty() ? "" : "; likewise" + ranges_of_blocks(likewise)));
    }
    if (first_line < lines_.size()) root_line_ = lines_[first_line];  // it was remembered first
  }

  /// Of warps that wait alike: each group of lanes that does.
  std::vector<std::string> waits_of(const Block& block, size_t first, size_t end) {
    const Warp& warp = block.warps[first];
    const std::string who =
        end - first == 1 ? print(" warp %zu", first) : print(" warps %zu-%zu", first, end - 1);
    std::vector<std::string> lines;
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
      text_ = who;
      const bool whole_warp = last - lane + 1 == static_cast<unsigned>(__builtin_popcount(warp.present));
      if (!whole_warp) text_ += lane == last ? print(" lane %u", lane) : print(" lanes %u-%u", lane, last);
      const bool several = end - first > 1 || (!whole_warp && lane != last);
      write_wait(block, *warp.lanes[lane], several ? "wait" : "waits");
      lines.push_back(text_);
      lane = last + 1;
    }
    return lines;
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
        text_ +=
            print(" for %u registers: its threads have %u each, and %u are free for each thread of a warp",
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
    if (!has_missed(barrier, thread)) return;
    const uint64_t seen = seen_by(barrier, thread);
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

  std::string state_of(const Mbarrier& barrier) {
    text_ = print(": in phase %llu (parity %u), %u of %u arrivals missing",
                  static_cast<unsigned long long>(barrier.phase), static_cast<unsigned>(barrier.phase & 1),
                  barrier.pending, barrier.expected);
    if (barrier.missing_bytes > 0)
      text_ += print(", %lld bytes missing", static_cast<long long>(barrier.missing_bytes));
    if (barrier.missing_bytes < 0)
      text_ += print(", %lld bytes more than expected", static_cast<long long>(-barrier.missing_bytes)) +
               explain_surplus(barrier);
    text_ += barrier.arrivals.empty() ? "; nobody arrived in this phase"
                                      : "; arrived:" + list(barrier.arrivals, barrier.block);
    if (barrier.pending && barrier.expected > 1 && !barrier.arrivals.empty()) write_absent_blocks(barrier);
    std::vector<Mbarrier::Arrival> absent;
    for (const Mbarrier::Arrival& earlier : barrier.last_arrivals) {
      const bool came = std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(),
                                    [&](const auto& arrival) { return arrival.thread == earlier.thread; });
      if (!came) absent.push_back(earlier);
    }
    if (!absent.empty())
      text_ += "; arrived in the phase before but not in this one:" + list(absent, barrier.block);
    return text_;
  }

  /// Where several blocks may arrive: those of which nobody did.
  void write_absent_blocks(const Mbarrier& barrier) {
    if (cluster_.blocks_.size() == 1) return;
    std::string names;
    const uint32_t mask = blocks_that_share(barrier);
    for (const auto& block : cluster_.blocks_) {
      if (mask && !(mask >> block->ids.rank_in_cluster & 1)) continue;
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

  /// " warps 0-7 (32 threads each), warp 9 (31 threads)".
  static std::string absent_names(const NamedBarrier& barrier, const Block& block) {
    std::string names;
    for (size_t first = 0; first < block.warps.size();) {
      const unsigned absent = count_absent(barrier, block.warps[first]);
      size_t end = first + 1;
      while (end < block.warps.size() && count_absent(barrier, block.warps[end]) == absent) ++end;
      if (absent)
        names += (names.empty() ? "" : ",") +
                 (end - first == 1 ? print(" warp %zu (%u threads)", first, absent)
                                   : print(" warps %zu-%zu (%u threads each)", first, end - 1, absent));
      first = end;
    }
    return names;
  }

  const Cluster& cluster_;
  WaitGraph graph_;
  std::string text_;  ///< of the line that is being written
  std::vector<std::string> lines_;
  std::string root_line_;  ///< the state of the barrier that all wait for in the end
  std::vector<const Mbarrier*> mbarriers_;
  std::map<const NamedBarrier*, const Block*> block_barriers_;
  bool cluster_barrier_waits_ = false;
};

std::string describe_deadlock(const Cluster& cluster, const char* why) {
  return DeadlockReport(cluster).write(why);
}

}  // namespace cpu_device
