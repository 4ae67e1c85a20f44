/// @file
/// Barriers of blocks, of some of their warps, and of clusters.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/engine_aligned.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

class Cluster;
struct Block;
struct Thread;

constexpr unsigned kNamedBarriers = 16;

/// Barrier 0 is __syncthreads.
struct NamedBarrier {
  unsigned expected = 0;  ///< 0: all threads of the block that have not exited
  unsigned arrived = 0;
  Location where;           ///< of the first arrival
  CallChain calls;          ///< to it, where all threads of the block must come by the same
  unsigned votes = 0;       ///< of __syncthreads_count, so far
  unsigned last_votes = 0;  ///< in the phase before: nobody ends the next one before all have read it
  std::vector<Thread*> arrivals;
  std::vector<Thread*> waiting;
  // Of a barrier of some warps: what those who arrive make known.
  SyncObject released;
  /// Of each thread of the block: how often it has arrived there, in all phases, and where the last time.
  struct ArrivalsOfThread {
    uint64_t times = 0;
    Location last, last_without_wait;
  };
  std::vector<ArrivalsOfThread> of_threads;
  // Of a cluster.sync, for threads that arrive and wait apart:
  SyncObject completed;                 ///< what was released in the phase before
  uint64_t phase = 0;                   ///< that is in progress
  std::vector<unsigned> arrived_apart;  ///< numbers of those in this phase
  double latest_arrival = 0;            ///< virtual time
};

/// "block (0,0,0): all threads have passed the __syncthreads at gemm.cuh:85 4096 times: does the loop end?"
std::string describe_passes(const Uint3& block, const char* what, Location where, uint64_t times);
/// ": " and that sentence, of what the block's threads have passed most often; empty if nothing.
std::string passes_of(const Block&);
/// For launch_progress.hpp: what may be a loop without an end.
void remember_endless_loop(const Cluster*, const Uint3& block, const char* what, Location where,
                           uint64_t times);
void forget_endless_loop(const Cluster*);

/// Ends the barrier's phase if everybody has arrived.
void complete_if_all_arrived(Cluster&, Block&, unsigned barrier);
/// Ends a cluster.sync if everybody has arrived who has not exited.
void complete_cluster_barrier(Cluster&);

}  // namespace cpu_device
