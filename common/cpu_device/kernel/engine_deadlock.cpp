/// @file
/// What a reader sees when nobody can go on: who waits for whom, and who never comes.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_reports.hpp"

namespace cpu_device {
namespace {

bool is_at_mbarrier(const Thread& thread) {
  const bool waits = thread.wait.kind == WaitKind::mbarrier || thread.wait.kind == WaitKind::poll;
  return !thread.done && waits && thread.wait.object;
}

const Mbarrier& mbarrier_of(const Thread& thread) {
  return *static_cast<const Mbarrier*>(thread.wait.object);
}

uint64_t seen_by(const Mbarrier& barrier, const Thread& thread) {
  return barrier.phases_seen.empty() ? 0 : barrier.phases_seen[thread.ids.rank];
}

bool is_unused(const Mbarrier& barrier) {
  return !barrier.phase && barrier.arrivals.empty() && !barrier.missing_bytes;
}

/// Another of the same array, or the same.
bool is_sibling(const Mbarrier& one, const Mbarrier& other) {
  const std::string a = name_of(one), b = name_of(other);
  return one.block == other.block && a.rfind('[') != a.npos &&
         a.compare(0, a.rfind('['), b, 0, b.rfind('[')) == 0;
}

/// Threads of other warpgroups may share the ring that the thread reads, and have come to none of its slots,
/// as they wait for their turn, which nobody has ever passed to anybody: phases that this thread has not
/// waited for are theirs. What these wait for; null if there are none.
const Mbarrier* turn_of_others(const Mbarrier& barrier, const Thread& thread) {
  if (!other_end(barrier) || !barrier.is_full || thread.block != barrier.block) return nullptr;
  const auto waits_in_ring = [&](const Thread& one) {
    const auto& all = barrier.block->mbarriers;
    return std::any_of(all.begin(), all.end(), [&](const auto& slot) {
      const bool has_waited = !slot->waits.empty() && slot->waits[one.ids.rank];
      return has_waited && (slot.get() == &barrier || is_sibling(barrier, *slot));
    });
  };
  for (const Warp& warp : thread.block->warps) {
    if (warp.index / kWarpgroupWarps == thread.warp->index / kWarpgroupWarps) continue;
    for (const Thread* const other : warp.lanes) {
      if (!other || !is_at_mbarrier(*other)) continue;
      const Mbarrier& turn = mbarrier_of(*other);
      if (turn.block != barrier.block || !turn.times_arrived.empty() || !is_unused(turn) || other_end(turn) ||
          waits_in_ring(*other))
        continue;
      // There are turns of others, too: this thread has had its own.
      const auto& all = barrier.block->mbarriers;
      const bool has_turn = std::any_of(all.begin(), all.end(), [&](const auto& one) {
        return one.get() != &turn && is_sibling(turn, *one) && !one->waits.empty() &&
               one->waits[thread.ids.rank];
      });
      if (has_turn) return &turn;
    }
  }
  return nullptr;
}

/// Has the thread missed phases that were meant for it? Where threads share a ring, each may wait for some
/// phases alone: what another thread has waited for says nothing.
bool has_missed(const Mbarrier& barrier, const Thread& thread) {
  if (seen_by(barrier, thread) >= barrier.phase || turn_of_others(barrier, thread)) return false;
  for (size_t other = 0; other < barrier.phases_seen.size(); ++other)
    if (other / kWarpLanes != thread.ids.rank / kWarpLanes && barrier.phases_seen[other] >= barrier.phase)
      return false;
  return true;
}

bool came(const Mbarrier& barrier, const Thread* thread) {
  return std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(),
                     [&](const auto& arrival) { return arrival.thread == thread; });
}

/// Threads that arrived in the phase before, and have not in this one.
std::vector<const Thread*> absent_from(const Mbarrier& barrier) {
  std::vector<const Thread*> absent;
  for (const Mbarrier::Arrival& earlier : with_bytes(barrier.last_arrivals, false))
    if (!came(barrier, earlier.thread)) absent.push_back(earlier.thread);
  return absent;
}

/// A bit for each block that receives the multicasts which fill the slot; 0 if none do.
uint32_t blocks_that_share(const Mbarrier& one_of_its_ends) {
  uint32_t mask = 0;
  for (const Mbarrier* end : {&one_of_its_ends, other_end(one_of_its_ends)})
    if (end)
      for (const auto* arrivals : {&end->last_arrivals, &end->arrivals})
        for (const Mbarrier::Arrival& arrival : *arrivals) mask |= arrival.multicast_mask;
  return mask;
}

bool is_of_warp_that_arrives(const Thread& thread, const Mbarrier& barrier) {
  return std::any_of(std::begin(thread.warp->lanes), std::end(thread.warp->lanes),
                     [&](const Thread* lane) { return lane && has_ever_arrived(barrier, *lane); });
}

/// " (gemm.cuh:82)": where the thread's warpgroup arrived in this phase or the one before; or nothing.
std::string place_of_arrival(const Mbarrier& barrier, const Thread& thread) {
  for (const auto* arrivals : {&barrier.arrivals, &barrier.last_arrivals})
    for (const Mbarrier::Arrival& arrival : *arrivals)
      if (!arrival.bytes &&
          arrival.thread->ids.rank / kWarpgroupThreads == thread.ids.rank / kWarpgroupThreads)
        return " (" + own_place(arrival.where) + ")";
  return "";
}

/// "registers of a thread: warps 0-6 240, warp 7 168".
std::string registers_of(const Block& block) {
  std::string text;
  for (size_t first = 0; first < block.warps.size();) {
    size_t end = first + 1;
    while (end < block.warps.size() && block.warps[end].registers == block.warps[first].registers) ++end;
    text += (text.empty() ? "" : ", ") +
            (end - first == 1 ? print("warp %zu", first) : print("warps %zu-%zu", first, end - 1)) +
            print(" %u", block.warps[first].registers);
    first = end;
  }
  return "registers of a thread: " + text;
}

/// " block (1,0,0)", or " blocks (1,0,0) to (3,0,0)".
std::string names_of_blocks(const std::vector<const Block*>& blocks) {
  std::string text = blocks.size() > 1 ? " blocks" : " block";
  for (size_t i = 0; i < blocks.size(); ++i) {
    size_t last = i;
    while (last + 1 < blocks.size() &&
           blocks[last + 1]->ids.rank_in_cluster == blocks[last]->ids.rank_in_cluster + 1)
      ++last;
    if (last == i + 1) last = i;  // two are named both
    const auto index = [&](size_t at) { return describe(*blocks[at]).substr(std::strlen("block")); };
    text += (i ? "," : "") + index(i) + (last > i ? " to" + index(last) : "");
    i = last;
  }
  return text;
}

/// The barrier at the same place in another block; null if there is none.
const Mbarrier* counterpart_in(const Block& block, const Mbarrier& barrier) {
  const Mbarrier* found = nullptr;
  for (const auto& other : block.mbarriers)
    if (other->offset == barrier.offset) found = other.get();  // the last one that was initialised there
  return found;
}

}  // namespace

