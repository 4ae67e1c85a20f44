#include "common/cpu_device/kernel/deadlock/wait_graph.hpp"

#include <algorithm>
#include <cstring>

#include "common/cpu_device/kernel/deadlock/mbarriers.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"

namespace cpu_device {

WaitGraph::WaitGraph(const std::vector<std::unique_ptr<Thread>>& threads, const NamedBarrier& cluster_barrier)
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

std::vector<const Block*> WaitGraph::blocks() const {
  std::vector<const Block*> all;
  for (const Thread* thread : threads_)
    if (all.empty() || all.back() != thread->block) all.push_back(thread->block);
  return all;
}

const Mbarrier* WaitGraph::root_mbarrier() const {
  return root_ && is_at_mbarrier(*root_->waiting.front()) ? &mbarrier_of(*root_->waiting.front()) : nullptr;
}

const void* WaitGraph::waits_for(const Thread& thread) {
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

const WaitGraph::Node* WaitGraph::node_of(const void* key) const {
  const auto node =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& one) { return one.key == key; });
  return node == nodes_.end() ? nullptr : &*node;
}

// --- who must come

bool WaitGraph::owes(const Mbarrier& barrier, const Thread& thread) {
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

bool WaitGraph::has_arrived_at_sibling(const Mbarrier& barrier, const Thread& thread) {
  if (!*barrier.end) return false;
  const auto& all = barrier.block->mbarriers;
  return std::any_of(all.begin(), all.end(), [&](const auto& other) {
    return other->slot != barrier.slot && other->initialised_at == barrier.initialised_at &&
           std::strcmp(other->end, barrier.end) == 0 && has_ever_arrived(*other, thread);
  });
}

std::vector<WaitGraph::Comer> WaitGraph::comers_to(const Node& node, const Mbarrier& barrier) const {
  std::vector<Comer> comers;
  if (late_at(node, barrier) || waits_for_new_slot(node, barrier)) return comers;
  if (!barrier.pending) {
    for (const Mbarrier::Arrival& earlier : with_bytes(barrier.last_arrivals, true)) {
      const auto sent = with_bytes(barrier.arrivals, true);
      const bool again = std::any_of(sent.begin(), sent.end(),
                                     [&](const auto& one) { return one.thread == earlier.thread; });
      if (!again) comers.push_back({earlier.thread, false});
    }
    for (const Node& other : nodes_)
      if (may_wait_before_sending(node, other))
        for (const Thread* thread : other.waiting) comers.push_back({thread, false});
    return comers;
  }
  for (const Thread* thread : threads_)
    if (has_ever_arrived(barrier, *thread) && !came(barrier, thread))
      comers.push_back({thread, owes(barrier, *thread)});
  if (!comers.empty()) return comers;
  // Who empties, or fills, another slot of the ring will do so with this one.
  for (const Thread* thread : threads_)
    if (!came(barrier, thread) && has_arrived_at_sibling(barrier, *thread))
      comers.push_back({thread, owes(barrier, *thread)});
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

std::vector<WaitGraph::Comer> WaitGraph::comers_to(const Node& node) const {
  const Thread& first = *node.waiting.front();
  std::vector<Comer> comers;
  if (is_at_mbarrier(first)) return comers_to(node, mbarrier_of(first));
  for (const Thread* thread : threads_)
    if (!thread->done && is_awaited(first, *thread)) comers.push_back({thread, false});
  return comers;
}

bool WaitGraph::is_awaited(const Thread& waiting, const Thread& thread) const {
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

void WaitGraph::add_edges(Node& node) {
  for (const Comer& comer : comers_to(node)) {
    const Node* const at = node_of(waits_for(*comer.thread));
    if (at && at != &node) (comer.owes ? node.owe : node.must).insert(static_cast<size_t>(at - &nodes_[0]));
  }
}

bool WaitGraph::is_unknown(const Node& node) const {
  const Thread& first = *node.waiting.front();
  if (!is_at_mbarrier(first) || !comers_to(node).empty()) return false;
  const Mbarrier& barrier = mbarrier_of(first);
  return barrier.pending && barrier.times_arrived.empty() && !late_at(node, barrier) &&
         !waits_for_new_slot(node, barrier);
}

// --- the end of the chain

std::set<size_t> WaitGraph::reach(size_t from) const {
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

bool WaitGraph::depends_on(const Node& node, const Node& other) const {
  return reach(static_cast<size_t>(&node - &nodes_[0])).count(static_cast<size_t>(&other - &nodes_[0])) > 0;
}

void WaitGraph::find_root() {
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
    if (is_end && !is_broken_elsewhere(i) && (!root_ || comes_before(nodes_[i], *root_))) root_ = &nodes_[i];
  }
  // Of what is not known who must come to it, those may lack who wait for others that took a wrong barrier.
  if (root_mbarrier() && root_mbarrier()->pending && comers_to(*root_).empty())
    for (const Node& node : nodes_)
      if (taken_instead(node)) root_ = &node;
  // Who has never had a turn holds up a ring that others read in theirs.
  for (const Node& node : nodes_) {
    const Thread& first = *node.waiting.front();
    const Mbarrier* const turn = is_at_mbarrier(first) ? turn_of_others(mbarrier_of(first), first) : nullptr;
    if (!turn || seen_by(mbarrier_of(first), first) >= mbarrier_of(first).phase || !node_of(turn)) continue;
    root_ = node_of(turn);
    served_ = &node;
  }
}

const NamedBarrier* WaitGraph::taken_instead(const Node& node) {
  const Thread& first = *node.waiting.front();
  if (first.wait.kind != WaitKind::block_barrier || !first.wait.argument) return nullptr;
  using OfThread = NamedBarrier::ArrivalsOfThread;
  const auto count_comers = [](const NamedBarrier& barrier) {
    return static_cast<size_t>(std::count_if(barrier.of_threads.begin(), barrier.of_threads.end(),
                                             [](const OfThread& one) { return one.times > 0; }));
  };
  const auto& barrier = *static_cast<const NamedBarrier*>(first.wait.object);
  if (count_comers(barrier) != node.waiting.size()) return nullptr;
  const auto has_others = [&](const NamedBarrier& other) {
    return std::equal(
        other.of_threads.begin(), other.of_threads.end(), barrier.of_threads.begin(),
        [](const OfThread& there, const OfThread& here) { return !there.times || !here.times; });
  };
  for (const NamedBarrier& other : first.block->barriers) {
    const size_t comers = count_comers(other);
    if (&other != &barrier && comers && comers < other.expected && other.waiting.empty() && has_others(other))
      return &other;
  }
  return nullptr;
}

bool WaitGraph::comes_before(const Node& one, const Node& other) const {
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

bool WaitGraph::has_left_its_role(const Thread& thread) {
  const Wait& wait = thread.wait;
  if (thread.done) return true;
  if (wait.kind != WaitKind::block_barrier || wait.argument || !thread.mbarrier_waits) return false;
  const auto is_idle_there = [&](const Thread* lane) {
    return !lane || (!lane->done && !lane->mbarrier_waits && lane->wait.kind == wait.kind &&
                     lane->wait.where == wait.where);
  };
  const auto& warps = thread.block->warps;
  return std::any_of(warps.begin(), warps.end(), [&](const Warp& warp) {
    return std::all_of(std::begin(warp.lanes), std::end(warp.lanes), is_idle_there);
  });
}

bool WaitGraph::lacks_first_bytes(const Mbarrier& barrier) {
  return !barrier.phase && !barrier.pending && !barrier.has_had_bytes && barrier.missing_bytes > 0 &&
         std::all_of(barrier.arrivals.begin(), barrier.arrivals.end(),
                     [&](const auto& arrival) { return waits_for(*arrival.thread) == &barrier; });
}

bool WaitGraph::may_wait_before_sending(const Node& bytes, const Node& senders) const {
  const Thread &receives = *bytes.waiting.front(), &sends = *senders.waiting.front();
  if (!is_at_mbarrier(receives) || !is_at_mbarrier(sends)) return false;
  const Mbarrier &inbox = mbarrier_of(receives), &free = mbarrier_of(sends);
  const bool is_new = is_unused(free) && free.times_arrived.empty() && !free.early_pass.thread;
  const bool is_full = other_end(free) && free.is_full;  // which is waited for before a read
  if (!lacks_first_bytes(inbox) || !is_new || is_full || bytes.waiting.size() < free.pending) return false;
  return other_end(free) == &inbox || !node_of(counterpart_in(*free.block, inbox));
}

WaitGraph::Rank WaitGraph::rank(const Node& node) const {
  const Thread& first = *node.waiting.front();
  if (first.wait.kind == WaitKind::registers) return bytes;
  if (!is_at_mbarrier(first)) {
    const bool is_behind_roles = std::any_of(node.waiting.begin(), node.waiting.end(),
                                             [](const Thread* one) { return has_left_its_role(*one); });
    return is_behind_roles || (comers_to(node).empty() && !holds_up_others(node)) ? last : others;
  }
  const Mbarrier& barrier = mbarrier_of(first);
  if (!barrier.pending) return bytes;
  if (late_at(node, barrier)) return missed;
  if (waits_for_new_slot(node, barrier)) return first_lap;
  const std::vector<const Thread*> absent = absent_from(barrier);
  if (std::any_of(absent.begin(), absent.end(), [](const Thread* one) { return has_left_its_role(*one); }))
    return exited;
  if (!with_bytes(barrier.arrivals, false).empty() && absent.empty()) return partial;
  const std::vector<Comer> comers = comers_to(node, barrier);
  if (std::any_of(comers.begin(), comers.end(), [](const Comer& comer) { return comer.owes; })) return owed;
  if (!absent.empty()) return others;
  return nodes_.size() == 1 || holds_up_others(node) ? nobody : last;
}

bool WaitGraph::holds_up_others(const Node& node) const {
  const auto number = static_cast<size_t>(&node - &nodes_[0]);
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& other) {
    return other.must.count(number) > 0 || other.owe.count(number) > 0;
  });
}

const Thread* WaitGraph::late_at(const Node& node, const Mbarrier& barrier) {
  for (const Thread* thread : node.waiting)
    if (has_missed(barrier, *thread)) return thread;
  return nullptr;
}

bool WaitGraph::waits_for_new_slot(const Node& node, const Mbarrier& barrier) const {
  const Mbarrier* const full = other_end(barrier);
  if (!full || barrier.is_full || !is_unused(barrier) || !node_of(full)) return false;
  if (!is_unused(*full) && !lacks_first_bytes(*full)) return false;
  const Thread::Seen& seen = node.waiting.front()->last_seen;
  const bool second_lap =
      seen.barrier && seen.barrier->initialised_at == barrier.initialised_at &&
      (*barrier.end ? seen.barrier->slot >= barrier.slot : seen.barrier->offset >= barrier.offset);
  return !second_lap;
}

}  // namespace cpu_device
