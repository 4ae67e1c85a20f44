/// @file
/// The two sentences about the root of a deadlock: what all wait for in the end, and why that does not come.
/// The second has a function for each thing that may be missing where the root is a phase of an mbarrier.
#pragma once
#include <string>
#include <utility>

#include "common/cpu_device/kernel/engine_mbarriers.hpp"

namespace cpu_device {

class WaitGraph;
struct Thread;

/// Two lines; empty if nobody waits for what others do.
std::string describe_root(const WaitGraph&);

/// Why something does not come.
struct Reason {
  std::string text;
  bool names_mistake = false;  ///< what may be wrong, and not only who is where

  Reason(std::string text, bool names_mistake = false)
      : text(std::move(text)), names_mistake(names_mistake) {}
};

/// Of arrivals, where no other function here knows better.
Reason why_of_arrivals(const WaitGraph&, const Mbarrier&);
/// Of bytes, where all have arrived.
std::string why_of_bytes(const WaitGraph&, const Mbarrier&);
/// Of a phase that has ended: `late` waits for it in the one in progress.
Reason why_of_missed(const WaitGraph&, const Mbarrier&, const Thread& late);
/// "nobody has ever arrived there; warps 0-3 arrived once at turn[0] (gemm.cuh:75), for which they wait
/// themselves: ...", of a turn that never comes.
std::string why_of_turn(const WaitGraph&, const Mbarrier& turn);
/// Of a slot that is new, whose first wait has the wrong parity.
std::string why_of_new_slot(const WaitGraph&, const Mbarrier&);

}  // namespace cpu_device
