/// @file
/// A block: its memory, its warps and what they meet at.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/base/warp.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/engine_barriers.hpp"
#include "common/cpu_device/kernel/engine_mbarriers.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"
#include "common/cpu_device/kernel/engine_thread.hpp"
#include "common/cpu_device/kernel/engine_wgmma.hpp"

namespace cpu_device {

/// Where the products of each warpgroup took A and B from: descriptors, where both lie in shared memory.
using OperandPlaces = std::map<const Warpgroup*, std::set<std::pair<uint64_t, uint64_t>>>;

struct Block {
  Block(size_t shared_bytes, size_t capacity) : shared(shared_bytes, capacity) {}

  BlockIds ids;
  unsigned live = 0;
  Location last_call;     ///< into the engine, by the thread that exited last
  bool is_early = false;  ///< none of its threads has waited for the kernel before
  SharedMemory shared;
  NamedBarrier barriers[kNamedBarriers];
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  OperandPlaces operands;  ///< of wgmma, until the block ends
  /// Of each 16 bytes of shared memory: one more than the warp whose stmatrix has written them; else 0.
  std::vector<uint8_t> staged_by;
  std::vector<std::unique_ptr<Mbarrier>> mbarriers;

  /// Who has a pointer to this block's shared memory and has not met it since, by rank: see map_shared().
  struct Mapping {
    const Thread* by = nullptr;
    Location where;
  };
  std::vector<Mapping> mappings;

  /// How often its threads have passed a barrier, or the phases of mbarriers that a wait has passed.
  struct Passed {
    const char* what = "";
    Location where;
    uint64_t times = 0;
  };
  std::vector<Passed> passed;

  unsigned blocks_on_sm = 0;    ///< that registers are left for; 0: not known yet
  unsigned free_registers = 0;  ///< given back by setmaxnreg.dec, counted per thread of one warp
  std::vector<Thread*> waiting_for_registers;
};

}  // namespace cpu_device