/// What all others wait for in the end, and why that does not come: the end of the chain of waits.
class DeadlockRoot {
 public:
  explicit DeadlockRoot(const std::vector<std::unique_ptr<Thread>>& threads,
                        const NamedBarrier& cluster_barrier)
      : cluster_barrier_(cluster_barrier) {
    for (const auto& thread : threads) threads_.push_back(thread.get());
    for (const Thread* thread : threads_) {
      const void* const key = waits_for(*thread);
      if (!key) continue;
      auto node = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& one) { return one.key == key; });
      if (node == nodes_.end()) node = nodes_.insert(nodes_.end(), Node{key, {}, {}, {}});
      node->waiting.push_back(thread);
    }
    for (Node& node : nodes_) add_edges(node);
    // Of what nobody has ever come to, it is not known who should. It explains nothing that a thread waits
    // there which owes an arrival elsewhere.
    for (Node& node : nodes_)
      for (size_t i = 0; i < nodes_.size(); ++i)
        if (is_unknown(nodes_[i])) node.owe.erase(i);
    find_root();
  }

  /// Two lines; empty if nobody waits for what others do.
  std::string write() const {
    if (!root_) return "";
    if (const std::string circle = circle_from_the_start(); !circle.empty()) return circle;
    const std::vector<const Thread*>& waiting = root_->waiting;
    const Thread& first = *waiting.front();
    const std::string who = names_of(waiting);
    const std::string begin =
        who + (are_several(who) ? " wait at " : " waits at ") + own_place(first.wait.where);
    if (is_at_mbarrier(first)) {
      const Mbarrier& barrier = mbarrier_of(first);
      return begin + " for " + name_of(barrier) +
             print(", phase %llu: ", static_cast<unsigned long long>(barrier.phase)) +
             what_is_missing(barrier) + (has_looked_late(waiting) ? early_wait("\n  ") : "") + "\n  " +
             why(barrier) + (late_at(*root_, barrier) || has_looked_late(waiting) ? "" : early_wait("\n  ")) +
             "\n  ";
    }
    const std::string waits = begin + " in " + first.wait.what + why_of_others(first) + "\n  ";
    const std::string spins = loop_of_absent();
    return spins.empty() ? waits : spins + "\n  " + waits;
  }

  /// Of an array of barriers at which nobody has ever arrived, each is waited for, by as many threads as it
  /// counts: a circle, if these threads are the ones that arrive. Nobody may owe an arrival elsewhere.
  std::string circle_from_the_start() const {
    if (rank(*root_) < nobody) return "";
    const auto has_begun = [](const Node& node) {
      const Thread& first = *node.waiting.front();
      if (!is_at_mbarrier(first)) return true;
      const Mbarrier& barrier = mbarrier_of(first);
      return !is_unused(barrier) || other_end(barrier) || node.waiting.size() != barrier.expected;
    };
    for (const Node& node : nodes_) {
      if (has_begun(node)) continue;
      const Mbarrier& barrier = mbarrier_of(*node.waiting.front());
      std::string waits;
      size_t waited_for = 0;
      for (const Node& other : nodes_) {
        if (has_begun(other)) continue;
        const Thread& first = *other.waiting.front();
        if (!is_sibling(barrier, mbarrier_of(first))) continue;
        const std::string who = names_of(other.waiting);
        waits +=
            (waits.empty() ? "" : ", ") + who +
            (waits.empty() ? (are_several(who) ? " wait at " : " waits at ") + own_place(first.wait.where)
                           : "") +
            " for " + name_of(mbarrier_of(first));
        ++waited_for;
      }
      const auto& all = barrier.block->mbarriers;
      const auto siblings =
          std::count_if(all.begin(), all.end(), [&](const auto& one) { return is_sibling(barrier, *one); });
      if (waited_for < 2 || waited_for != static_cast<size_t>(siblings)) continue;
      return waits + ": nobody has ever arrived at any of these" +
             "\n  if only those who wait arrive there, they wait for each other from the start: the first "
             "wait of "
             "one must have parity 1, which passes at once\n  ";
    }
    return "";
  }

  /// Where those who are awaited look at a place that nobody changes any more: what they do, which explains
  /// more than that others wait for them.
  std::string loop_of_absent() const {
    std::vector<const Thread*> absent;
    for (const Comer& comer : comers_to(*root_)) absent.push_back(comer.thread);
    const auto spins = [](const Thread* thread) {
      return !thread->done && thread->wait.kind == WaitKind::poll && !thread->wait.object;
    };
    if (absent.empty() || !std::all_of(absent.begin(), absent.end(), spins)) return "";
    const Thread& first = *absent.front();
    const std::string names = names_of(absent);
    return names + (are_several(names) ? " loop for ever at " : " loops for ever at ") +
           own_place(first.wait.where) + ": " + first.wait.what + " brings " +
           (first.wait.argument ? print("%lld", static_cast<long long>(first.wait.argument - 1))
                                : "the same") +
           " each time, and no thread that can run changes that" + blocks_not_begun(first);
  }

  /// A loop that waits for blocks which have not begun: a plain launch does not promise that they run at one
  /// time.
  static std::string blocks_not_begun(const Thread& thread) {
    const BlockIds& ids = *thread.ids.block;
    const auto blocks = static_cast<unsigned long long>(ids.grid_dim.count());
    if (ids.cooperative || blocks == ids.cluster_dim.count() || !is_global(thread, thread.looks_at))
      return "";
    return print(
        "; is it another of the %llu blocks that should? Those of a plain launch need not run at one time, "
        "and here do not: that takes cudaLaunchCooperativeKernel",
        blocks);
  }

  static bool is_global(const Thread& thread, const void* object) {
    const auto& blocks = thread.cluster.blocks();
    return object && std::none_of(blocks.begin(), blocks.end(),
                                  [&](const auto& block) { return block->shared.contains(object); });
  }

  /// Null if it is no mbarrier.
  const Mbarrier* mbarrier() const {
    return root_ && is_at_mbarrier(*root_->waiting.front()) ? &mbarrier_of(*root_->waiting.front()) : nullptr;
  }

 private:
  struct Node {
    const void* key;  ///< what its threads wait for
    std::vector<const Thread*> waiting;
    /// Other nodes, at which threads wait that must come here: those that cannot have come yet, and those
    /// that should have before they began to wait.
    std::set<size_t> must, owe;
  };
  enum Rank { bytes, missed, first_lap, partial, exited, owed, nobody, others, last };

  static const void* waits_for(const Thread& thread) {
    if (thread.done) return nullptr;
    switch (thread.wait.kind) {
      case WaitKind::mbarrier:
      case WaitKind::poll:
      case WaitKind::block_barrier:
        return thread.wait.object;
      case WaitKind::warp:
        return thread.warp;
      case WaitKind::wgmma:
        return &thread.block->warpgroups[thread.ids.rank / kWarpgroupThreads];
      case WaitKind::registers:
        return &thread.block->free_registers;
      case WaitKind::none:
      case WaitKind::copies:
      case WaitKind::stores:
        break;
    }
    return nullptr;
  }

  const Node* node_of(const void* key) const {
    const auto node =
        std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& one) { return one.key == key; });
    return node == nodes_.end() ? nullptr : &*node;
  }

  // --- who must come

  struct Comer {
    const Thread* thread;
    bool owes;  ///< it has passed what comes before its arrival
  };

  /// Did the thread get through the wait that comes before its arrival in this phase?
  static bool owes(const Mbarrier& barrier, const Thread& thread) {
    const Mbarrier* const here = other_end(barrier);
    if (!here) return false;
    for (const auto& other : thread.block->mbarriers) {
      if (other->offset != here->offset) continue;
      const uint64_t seen = seen_by(*other, thread);
      // Who waits until the slot is filled once more will release that, and not what was there before.
      if (!barrier.is_full && waits_for(thread) == other.get() && other->phase > barrier.phase) return true;
      return barrier.is_full ? barrier.phase > 0 && seen >= barrier.phase : seen > barrier.phase;
    }
    return false;
  }

  /// At the same end of another slot of its pipeline.
  static bool has_arrived_at_sibling(const Mbarrier& barrier, const Thread& thread) {
    if (!*barrier.end) return false;
    const auto& all = barrier.block->mbarriers;
    return std::any_of(all.begin(), all.end(), [&](const auto& other) {
      return other->slot != barrier.slot && other->initialised_at == barrier.initialised_at &&
             std::strcmp(other->end, barrier.end) == 0 && has_ever_arrived(*other, thread);
    });
  }

  std::vector<Comer> comers_to(const Node& node, const Mbarrier& barrier) const {
    std::vector<Comer> comers;
    if (late_at(node, barrier) || waits_for_new_slot(node, barrier)) return comers;
    if (!barrier.pending) {
      for (const Mbarrier::Arrival& earlier : with_bytes(barrier.last_arrivals, true)) {
        const auto sent = with_bytes(barrier.arrivals, true);
        const bool again = std::any_of(sent.begin(), sent.end(),
                                       [&](const auto& one) { return one.thread == earlier.thread; });
        if (!again) comers.push_back({earlier.thread, false});
      }
      return comers;
    }
    for (const Thread* thread : threads_)
      if (has_ever_arrived(barrier, *thread) && !came(barrier, thread))
        comers.push_back({thread, owes(barrier, *thread)});
    if (!comers.empty()) return comers;
    // Who empties, or fills, another slot of the ring will do so with this one.
    for (const Thread* thread : threads_)
      if (has_arrived_at_sibling(barrier, *thread)) comers.push_back({thread, owes(barrier, *thread)});
    if (!comers.empty()) return comers;
    // Those who wait for the other end of a slot arrive at this one; of a warpgroup perhaps one thread.
    const Mbarrier* const other = other_end(barrier);
    if (!other) return comers;
    const auto group_came = [&](const Thread& thread) {
      return std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(), [&](const auto& arrival) {
        return arrival.thread->block == thread.block &&
               arrival.thread->ids.rank / kWarpgroupThreads == thread.ids.rank / kWarpgroupThreads;
      });
    };
    for (const Thread* thread : threads_) {
      if (thread->block != barrier.block || group_came(*thread)) continue;
      if (seen_by(*other, *thread) || waits_for(*thread) == other)
        comers.push_back({thread, owes(barrier, *thread)});
    }
    return comers;
  }

  std::vector<Comer> comers_to(const Node& node) const {
    const Thread& first = *node.waiting.front();
    std::vector<Comer> comers;
    if (is_at_mbarrier(first)) return comers_to(node, mbarrier_of(first));
    for (const Thread* thread : threads_)
      if (!thread->done && is_awaited(first, *thread)) comers.push_back({thread, false});
    return comers;
  }

  /// At what is no mbarrier: does the one wait for the other?
  bool is_awaited(const Thread& waiting, const Thread& thread) const {
    switch (waiting.wait.kind) {
      case WaitKind::block_barrier: {
        const auto* barrier = static_cast<const NamedBarrier*>(waiting.wait.object);
        if (barrier->expected) return false;  // any warps may be the ones that a named barrier counts
        if (barrier != &cluster_barrier_ && thread.block != waiting.block) return false;
        const auto& arrivals = barrier->arrivals;
        return std::find(arrivals.begin(), arrivals.end(), &thread) == arrivals.end();
      }
      case WaitKind::warp:
        return thread.warp == waiting.warp && waiting.wait.argument >> thread.lane & 1 &&
               (thread.wait.kind != WaitKind::warp || !(thread.wait.where == waiting.wait.where));
      case WaitKind::wgmma:
        return thread.block == waiting.block &&
               thread.ids.rank / kWarpgroupThreads == waiting.ids.rank / kWarpgroupThreads &&
               thread.wgmma_committed_groups < waiting.wait.argument;
      default:
        return false;
    }
  }

  void add_edges(Node& node) {
    for (const Comer& comer : comers_to(node)) {
      const Node* const at = node_of(waits_for(*comer.thread));
      if (at && at != &node) (comer.owes ? node.owe : node.must).insert(static_cast<size_t>(at - &nodes_[0]));
    }
  }

  bool is_unknown(const Node& node) const {
    const Thread& first = *node.waiting.front();
    if (!is_at_mbarrier(first) || !comers_to(node).empty()) return false;
    const Mbarrier& barrier = mbarrier_of(first);
    return barrier.pending && barrier.times_arrived.empty() && !late_at(node, barrier) &&
           !waits_for_new_slot(node, barrier);
  }

  // --- the end of the chain

  std::set<size_t> reach(size_t from) const {
    std::set<size_t> found;
    std::vector<size_t> next = {from};
    while (!next.empty()) {
      const Node& node = nodes_[next.back()];
      next.pop_back();
      for (const auto* edges : {&node.must, &node.owe})
        for (const size_t to : *edges)
          if (found.insert(to).second) next.push_back(to);
    }
    return found;
  }

  void find_root() {
    std::vector<std::set<size_t>> reached;
    for (size_t i = 0; i < nodes_.size(); ++i) reached.push_back(reach(i));
    // In a circle, those who owe an arrival have broken it.
    const auto is_broken_elsewhere = [&](size_t i) {
      return !nodes_[i].must.empty() && std::any_of(reached[i].begin(), reached[i].end(),
                                                    [&](size_t to) { return nodes_[to].must.empty(); });
    };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const bool is_end = std::all_of(reached[i].begin(), reached[i].end(),
                                      [&](size_t to) { return reached[to].count(i) > 0; });
      if (is_end && !is_broken_elsewhere(i) && (!root_ || comes_before(nodes_[i], *root_)))
        root_ = &nodes_[i];
    }
    // Who has never had a turn holds up a ring that others read in theirs.
    for (const Node& node : nodes_) {
      const Thread& first = *node.waiting.front();
      const Mbarrier* const turn =
          is_at_mbarrier(first) ? turn_of_others(mbarrier_of(first), first) : nullptr;
      if (!turn || seen_by(mbarrier_of(first), first) >= mbarrier_of(first).phase || !node_of(turn)) continue;
      root_ = node_of(turn);
      served_ = &node;
    }
  }

  bool comes_before(const Node& one, const Node& other) const {
    if (rank(one) != rank(other)) return rank(one) < rank(other);
    const Thread &a = *one.waiting.front(), &b = *other.waiting.front();
    if (!is_at_mbarrier(a) || !is_at_mbarrier(b)) return is_at_mbarrier(a) < is_at_mbarrier(b);
    // Of two that nobody has come to: those who wait at the one may owe the arrivals of the other, unless
    // they are too few.
    const bool may_fill = one.waiting.size() >= mbarrier_of(b).pending,
               may_be_filled = other.waiting.size() >= mbarrier_of(a).pending;
    if (rank(one) == nobody && may_fill != may_be_filled) return may_fill;
    const unsigned block = a.block->ids.rank_in_cluster, other_block = b.block->ids.rank_in_cluster;
    return block != other_block ? block < other_block : mbarrier_of(a).offset < mbarrier_of(b).offset;
  }

  /// What explains most comes first.
  Rank rank(const Node& node) const {
    const Thread& first = *node.waiting.front();
    if (first.wait.kind == WaitKind::registers) return bytes;
    if (!is_at_mbarrier(first)) return comers_to(node).empty() && !holds_up_others(node) ? last : others;
    const Mbarrier& barrier = mbarrier_of(first);
    if (!barrier.pending) return bytes;
    if (late_at(node, barrier)) return missed;
    if (waits_for_new_slot(node, barrier)) return first_lap;
    const std::vector<const Thread*> absent = absent_from(barrier);
    if (std::any_of(absent.begin(), absent.end(), [](const Thread* thread) { return thread->done; }))
      return exited;
    if (!with_bytes(barrier.arrivals, false).empty() && absent.empty()) return partial;
    const std::vector<Comer> comers = comers_to(node, barrier);
    if (std::any_of(comers.begin(), comers.end(), [](const Comer& comer) { return comer.owes; })) return owed;
    if (!absent.empty()) return others;
    return nodes_.size() == 1 || holds_up_others(node) ? nobody : last;
  }

  bool holds_up_others(const Node& node) const {
    const auto number = static_cast<size_t>(&node - &nodes_[0]);
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& other) {
      return other.must.count(number) > 0 || other.owe.count(number) > 0;
    });
  }

  /// A thread that waits for the phase in progress and wants one that has ended; null if there is none.
  static const Thread* late_at(const Node& node, const Mbarrier& barrier) {
    for (const Thread* thread : node.waiting)
      if (has_missed(barrier, *thread)) return thread;
    return nullptr;
  }

  /// Who fills a slot for the first time must find it empty. Does a thread wait until a new one is emptied?
  bool waits_for_new_slot(const Node& node, const Mbarrier& barrier) const {
    const Mbarrier* const full = other_end(barrier);
    if (!full || barrier.is_full || !is_unused(barrier) || !is_unused(*full) || !node_of(full)) return false;
    const Thread::Seen& seen = node.waiting.front()->last_seen;
    const bool second_lap =
        seen.barrier && seen.barrier->initialised_at == barrier.initialised_at &&
        (*barrier.end ? seen.barrier->slot >= barrier.slot : seen.barrier->offset >= barrier.offset);
    return !second_lap;
  }

  // --- words

  static std::string what_is_missing(const Mbarrier& barrier) {
    if (barrier.pending) return print("%u of %u arrivals missing", barrier.pending, barrier.expected);
    if (barrier.missing_bytes < 0)
      return print("%lld bytes more than expected have come", static_cast<long long>(-barrier.missing_bytes));
    return print("%lld of %lld bytes missing", static_cast<long long>(barrier.missing_bytes),
                 static_cast<long long>(barrier.expected_bytes));
  }

  std::string why(const Mbarrier& barrier) const {
    if (!barrier.pending) return why_of_bytes(barrier);
    if (const Thread* const late = late_at(*root_, barrier)) return why_of_missed(barrier, *late);
    if (waits_for_new_slot(*root_, barrier)) return why_of_new_slot(barrier);
    if (served_) return why_of_turn(barrier);
    if (const std::string held = all_slots_held(barrier); !held.empty()) return held;
    std::vector<const Thread*> absent = absent_from(barrier);
    if (!absent.empty()) {
      const Mbarrier::Arrival* last_one = nullptr;
      for (const Mbarrier::Arrival& arrival : barrier.last_arrivals)
        if (!arrival.bytes && arrival.thread == absent.front()) last_one = &arrival;
      // Who has missed phases, or passed a wait too early, may have made a wrong number of steps itself.
      const std::string passed = passed_by(barrier);
      return names_of(absent) + " arrived in the phase before (" + own_place(last_one->where) + "), and " +
             where_now(absent, /*counts_steps=*/passed.empty() && early_wait("").empty()) + passed;
    }
    std::string text;
    if (const auto arrivals = with_bytes(barrier.arrivals, false); !arrivals.empty()) {
      std::vector<const Thread*> those;
      for (const Mbarrier::Arrival& arrival : arrivals) those.push_back(arrival.thread);
      text = "only " + names_of(those) + " arrived (" + own_place(arrivals.front().where) + ")";
    } else {
      text = barrier.phase ? "nobody arrived in this phase" : "nobody has ever arrived there";
      if (barrier.times_arrived.empty()) {
        for (const std::string& cause : {held_by_those_who_wait(barrier), arrived_at_one_slot(barrier),
                                         arrived_in_other_blocks(barrier)})
          if (!cause.empty()) return text + cause;
        text += first_wait_of_each_block(barrier) + arrivals_elsewhere(barrier);
      }
    }
    std::vector<const Thread*> gone;
    for (const Thread* thread : threads_)
      if (thread->done && !thread->warp->live) gone.push_back(thread);
    keep_awaited(barrier, gone);
    const std::string peers = of_other_end(barrier);
    // Of those who should arrive, some did: the rest may be gone.
    const bool says_gone = !gone.empty() && (peers.empty() || !barrier.arrivals.empty());
    if (!says_gone) return peers.empty() ? text : text + "; " + peers;
    const std::string names = names_of(gone);
    return text + "; " + names + (are_several(names) ? " have" : " has") + " exited";
  }

  /// "; warp 2 arrived twice at full[1] (gemm.cuh:82)": of a barrier that nobody has come to, who came to the
  /// same end of other slots, or from another block to the barrier at the same place of others.
  std::string arrivals_elsewhere(const Mbarrier& barrier) const {
    std::string text;
    int named = 0;
    for (const Block* block : blocks()) {
      for (const auto& other : block->mbarriers) {
        if (other.get() == &barrier) continue;
        const bool is_own = block == barrier.block;
        if (is_own ? !is_sibling(barrier, *other) : other->offset != barrier.offset) continue;
        std::vector<const Thread*> those;
        for (const Thread* thread : threads_)
          if (has_ever_arrived(*other, *thread) && (is_own || thread->block != block || is_unheard(*other)))
            those.push_back(thread);
        if (those.empty()) continue;
        if (named++ == kMostGroups) return text + ", and elsewhere";
        const std::string where = place_of_arrival(*other, *those.front());
        text += "; " + names_of(those) + " arrived " + times(other->times_arrived[those.front()->number]) +
                " at " + name_of(*other) + (is_own ? "" : " of " + describe(*block)) + where;
      }
    }
    return text;
  }

  /// "; warps 0-1 arrived twice at empty[1] (gemm.cuh:60): ...": of a slot that nobody has come to, those who
  /// came again and again to another one, although their waits go round the ring.
  std::string arrived_at_one_slot(const Mbarrier& barrier) const {
    if (!other_end(barrier)) return "";
    for (const Mbarrier* slot : siblings_of(barrier)) {
      std::vector<const Thread*> those;
      for (const Thread* thread : threads_)
        if (has_ever_arrived(*slot, *thread) && slot->times_arrived[thread->number] > 1 &&
            has_waited_at_other_end(barrier, *thread) && has_waited_at_other_end(*slot, *thread))
          those.push_back(thread);
      if (those.empty()) continue;
      const uint32_t often = slot->times_arrived[those.front()->number];
      std::erase_if(those, [&](const Thread* one) { return slot->times_arrived[one->number] != often; });
      return "; " + names_of(those) + " arrived " + times(often) + " at " + name_of(*slot) +
             place_of_arrival(*slot, *those.front()) + ": is the index there that of the slot?";
    }
    return "";
  }

  /// In its own block. Of waits that passed on the first lap it is not known whose they were.
  static bool has_waited_at_other_end(const Mbarrier& barrier, const Thread& thread) {
    const Mbarrier* const other = other_end(barrier);
    const Mbarrier* const own = other ? counterpart_in(*thread.block, *other) : nullptr;
    return own && (barrier.is_full ? !own->phases_seen.empty() : seen_by(*own, thread) > 0);
  }

  /// "; warps 0-7 of block (0,0,0) arrived at its own (gemm.cuh:137), ...": of a barrier that nobody has come
  /// to, those who came to the one at the same place of their own block, and are where those of this block
  /// are, too: behind the arrival. Nothing if these may still come.
  std::string arrived_in_other_blocks(const Mbarrier& barrier) const {
    std::vector<const Block*> blocks;
    std::vector<const Thread*> those, silent;  // of the first such block, and of the block that waits
    for (const Thread* thread : threads_) {
      const Mbarrier* const other =
          thread->block == barrier.block ? nullptr : counterpart_in(*thread->block, barrier);
      if (!other || !has_ever_arrived(*other, *thread)) continue;
      if (blocks.empty() || blocks.back() != thread->block) blocks.push_back(thread->block);
      if (thread->block != blocks.front()) continue;
      const Thread& here = *barrier.block->warps[thread->warp->index].lanes[thread->lane];
      const bool is_alike = silent.empty() || (here.done ? silent.front()->done
                                                         : !silent.front()->done &&
                                                               silent.front()->wait.where == here.wait.where);
      if (!is_alike || !is_behind_like(here, *thread)) return "";
      those.push_back(thread);
      silent.push_back(&here);
    }
    if (those.empty()) return "";
    const auto came = [&](const Thread& one) {
      return std::find(those.begin(), those.end(), &one) != those.end();
    };
    return "; " + names_of_lanes(*blocks.front(), came) + " of" + names_of_blocks(blocks) + " arrived at " +
           (blocks.size() > 1 ? "theirs" : "its own") +
           place_of_arrival(*counterpart_in(*blocks.front(), barrier), *those.front()) + ", and those of " +
           describe(*barrier.block) + " " +
           where_now(silent, /*counts_steps=*/false, /*are_lanes=*/those.size() > 1) +
           ": does this block need this wait, or should they arrive here, too?";
  }

  /// Has it exited, or does it wait where all come together, as the other does, which has arrived?
  static bool is_behind_like(const Thread& here, const Thread& other) {
    if (here.done) return true;
    return here.wait.kind == WaitKind::block_barrier && other.wait.kind == WaitKind::block_barrier &&
           !other.done && here.wait.where == other.wait.where;
  }

  std::vector<const Block*> blocks() const {
    std::vector<const Block*> all;
    for (const Thread* thread : threads_)
      if (all.empty() || all.back() != thread->block) all.push_back(thread->block);
    return all;
  }

  /// Barriers at the same end of all slots.
  static std::vector<const Mbarrier*> siblings_of(const Mbarrier& barrier) {
    std::vector<const Mbarrier*> siblings;
    for (const auto& other : barrier.block->mbarriers)
      if (is_sibling(barrier, *other)) siblings.push_back(other.get());
    return siblings;
  }

  /// Of threads that release slots, and wait for one more than there are, holding all.
  std::string all_slots_held(const Mbarrier& empty) const {
    if (!other_end(empty) || empty.is_full || !empty.arrivals.empty()) return "";
    const std::vector<const Mbarrier*> slots = siblings_of(empty);
    if (slots.size() < 2) return "";
    const auto releases_of_group = [&](const Thread& thread) {
      uint64_t most = 0;
      for (const Thread* other : threads_) {
        if (other->block != empty.block ||
            other->ids.rank / kWarpgroupThreads != thread.ids.rank / kWarpgroupThreads)
          continue;
        uint64_t releases = 0;
        for (const Mbarrier* slot : slots)
          if (has_ever_arrived(*slot, *other)) releases += slot->times_arrived[other->number];
        most = std::max(most, releases);
      }
      return most;
    };
    std::vector<const Thread*> those;
    uint64_t waited = 0, released = 0;
    std::string where;
    for (const Thread* thread : threads_) {
      if (thread->block != empty.block || thread->done || !is_at_mbarrier(*thread)) continue;
      const auto filled = [&](const Mbarrier* slot) { return other_end(*slot) == &mbarrier_of(*thread); };
      if (std::none_of(slots.begin(), slots.end(), filled)) continue;
      uint64_t waits = 0;
      for (const Mbarrier* slot : slots)
        if (other_end(*slot)) waits += seen_by(*other_end(*slot), *thread);
      const uint64_t releases = releases_of_group(*thread);
      if (!releases || waits < releases + slots.size()) continue;
      if (those.empty()) waited = waits, released = releases;
      if (waits != waited || releases != released) continue;
      those.push_back(thread);
      for (const Mbarrier* slot : slots)
        if (const std::string place = place_of_arrival(*slot, *thread); where.find(place) == where.npos)
          where += place;
    }
    if (those.empty()) return "";
    const std::string who = names_of(those), full = name_of(mbarrier_of(*those.front()));
    const bool several = are_several(who);
    return who + (several ? " have" : " has") + " waited " + times(waited) + " for a slot of " +
           full.substr(0, full.rfind('[')) + ", and released " + times(released) + where +
           (waited / 2 == released ? ", one release for two waits" : "") +
           (several ? ": they hold" : ": it holds") + print(" all %zu slots, and", slots.size()) +
           (several ? " wait" : " waits") + " for one more at " + own_place(those.front()->wait.where) +
           ": is a release missing, or a wait too many?";
  }

  /// The same of a cuda::pipeline, all of whose threads acquire and release.
  std::string held_in_pipeline(const Mbarrier& consumed) const {
    const std::vector<const Thread*>& waiting = root_->waiting;
    const std::vector<const Mbarrier*> slots = siblings_of(consumed);
    if (nodes_.size() != 1 || waiting.size() != consumed.expected ||
        waiting.size() != consumed.block->ids.threads)
      return "";
    for (const Mbarrier* slot : slots)
      for (const Thread* thread : waiting)
        if (!slot->times_arrived.empty() || slot->waits.empty() || slot->waits[thread->ids.rank] != 1)
          return "";
    const std::string who = names_of(waiting);
    const bool several = are_several(who);
    return ": " + who + (several ? " have" : " has") + " acquired " +
           (slots.size() > 1 ? print("all %zu slots", slots.size()) : "the slot") +
           (several ? ", and acquire" : ", and acquires") + " one more before any release";
  }

  /// Of threads that fill slots and empty them themselves, and fill one more than there are.
  std::string held_by_those_who_wait(const Mbarrier& empty) const {
    if (empty.name && std::strcmp(empty.name, "pipeline.consumed") == 0) return held_in_pipeline(empty);
    const Mbarrier* const full = other_end(empty);
    const std::vector<const Thread*>& waiting = root_->waiting;
    if (!full || empty.is_full || nodes_.size() != 1 || waiting.size() != empty.expected) return "";
    const bool have_filled = std::all_of(waiting.begin(), waiting.end(), [&](const Thread* thread) {
      return has_ever_arrived(*full, *thread);
    });
    if (!have_filled) return "";
    for (const Mbarrier* slot : siblings_of(empty))
      if (!slot->times_arrived.empty()) return "";
    const std::string who = names_of(waiting);
    return ": " + who + (are_several(who) ? " have" : " has") + " filled " +
           (siblings_of(empty).size() > 1 ? print("all %zu slots", siblings_of(empty).size()) : "the slot") +
           (are_several(who) ? ", and release one only behind this wait"
                             : ", and releases one only behind this wait") +
           ": is one slot more filled ahead than there are?";
  }

  /// Of a barrier without slots that each block of a cluster waits for at once: whoever arrives at one may be
  /// those who wait for another.
  std::string first_wait_of_each_block(const Mbarrier& barrier) const {
    if (other_end(barrier) || barrier.early_pass.thread || barrier.phase) return "";
    std::set<const Block*> blocks, waiting;
    for (const Thread* thread : threads_) {
      blocks.insert(thread->block);
      if (!is_at_mbarrier(*thread)) continue;
      const Mbarrier& other = mbarrier_of(*thread);
      if (other.offset == barrier.offset && other.block == thread->block && is_unused(other))
        waiting.insert(thread->block);
    }
    if (blocks.size() < 2 || waiting.size() != blocks.size()) return "";
    return print(
        "; each of the %zu blocks waits for its own, and if those who wait are the ones who arrive, "
        "nobody can before this wait: the first wait must have parity 1, which passes at once",
        blocks.size());
  }

  /// No thread has waited there.
  static bool is_unheard(const Mbarrier& barrier) {
    return barrier.phases_seen.empty() && barrier.waiting.empty();
  }
  /// Nor at the barriers at the same place in other blocks.
  bool is_unheard_in_all_blocks(const Mbarrier& barrier) const {
    const std::vector<const Block*> all = blocks();
    return std::all_of(all.begin(), all.end(), [&](const Block* block) {
      const Mbarrier* const other = counterpart_in(*block, barrier);
      return !other || is_unheard(*other);
    });
  }

  static std::string times(uint64_t count) {
    return count == 1   ? "once"
           : count == 2 ? "twice"
                        : print("%llu times", static_cast<unsigned long long>(count));
  }

  /// Those of the threads that have exited which may be awaited, as far as their number tells, or an arrival
  /// of their warp. A block may have warps without a role.
  static void keep_awaited(const Mbarrier& barrier, std::vector<const Thread*>& gone) {
    std::set<const Warp*> warps;
    for (const Thread* thread : gone) warps.insert(thread->warp);
    if (barrier.arrivals.empty() || gone.size() == barrier.pending || warps.size() == barrier.pending) return;
    std::erase_if(gone, [&](const Thread* thread) { return !is_of_warp_that_arrives(*thread, barrier); });
  }

  /// Has one of those who wait come too late to another slot? Then what early_wait() says is why it waits
  /// here.
  static bool has_looked_late(const std::vector<const Thread*>& waiting) {
    const Block& block = *waiting.front()->block;
    if (!explain_wrong_wait(block, nullptr).empty()) return false;
    for (const auto& barrier : block.mbarriers)  // the first, which is named
      if (const Thread* const late = barrier->late_look.thread)
        return std::find(waiting.begin(), waiting.end(), late) != waiting.end();
    return false;
  }

  /// Of the block of those who wait, after these characters; or nothing.
  std::string early_wait(const char* before) const {
    const std::string text = explain_early_wait(*root_->waiting.front()->block, nullptr);
    return text.empty() ? text : before + text;
  }

  std::string why_of_bytes(const Mbarrier& barrier) const {
    std::string text = print("%lld bytes were expected", static_cast<long long>(barrier.expected_bytes));
    std::set<std::string> places;
    for (const Mbarrier::Arrival& arrival : with_bytes(barrier.arrivals, false))
      if (const std::string place = own_place(arrival.where); places.insert(place).second)
        text += " (" + place + ")";
    if (const std::string elsewhere = bytes_elsewhere(barrier); !elsewhere.empty())
      return text + "; " + elsewhere;
    const std::string arrived = list(with_bytes(barrier.arrivals, true), nullptr, /*says_bytes=*/true);
    return text +
           (arrived.empty() ? ", and none came" + bytes_to_other_blocks_alone(barrier)
                            : ", and these came:" + arrived) +
           (barrier.missing_bytes < 0 ? explain_surplus(barrier) : "");
  }

  /// No bytes have ever come to this barrier, but to those at the same place in other blocks.
  std::string bytes_to_other_blocks_alone(const Mbarrier& barrier) const {
    if (barrier.has_had_bytes) return "";
    std::vector<const Block*> receivers;
    for (const Block* block : blocks()) {
      const Mbarrier* const other = counterpart_in(*block, barrier);
      if (other && other->has_had_bytes) receivers.push_back(block);
    }
    if (receivers.empty()) return "";
    return ": bytes have never come to " + describe(*barrier.block) + ", but only to" +
           names_of_blocks(receivers) + ": does this block receive any, or has their sender left it out?";
  }

  /// As many bytes as are missing have come at another barrier that did not expect them.
  std::string bytes_elsewhere(const Mbarrier& barrier) const {
    if (barrier.missing_bytes <= 0) return "";
    for (const auto& other : barrier.block->mbarriers)
      if (other->missing_bytes == -barrier.missing_bytes)
        return print("as many bytes as are missing, %lld, came at ",
                     static_cast<long long>(barrier.missing_bytes)) +
               name_of(*other) + ", unexpected, of" + list(with_bytes(other->arrivals, true)) +
               ": is that the wrong barrier?";
    return bytes_in_other_blocks(barrier);
  }

  /// "block (2,0,0) sent 65536 bytes by ... to inbox_full of block (3,0,0), where nobody expects bytes: ...":
  /// of the barriers at the same place, some lack the bytes that have come at others.
  std::string bytes_in_other_blocks(const Mbarrier& barrier) const {
    int64_t balance = 0;
    std::string text;
    int named = 0;
    uint32_t mask = 0;
    for (const Block* block : blocks()) {
      const Mbarrier* const other = counterpart_in(*block, barrier);
      if (!other) continue;
      balance += other->missing_bytes;
      if (other->missing_bytes >= 0) continue;
      if (other->expected_bytes || other->last_expected_bytes || !other->waiting.empty()) return "";
      const std::vector<Mbarrier::Arrival> came = with_bytes(other->arrivals, true);
      if (came.empty()) return "";
      std::vector<const Block*> senders;
      for (const Mbarrier::Arrival& arrival : came) {
        const Block* const sender = arrival.thread->block;
        mask = arrival.multicast_mask;
        // What a block sends that lacks bytes, too, is meant for others: they may not have come so far.
        const Mbarrier* const its_own = counterpart_in(*sender, barrier);
        if (mask ? mask >> barrier.block->ids.rank_in_cluster & 1 : its_own && its_own->missing_bytes > 0)
          return "";
        if (std::find(senders.begin(), senders.end(), sender) == senders.end()) senders.push_back(sender);
      }
      if (named++ >= kMostGroups) continue;
      const char* const what = came.front().what + std::strlen("bytes of a ");
      text += (text.empty() ? "" : ", and") + names_of_blocks(senders) +
              (text.empty()
                   ? print(" sent %lld bytes by ", static_cast<long long>(-other->missing_bytes)) + what +
                         " (" + own_place(came.front().where) + ") to " + name_of(barrier) + " of "
                   : " to that of ") +
              describe(*block);
    }
    if (text.empty() || balance) return "";
    return text.substr(1) + (named > kMostGroups ? ", and so on" : "") + ", where nobody expects bytes: " +
           (mask ? "does the mask name a wrong block?" : "is the rank of the receiver wrong?");
  }

  /// Those who release a slot wait for it like those who fill it, and those of another pipeline do not come.
  std::string wrong_pipeline(const Mbarrier& barrier, const std::vector<const Thread*>& those) const {
    if (!other_end(barrier) || barrier.is_full) return "";
    const auto releases = [&](const Thread* thread) { return !place_of_arrival(barrier, *thread).empty(); };
    if (!std::all_of(those.begin(), those.end(), releases)) return "";
    for (const Node& node : nodes_) {
      const Thread& waits = *node.waiting.front();
      if (!is_at_mbarrier(waits)) continue;
      const Mbarrier& other = mbarrier_of(waits);
      if (!is_unused(other) || !other_end(other) || !other.is_full || is_sibling(barrier, other)) continue;
      const bool several = are_several(names_of(those));
      return names_of(those) + (several ? " release " : " releases ") + name_of(barrier) +
             place_of_arrival(barrier, *those.front()) + (several ? " themselves" : " itself") +
             "; nobody has ever arrived at " + name_of(other) + ", for which " + names_of(node.waiting) +
             (are_several(names_of(node.waiting)) ? " wait" : " waits") + ": is this the wrong pipeline?";
    }
    return "";
  }

  std::string why_of_missed(const Mbarrier& barrier, const Thread& late) const {
    const uint64_t seen = seen_by(barrier, late);
    std::vector<const Thread*> those, others;
    for (const Thread* thread : root_->waiting)
      if (seen_by(barrier, *thread) == seen) those.push_back(thread);
    const std::string names = names_of(those);
    if (const std::string ring = explain_restarted_ring(*late.block, &late, &late); !ring.empty())
      return ring;
    if (const std::string early = explain_early_release(barrier); !early.empty() && !barrier.is_full)
      return early;
    for (const std::string& pipeline : {wrong_pipeline(barrier, those), explain_wrong_pipeline(barrier)})
      if (!pipeline.empty()) return pipeline;
    for (const Thread* thread : threads_)
      if (thread->block == late.block && seen_by(barrier, *thread) > seen) others.push_back(thread);
    if (const std::string left = explain_left_behind(barrier, those); !left.empty()) return left;
    if ((barrier.phase - seen) % 2 && !seen && barrier.phase == 1)
      return print("wrong parity, %u, or an arrival too early: ", static_cast<unsigned>(late.wait.argument)) +
             names + " did not wait for phase 0, of parity 0, which has ended with the arrivals of" +
             list(with_bytes(barrier.last_arrivals, false));
    if (!others.empty())
      return names +
             print(" did not wait for phases %llu to %llu, ", static_cast<unsigned long long>(seen),
                   static_cast<unsigned long long>(barrier.phase - 1)) +
             names_of(others) + " did for some: is this slot, at this step, for others?";
    if ((barrier.phase - seen) % 2)
      return print("wrong parity, %u: ", static_cast<unsigned>(late.wait.argument)) + names +
             print(" must wait for phase %llu, of parity %u, which has ended; phase %llu comes after it",
                   static_cast<unsigned long long>(barrier.phase - 1),
                   static_cast<unsigned>((barrier.phase - 1) % 2),
                   static_cast<unsigned long long>(barrier.phase));
    return names +
           print(" came too late: phases %llu to %llu ended before", static_cast<unsigned long long>(seen),
                 static_cast<unsigned long long>(barrier.phase - 1)) +
           explain_count(barrier, barrier.earlier_arrivals, barrier.last_arrivals);
  }

  /// "nobody has ever arrived there; warps 0-3 arrived once at turn[0] (gemm.cuh:75), for which they wait
  /// themselves: ...", of a turn that never comes.
  std::string why_of_turn(const Mbarrier& turn) const {
    const std::string text = "nobody has ever arrived there";
    const Thread& served = *served_->waiting.front();
    for (const Mbarrier* other : siblings_of(turn)) {
      std::vector<const Thread*> those;
      for (const Thread* thread : threads_)
        if (has_ever_arrived(*other, *thread) && !other->waits.empty() && other->waits[thread->ids.rank])
          those.push_back(thread);
      if (those.empty()) continue;
      const std::string who = names_of(those);
      return text + "; " + who + " arrived " + times(other->times_arrived[those.front()->number]) + " at " +
             name_of(*other) + place_of_arrival(*other, *those.front()) +
             (are_several(who) ? ", for which they wait themselves: should they arrive at "
                               : ", for which it waits itself: should it arrive at ") +
             name_of(turn) + "?";
    }
    const std::string who = names_of(served_->waiting), late = names_of(root_->waiting);
    for (const Mbarrier* other : siblings_of(turn))
      if (const auto& [thread, where, phase] = other->early_pass;
          thread && !other->phase && other != &turn && !other->waits.empty() && other->waits[served.ids.rank])
        return text + "; the wait of " + who + " for " + name_of(*other) + " (" + own_place(where) +
               ") had parity 1, which passes at once: should the first turn be that of " + late +
               "? Phase 0 of " + name_of(mbarrier_of(served)) + ", for which nobody has waited, " +
               (are_several(who) ? "they have" : "it has") + " left to others";
    return text;
  }

  std::string why_of_new_slot(const Mbarrier& barrier) const {
    const unsigned parity = root_->waiting.front()->wait.argument;
    const Mbarrier* const full = other_end(barrier);
    const std::string readers = names_of(node_of(full)->waiting);
    return print("the slot is new, and empty: the first wait for it must have parity %u, and has %u; ",
                 1 - parity, parity) +
           readers + (are_several(readers) ? " wait for " : " waits for ") + name_of(*full);
  }

  /// "lanes 1-31 of warp 0", all of one warp.
  static std::string lanes_of_warp(const std::vector<const Thread*>& threads) {
    if (threads.empty()) return "";
    uint32_t lanes = 0;
    for (const Thread* thread : threads) lanes |= 1u << thread->lane;
    return (threads.size() == 1 ? "lane " : "lanes ") + ranges_of_lanes(lanes) +
           print(" of warp %u", threads.front()->warp->index);
  }

  /// Of threads that wait for what is no mbarrier.
  std::string why_of_others(const Thread& first) const {
    std::vector<const Thread*> absent;
    for (const Comer& comer : comers_to(*root_)) absent.push_back(comer.thread);
    const bool of_lanes = first.wait.kind == WaitKind::warp;  // of which some have come
    const std::string names = of_lanes ? lanes_of_warp(absent) : names_of(absent);
    const bool are_many = of_lanes ? absent.size() > 1 : are_several(names);
    const std::string missing = absent.empty()
                                    ? ""
                                    : "\n  " + names + (are_many ? " have" : " has") + " not come, and " +
                                          where_now(absent, /*counts_steps=*/false, of_lanes && are_many);
    if (first.wait.kind == WaitKind::registers)
      return print(" for %u registers: its threads have %u each, and %u are free for each thread of a warp",
                   static_cast<unsigned>(first.wait.argument), first.warp->registers,
                   first.block->free_registers) +
             "\n  " + registers_of(*first.block);
    if (first.wait.kind != WaitKind::block_barrier) return missing;
    const auto& barrier = *static_cast<const NamedBarrier*>(first.wait.object);
    const size_t expected = barrier.expected ? barrier.expected : barrier.arrived + absent.size();
    return number_of_barrier(first.wait) + print(": %u of %zu threads arrived", barrier.arrived, expected) +
           (barrier.expected ? why_of_some_warps(barrier, *first.block) : missing);
  }

  /// "\n  warps 0-3 arrived there last at turn.cuh:23, twice in all, and have exited": of a barrier for some
  /// warps, those who came before and do not come now; or that nobody else has ever come.
  std::string why_of_some_warps(const NamedBarrier& barrier, const Block& block) const {
    std::vector<const Thread*> absent, others, live;
    for (const Thread* thread : threads_) {
      if (thread->block != &block) continue;
      const auto& arrivals = barrier.arrivals;
      if (std::find(arrivals.begin(), arrivals.end(), thread) != arrivals.end()) continue;
      if (barrier.of_threads[thread->ids.rank].times) absent.push_back(thread);
      others.push_back(thread);
      if (!thread->done) live.push_back(thread);
    }
    if (others.empty()) return "";
    if (absent.empty()) {
      const std::string where = live.empty() ? "the others have exited" : where_others_wait(live);
      return "\n  no other thread has ever arrived there; " + where;
    }
    // Of those who came by one line, where they are now.
    const NamedBarrier::ArrivalsOfThread& first = barrier.of_threads[absent.front()->ids.rank];
    std::erase_if(absent, [&](const Thread* thread) {
      const auto& ever = barrier.of_threads[thread->ids.rank];
      return ever.times != first.times || !(ever.last == first.last);
    });
    return "\n  " + names_of(absent) + " arrived there last at " + own_place(first.last) + ", " +
           times(first.times) + " in all, and " + where_now(absent, /*counts_steps=*/false) +
           (std::all_of(absent.begin(), absent.end(), [](const Thread* thread) { return thread->done; })
                ? turn_too_few(barrier, first.times)
                : "");
  }

  /// Of a barrier that passes a turn on, and has not as often as those come who wait for it.
  static std::string turn_too_few(const NamedBarrier& barrier, uint64_t passed) {
    if (barrier.arrivals.empty()) return "";
    const uint64_t come = barrier.of_threads[barrier.arrivals.front()->ids.rank].times;
    if (come != passed + 1) return "";
    return "; those who wait have come " + times(come) +
           ": was the first turn, or the last, never passed to them?";
  }

  static std::string where_others_wait(const std::vector<const Thread*>& threads) {
    const std::string now = where_now(threads, /*counts_steps=*/false);
    return now.rfind("now ", 0) == 0 ? names_of(threads) + " " + now : now;
  }

  static std::string where_now(const std::vector<const Thread*>& threads, bool counts_steps,
                               bool are_lanes = false) {
    const Thread& first = *threads.front();
    const bool several = are_lanes || are_several(names_of(threads));
    const bool all_done =
        std::all_of(threads.begin(), threads.end(), [](const Thread* thread) { return thread->done; });
    if (all_done)
      return std::string(several ? "have exited" : "has exited") +
             (!counts_steps ? ""
              : several     ? ": they made fewer steps than those who wait"
                            : ": it made fewer steps than those who wait");
    // Those who wait for one thing together, the most first: not all need wait for the same.
    std::vector<std::vector<const Thread*>> groups;
    for (const Thread* thread : threads) {
      if (thread->done) continue;
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
        return thing_waited_for(*group.front()) == thing_waited_for(*thread);
      });
      if (same == groups.end())
        groups.push_back({thread});
      else
        same->push_back(thread);
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const auto& one, const auto& other) { return one.size() > other.size(); });
    if (groups.size() == 1 && groups.front().size() == threads.size())
      return (several ? "now wait at " : "now waits at ") + thing_waited_for(first);
    std::string text;
    for (const auto& group : groups) {
      if (&group - &groups[0] == kMostGroups) return text + ", others elsewhere";
      const std::string who = names_of(group);
      text += (text.empty() ? "of these " : ", ") + who +
              (are_several(who) ? " now wait at " : " now waits at ") + thing_waited_for(*group.front());
    }
    return text;
  }

  static constexpr std::ptrdiff_t kMostGroups = 2;  ///< that a line names

  /// " 2", of a named barrier.
  static std::string number_of_barrier(const Wait& wait) {
    const bool is_named = wait.kind == WaitKind::block_barrier && wait.argument;
    return is_named ? print(" %u", static_cast<unsigned>(wait.argument)) : "";
  }

  /// "gemm.cuh:73 for full[0]".
  static std::string thing_waited_for(const Thread& thread) {
    const std::string where = own_place(thread.wait.where);
    return is_at_mbarrier(thread) ? where + " for " + name_of(mbarrier_of(thread))
                                  : where + " in " + thread.wait.what + number_of_barrier(thread.wait);
  }

  /// Has a thread that waits seen phases end two at a time? Then others went on without it.
  std::string passed_by(const Mbarrier& barrier) const {
    for (const Thread* thread : root_->waiting) {
      const uint64_t passed = barrier.phases_passed.empty() ? 0 : barrier.phases_passed[thread->ids.rank];
      if (passed)
        return print(
            "; %llu phases had ended before warp %u lane %u looked: those who arrive do not wait for it",
            static_cast<unsigned long long>(passed), thread->warp->index, thread->lane);
    }
    return "";
  }

  /// Those who wait for the other end of a slot are the ones who must arrive at this end.
  std::string of_other_end(const Mbarrier& barrier) const {
    const Mbarrier* const other = other_end(barrier);
    if (!other) return "";
    std::vector<const Thread*> have_waited;
    for (const Thread* thread : threads_)
      if (thread->block == barrier.block && seen_by(*other, *thread)) have_waited.push_back(thread);
    if (have_waited.empty()) {
      if (!node_of(other) && is_unheard_in_all_blocks(*other))
        return "no thread has waited for " + name_of(*other) + ", which comes before an arrival here";
      return "";
    }
    // Of a warpgroup that releases a slot, one thread may do so for all.
    std::vector<const Thread*> silent, both;
    for (const Thread* thread : have_waited) {
      const bool group_came =
          std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(), [&](const auto& one) {
            return one.thread->block == thread->block &&
                   one.thread->ids.rank / kWarpgroupThreads == thread->ids.rank / kWarpgroupThreads;
          });
      if (group_came) continue;
      silent.push_back(thread);
      if (waits_for(*thread) == &barrier) both.push_back(thread);
    }
    if (silent.empty()) return of_other_blocks(barrier, *other);
    const std::string names = names_of(silent);
    std::string text = names + " waited for " + name_of(*other);
    if (both.empty()) return text + ", and " + where_now(silent, /*counts_steps=*/false);
    return text + (are_several(names) ? ", and have not arrived here; " : ", and has not arrived here; ") +
           names_of(both) +
           " of these waits here, for the arrival that it owes itself, or another thread of its "
           "warpgroup: release the slot first, and wait then";
  }

  /// "no arrival from block (1,0,0)": all threads of this block who may arrive have. Where the slot is filled
  /// by multicasts, of the blocks that receive them.
  std::string of_other_blocks(const Mbarrier& barrier, const Mbarrier& full) const {
    const uint32_t mask = blocks_that_share(full);
    std::string silent;
    std::set<const Block*> blocks;
    for (const Thread* thread : threads_) {
      const bool came =
          std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(),
                      [&](const auto& arrival) { return arrival.thread->block == thread->block; });
      const bool may_come = !mask || mask >> thread->block->ids.rank_in_cluster & 1;
      if (!came && may_come && blocks.insert(thread->block).second)
        silent += (silent.empty() ? "" : ", ") + describe(*thread->block);
    }
    return silent.empty() ? "" : "no arrival from " + silent;
  }

  const NamedBarrier& cluster_barrier_;
  std::vector<const Thread*> threads_;
  std::vector<Node> nodes_;
  const Node* root_ = nullptr;
  const Node* served_ =
      nullptr;  ///< where the root is a turn that never comes: those who had theirs, and wait
};

/// Writes who waits where. Neighbouring lanes, and warps, that wait alike are named together.
class DeadlockReport {
 public:
  explicit DeadlockReport(const Cluster& cluster)
      : cluster_(cluster), root_(cluster.threads_, cluster.cluster_barrier_) {}

  std::string write(const char* why) {
    if (root_.mbarrier()) remember(root_.mbarrier());
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
    if (limit && lines_.size() + 3 > limit && root_.mbarrier())  // what is cut off is not that of the root
      std::rotate(lines_.begin() + 1, std::find(lines_.begin(), lines_.end(), root_line_),
                  std::find(lines_.begin(), lines_.end(), root_line_) + 1);
    const size_t shown = limit && lines_.size() + 3 > limit ? limit - 4 : lines_.size();
    std::string text = "deadlock: " + root_.write();
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
        lines_.push_back("  likewise" + names_of_blocks({blocks.begin() + 1, blocks.end()}));
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
                       (likewise.empty() ? "" : "; likewise" + names_of_blocks(likewise)));
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
  DeadlockRoot root_;
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
