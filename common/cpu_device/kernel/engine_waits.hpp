/// @file
/// Why a thread does not run.
#pragma once
#include <cstdint>

#include "common/cpu_device/base/location.hpp"

namespace cpu_device {

enum class WaitKind : uint8_t { none, block_barrier, warp, mbarrier, copies, stores, wgmma, registers, poll };

/// Why a thread does not run, in the words of the deadlock report.
struct Wait {
  WaitKind kind = WaitKind::none;
  const void* object = nullptr;  ///< Mbarrier or NamedBarrier
  uint64_t argument = 0;         ///< parity, group
  const char* what = "";
  Location where;
};

/// Leaves a fiber whose kernel has failed. Never seen outside the engine and the kernel's destructors.
struct Abandoned {};
/// Leaves the kernel as its end does.
struct Exits {};

}  // namespace cpu_device
