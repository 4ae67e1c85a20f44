/// @file
/// setmaxnreg: what a warpgroup asks for, and what the engine checks of it.
#pragma once
#include <vector>

#include "common/cpu_device/base/location.hpp"

namespace cpu_device {

struct Block;
struct Thread;

/// One setmaxnreg of a warpgroup.
struct RegisterChange {
  unsigned count = 0;
  Location where;
};

/// Registers of a thread at the start of a kernel with blocks of this size, of which an SM holds so many.
unsigned registers_at_launch(unsigned threads, unsigned blocks_on_sm);
/// For each warpgroup, what its last setmaxnreg asked for; 0 where there was none.
std::vector<unsigned> registers_asked_for(const Block&);
/// Throws if the exiting thread's warp has missed a setmaxnreg of its warpgroup.
void check_register_changes(Thread&);

}  // namespace cpu_device
