/// @file
/// The loads that count at one phase of an mbarrier: who has issued them, and where they write.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/cpu_device/kernel/engine_thread.hpp"

namespace cpu_device {

struct LoadOfPhase {
  const Thread* issuer;
  Thread::CountedLoad load;
};

/// Of the threads in their order. Empty where other copies count there, too, or loads are forgotten.
/// @param lands whose load lands at this moment, and is neither in flight nor counted
std::vector<LoadOfPhase> loads_of_phase(const Mbarrier&, uint64_t phase, const Thread* lands = nullptr);
/// Do they write to one place? Both count at barriers that lie at one place, perhaps of two blocks.
bool overlap(const LoadOfPhase&, const LoadOfPhase&);
/// Do they fill arrays of one block from end to end, each place once? False where the names of the arrays are
/// not known.
bool fill_arrays(const std::vector<LoadOfPhase>&);
/// "the load at gemm.cuh:58 fills 8192 of the 32768 bytes of smem.b[0].panels; the rest is as many bytes as
/// are missing: ..." Empty if they fill all, or the rest is not `missing`.
std::string explain_unfilled(const std::vector<LoadOfPhase>&, int64_t missing);
/// Of more bytes than were expected: "block (0,0,0) (gemm.cuh:70, mask 0b1111) and block (2,0,0) (...) send
/// to the same place: does a mask name a wrong block?" Empty if no two multicasts of two blocks do.
std::string explain_same_place(const std::vector<LoadOfPhase>&);

}  // namespace cpu_device
