#include "common/cpu_device/kernel/deadlock/cause.hpp"

#include <algorithm>

#include "common/cpu_device/kernel/deadlock/mbarriers.hpp"
#include "common/cpu_device/kernel/deadlock/wait_graph.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"

namespace cpu_device {
namespace {

bool is_in_global_memory(const Thread& thread, const void* object) {
  const auto& blocks = thread.cluster.blocks();
  return object && std::none_of(blocks.begin(), blocks.end(),
                                [&](const auto& block) { return block->shared.contains(object); });
}

/// A loop that waits for blocks which have not begun: a plain launch does not promise that they run at one
/// time.
std::string blocks_not_begun(const Thread& thread) {
  const BlockIds& ids = *thread.ids.block;
  const auto blocks = static_cast<unsigned long long>(ids.grid_dim.count());
  if (ids.cooperative || blocks == ids.cluster_dim.count() || !is_in_global_memory(thread, thread.looks_at))
    return "";
  return print(
      "; is it another of the %llu blocks that should? Those of a plain launch need not run at one time, "
      "and here do not: that takes cudaLaunchCooperativeKernel",
      blocks);
}

/// Where those who are awaited look at a place that nobody changes any more: what they do, which explains
/// more than that others wait for them.
std::string loop_of_absent(const WaitGraph& graph) {
  std::vector<const Thread*> absent;
  for (const WaitGraph::Comer& comer : graph.comers_to(*graph.root())) absent.push_back(comer.thread);
  const auto spins = [](const Thread* thread) {
    return !thread->done && thread->wait.kind == WaitKind::poll && !thread->wait.object;
  };
  if (absent.empty() || !std::all_of(absent.begin(), absent.end(), spins)) return "";
  const Thread& first = *absent.front();
  const std::string names = names_of(absent);
  return names + (are_several(names) ? " loop for ever at " : " loops for ever at ") +
         own_place(first.wait.where) + ": " + first.wait.what + " brings " +
         (first.wait.argument ? print("%lld", static_cast<long long>(first.wait.argument - 1)) : "the same") +
         " each time, and no thread that can run changes that" + blocks_not_begun(first);
}

/// Of an array of barriers at which nobody has ever arrived, each is waited for, by as many threads as it
/// counts: a circle, if these threads are the ones that arrive. Nobody may owe an arrival elsewhere.
std::string circle_from_the_start(const WaitGraph& graph) {
  if (graph.rank(*graph.root()) < WaitGraph::nobody) return "";
  const auto has_begun = [](const WaitGraph::Node& node) {
    const Thread& first = *node.waiting.front();
    if (!is_at_mbarrier(first)) return true;
    const Mbarrier& barrier = mbarrier_of(first);
    return !is_unused(barrier) || other_end(barrier) || node.waiting.size() != barrier.expected;
  };
  for (const WaitGraph::Node& node : graph.nodes()) {
    if (has_begun(node)) continue;
    const Mbarrier& barrier = mbarrier_of(*node.waiting.front());
    std::string waits;
    size_t waited_for = 0;
    for (const WaitGraph::Node& other : graph.nodes()) {
      if (has_begun(other)) continue;
      const Thread& first = *other.waiting.front();
      if (!is_sibling(barrier, mbarrier_of(first))) continue;
      const std::string who = names_of(other.waiting);
      waits += (waits.empty() ? "" : ", ") + who +
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

/// At named barriers of a block threads wait by the same line for their first turn, nobody else has ever come
/// to any of these, and each lacks as many threads as wait at the others: a circle, if these pass turns on.
std::string turns_from_the_start(const WaitGraph& graph) {
  const Thread& root = *graph.root()->waiting.front();
  const auto barrier_of = [](const Thread& thread) {
    return static_cast<const NamedBarrier*>(thread.wait.object);
  };
  const auto waits_for_first_turn = [&](const WaitGraph::Node& node) {
    const Thread& first = *node.waiting.front();
    if (first.wait.kind != WaitKind::block_barrier || !first.wait.argument || first.block != root.block ||
        !(first.wait.where == root.wait.where))
      return false;
    const NamedBarrier& barrier = *barrier_of(first);
    size_t arrivals = 0;
    for (const auto& one : barrier.of_threads) arrivals += one.times;
    return arrivals == node.waiting.size() && barrier.arrived == arrivals;
  };
  std::vector<const WaitGraph::Node*> nodes;
  for (const WaitGraph::Node& node : graph.nodes())
    if (waits_for_first_turn(node)) nodes.push_back(&node);
  const auto is_root = [&](const WaitGraph::Node* node) { return node == graph.root(); };
  if (nodes.size() < 2 || std::none_of(nodes.begin(), nodes.end(), is_root)) return "";
  std::string text, first;
  for (const WaitGraph::Node* node : nodes) {
    const Thread& one = *node->waiting.front();
    const NamedBarrier& barrier = *barrier_of(one);
    const size_t missing = barrier.expected - barrier.arrived;
    const bool may_come = std::any_of(nodes.begin(), nodes.end(), [&](const WaitGraph::Node* other) {
      return other != node && other->waiting.size() == missing;
    });
    if (!may_come) return "";
    const std::string who = names_of(node->waiting);
    text += (text.empty() ? "" : ", ") + who +
            (text.empty() ? (are_several(who) ? " wait at " : " waits at ") + place_and_caller(one.wait.where)
                          : "") +
            " in named barrier" + number_of_barrier(one.wait);
    if (first.empty()) first = who;
  }
  return text +
         ": nobody else has ever arrived at any of these\n  if they pass turns to each other, the first one "
         "is "
         "missing: should it be passed to " +
         first + " before the first wait? Or should all of them meet in one barrier?\n  ";
}

std::string what_is_missing(const Mbarrier& barrier) {
  if (barrier.pending) return print("%u of %u arrivals missing", barrier.pending, barrier.expected);
  if (barrier.missing_bytes < 0)
    return print("%lld bytes more than expected have come", static_cast<long long>(-barrier.missing_bytes));
  return print("%lld of %lld bytes missing", static_cast<long long>(barrier.missing_bytes),
               static_cast<long long>(barrier.expected_bytes));
}

/// Is a late look of their block, which early_wait() names, why they wait here? Yes if it was one of them; or
/// if the other reason names no mistake, and who looked late has come no further.
bool is_due_to_late_look(const std::vector<const Thread*>& waiting, const Reason& other_reason) {
  const Block& block = *waiting.front()->block;
  if (!explain_wrong_wait(block, nullptr).empty()) return false;
  for (const auto& barrier : block.mbarriers)  // the first, which is named
    if (const Thread* const late = barrier->late_look.thread)
      return std::find(waiting.begin(), waiting.end(), late) != waiting.end() ||
             (!late->done && !other_reason.names_mistake);
  return false;
}

/// Of the block of those who wait, after these characters; or nothing.
std::string early_wait(const WaitGraph& graph, const char* before) {
  const std::string text = explain_early_wait(*graph.root()->waiting.front()->block, nullptr);
  return text.empty() ? text : before + text;
}

Reason why_of_phase(const WaitGraph& graph, const Mbarrier& barrier) {
  constexpr bool kNamesMistake = true;
  if (!barrier.pending) return {why_of_bytes(graph, barrier), kNamesMistake};
  if (const Thread* const late = graph.late_at(*graph.root(), barrier))
    return why_of_missed(graph, barrier, *late);
  if (graph.waits_for_new_slot(*graph.root(), barrier))
    return {why_of_new_slot(graph, barrier), kNamesMistake};
  if (graph.served()) return {why_of_turn(graph, barrier), kNamesMistake};
  return why_of_arrivals(graph, barrier);
}

/// "lanes 1-31 of warp 0", all of one warp.
std::string lanes_of_warp(const std::vector<const Thread*>& threads) {
  if (threads.empty()) return "";
  uint32_t lanes = 0;
  for (const Thread* thread : threads) lanes |= 1u << thread->lane;
  return (threads.size() == 1 ? "lane " : "lanes ") + ranges_of_lanes(lanes) +
         print(" of warp %u", threads.front()->warp->index);
}

/// "registers of a thread: warps 0-6 240, warp 7 168".
std::string registers_of_warps(const Block& block) {
  std::string text;
  for (size_t first = 0; first < block.warps.size();) {
    size_t end = first + 1;
    while (end < block.warps.size() && block.warps[end].registers == block.warps[first].registers) ++end;
    text += (text.empty() ? "" : ", ") +
            (end - first == 1 ? print("warp %zu", first) : print("warps %zu-%zu", first, end - 1)) +
            print(" %u", block.warps[first].registers);
    first = end;
  }
  const bool none_given = std::none_of(block.warps.begin(), block.warps.end(), [](const Warp& warp) {
    return warp.wanted_registers && warp.registers >= warp.wanted_registers;
  });
  return "registers of a thread: " + text +
         (none_given ? "; no warp has executed setmaxnreg.dec, which gives registers back" : "");
}

/// Of a barrier that passes a turn on, and has not as often as those come who wait for it.
std::string turn_too_few(const NamedBarrier& barrier, uint64_t passed) {
  if (barrier.arrivals.empty()) return "";
  const uint64_t come = barrier.of_threads[barrier.arrivals.front()->ids.rank].times;
  if (come != passed + 1) return "";
  return "; those who wait have come " + times(come) +
         ": was the first turn, or the last, never passed to them?";
}

/// "\n  warps 0-3 arrived there last at turn.cuh:23, twice in all, and have exited": of a barrier for some
/// warps, those who came before and do not come now; or that nobody else has ever come.
std::string why_of_some_warps(const WaitGraph& graph, const NamedBarrier& barrier, const Block& block) {
  std::vector<const Thread*> absent, others, live;
  for (const Thread* thread : graph.threads()) {
    if (thread->block != &block) continue;
    const auto& arrivals = barrier.arrivals;
    if (std::find(arrivals.begin(), arrivals.end(), thread) != arrivals.end()) continue;
    if (barrier.of_threads[thread->ids.rank].times) absent.push_back(thread);
    others.push_back(thread);
    if (!thread->done) live.push_back(thread);
  }
  if (others.empty()) return "";
  const auto number_of = [&](const NamedBarrier& one) {
    return static_cast<unsigned>(&one - block.barriers);
  };
  if (const NamedBarrier* const other = WaitGraph::taken_instead(*graph.root())) {
    std::vector<const Thread*> comers;
    for (const Thread* thread : others)
      if (other->of_threads[thread->ids.rank].times) comers.push_back(thread);
    const NamedBarrier::ArrivalsOfThread& first = other->of_threads[comers.front()->ids.rank];
    const std::string passes = own_place(first.last_without_wait), last = own_place(first.last);
    const bool are_two = first.last_without_wait.line && passes != last;
    return "\n  no other thread has ever arrived there; only " + names_of(comers) +
           print(" ever arrived at named barrier %u, for %u threads (", number_of(*other), other->expected) +
           (are_two ? passes + ", " : "") + last +
           print("): should they arrive at %u, or those who wait at %u?", number_of(barrier),
                 number_of(*other));
  }
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
         times(first.times) + " in all, and " + where_now(absent) +
         (std::all_of(absent.begin(), absent.end(), [](const Thread* thread) { return thread->done; })
              ? turn_too_few(barrier, first.times)
              : "");
}

/// Of threads that wait for what is no mbarrier.
std::string why_of_others(const WaitGraph& graph, const Thread& first) {
  std::vector<const Thread*> absent;
  for (const WaitGraph::Comer& comer : graph.comers_to(*graph.root())) absent.push_back(comer.thread);
  const bool of_lanes = first.wait.kind == WaitKind::warp;  // of which some have come
  const std::string names = of_lanes ? lanes_of_warp(absent) : names_of(absent);
  const bool are_many = of_lanes ? absent.size() > 1 : are_several(names);
  const std::string missing = absent.empty()
                                  ? ""
                                  : "\n  " + names + (are_many ? " have" : " has") + " not come, and " +
                                        where_now(absent, of_lanes && are_many);
  if (first.wait.kind == WaitKind::registers)
    return print(" for %u registers: its threads have %u each, and %u are free for each thread of a warp",
                 static_cast<unsigned>(first.wait.argument), first.warp->registers,
                 first.block->free_registers) +
           "\n  " + registers_of_warps(*first.block);
  if (first.wait.kind != WaitKind::block_barrier) return missing;
  const auto& barrier = *static_cast<const NamedBarrier*>(first.wait.object);
  const size_t expected = barrier.expected ? barrier.expected : barrier.arrived + absent.size();
  return number_of_barrier(first.wait) + print(": %u of %zu threads arrived", barrier.arrived, expected) +
         (barrier.expected ? why_of_some_warps(graph, barrier, *first.block) : missing);
}

/// "warps 0-7 wait at gemm.cuh:131, warps 8-11 at gemm.cuh:134": for one thing.
std::string who_waits_where(const std::vector<const Thread*>& waiting) {
  std::vector<std::pair<std::string, std::vector<const Thread*>>> places;
  for (const Thread* thread : waiting) {
    const std::string place = own_place(thread->wait.where);
    const auto known =
        std::find_if(places.begin(), places.end(), [&](const auto& one) { return one.first == place; });
    (known == places.end() ? places.emplace_back(place, std::vector<const Thread*>()) : *known)
        .second.push_back(thread);
  }
  std::string text;
  for (const auto& [place, threads] : places) {
    const std::string who = names_of(threads);
    text += text.empty() ? who + (are_several(who) ? " wait at " : " waits at ") + place
                         : ", " + who + " at " + place;
  }
  return text;
}

}  // namespace

std::string describe_root(const WaitGraph& graph) {
  if (!graph.root()) return "";
  if (const std::string circle = circle_from_the_start(graph); !circle.empty()) return circle;
  if (const std::string turns = turns_from_the_start(graph); !turns.empty()) return turns;
  const std::vector<const Thread*>& waiting = graph.root()->waiting;
  const Thread& first = *waiting.front();
  const std::string begin = who_waits_where(waiting);
  if (is_at_mbarrier(first)) {
    const Mbarrier& barrier = mbarrier_of(first);
    const Reason why = why_of_phase(graph, barrier);
    const bool comes_first = is_due_to_late_look(waiting, why);
    return begin + " for " + name_of(barrier) +
           print(", phase %llu: ", static_cast<unsigned long long>(barrier.phase)) +
           what_is_missing(barrier) + (comes_first ? early_wait(graph, "\n  ") : "") + "\n  " + why.text +
           (graph.late_at(*graph.root(), barrier) || comes_first ? "" : early_wait(graph, "\n  ")) + "\n  ";
  }
  const std::string waits = begin + " in " + first.wait.what + why_of_others(graph, first) + "\n  ";
  const std::string spins = loop_of_absent(graph);
  return spins.empty() ? waits : spins + "\n  " + waits;
}

}  // namespace cpu_device
