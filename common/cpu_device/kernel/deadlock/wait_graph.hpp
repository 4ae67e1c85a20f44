/// @file
/// Who waits for what, and who must come to it: the chain of waits of a deadlock, and its end.
#pragma once
#include <cstddef>
#include <memory>
#include <set>
#include <vector>

#include "common/cpu_device/kernel/engine_mbarriers.hpp"

namespace cpu_device {

struct Block;
struct NamedBarrier;
struct Thread;

/// A node is what threads wait for; an edge goes from it to what those wait for who must come to it. The root
/// is the end of the chain of waits: what all others wait for in the end.
class WaitGraph {
 public:
  struct Node {
    const void* key;  ///< what its threads wait for
    std::vector<const Thread*> waiting;
    /// Other nodes, at which threads wait that must come here: those that cannot have come yet, and those
    /// that should have before they began to wait.
    std::set<size_t> must, owe;
  };
  /// Who must come to what a node waits for.
  struct Comer {
    const Thread* thread;
    bool owes;  ///< it has passed what comes before its arrival
  };
  /// Why a node may be the root; what explains most comes first.
  enum Rank { bytes, missed, first_lap, partial, exited, owed, nobody, others, last };

  /// Of a cluster in which nobody can go on, which must not change as long as the graph lives.
  WaitGraph(const std::vector<std::unique_ptr<Thread>>& threads, const NamedBarrier& cluster_barrier);
  WaitGraph(const WaitGraph&) = delete;

  /// All of the cluster.
  const std::vector<const Thread*>& threads() const { return threads_; }
  /// The blocks of these threads.
  std::vector<const Block*> blocks() const;
  /// One for each thing that threads wait for.
  const std::vector<Node>& nodes() const { return nodes_; }
  /// What all wait for in the end; null if nobody waits for what others do.
  const Node* root() const { return root_; }
  /// The root, if it is an mbarrier; else null.
  const Mbarrier* root_mbarrier() const;
  /// Where the root is a turn that never comes: those who had theirs, and wait; else null.
  const Node* served() const { return served_; }

  /// What a node is known by; null if the thread waits for nothing that others do.
  static const void* waits_for(const Thread& thread);
  /// Null if nobody waits for it.
  const Node* node_of(const void* key) const;
  /// Those who must come to what the node waits for, as far as that is known.
  std::vector<Comer> comers_to(const Node& node) const;
  /// A thread that waits for the phase in progress and wants one that has ended; null if there is none.
  static const Thread* late_at(const Node& node, const Mbarrier& barrier);
  /// Who fills a slot for the first time must find it empty. Does a thread wait until a new one is emptied?
  bool waits_for_new_slot(const Node& node, const Mbarrier& barrier) const;
  /// Those who wait for bytes expect them themselves, and nobody has ever sent any: others send them. Do
  /// those perhaps wait before that, for the first phase of a new barrier of theirs?
  bool may_wait_before_sending(const Node& bytes, const Node& senders) const;
  /// What explains most comes first.
  Rank rank(const Node& node) const;
  /// Does what the node waits for come only after what another waits for?
  bool depends_on(const Node& node, const Node& other) const;
  /// Of threads that wait in a barrier of some warps, to which nobody else has ever come: another one of the
  /// block, to which fewer threads have ever come than it counts, none of these, and nobody waits in it. Null
  /// if there is none.
  static const NamedBarrier* taken_instead(const Node& node);
  /// Is it an mbarrier of which it is not known who must come to it, as nobody ever has?
  bool is_unknown(const Node& node) const;
  /// Has it exited, or does it wait in a barrier of all where warps without a role wait, too: behind its own?
  static bool has_left_its_role(const Thread&);
  /// Those who wait expect the bytes themselves, and nobody has ever sent any: others must.
  static bool lacks_first_bytes(const Mbarrier& barrier);

 private:
  /// Did the thread get through the wait that comes before its arrival in this phase?
  static bool owes(const Mbarrier& barrier, const Thread& thread);
  /// At the same end of another slot of its pipeline.
  static bool has_arrived_at_sibling(const Mbarrier& barrier, const Thread& thread);
  std::vector<Comer> comers_to(const Node& node, const Mbarrier& barrier) const;
  /// At what is no mbarrier: does the one wait for the other?
  bool is_awaited(const Thread& waiting, const Thread& thread) const;
  void add_edges(Node& node);
  std::set<size_t> reach(size_t from) const;
  void find_root();
  bool comes_before(const Node& one, const Node& other) const;
  bool holds_up_others(const Node& node) const;

  const NamedBarrier& cluster_barrier_;
  std::vector<const Thread*> threads_;
  std::vector<Node> nodes_;
  const Node* root_ = nullptr;
  const Node* served_ = nullptr;
};

}  // namespace cpu_device
