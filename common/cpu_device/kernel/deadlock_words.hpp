/// @file
/// The words that several sentences about a deadlock share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cpu_device {

struct Block;
struct Thread;
struct Wait;

constexpr std::ptrdiff_t kMostGroups = 2;  ///< that a line names

/// "now wait at gemm.cuh:73 for full[0]", or "have exited"; where they wait for several things, "of these
/// warps 0-3 now wait at ..., ...". Half a sentence, behind the names of the threads.
/// @param counts_steps says of those who have exited what that means for their steps
/// @param are_lanes they take a verb in the plural, whatever names_of() says
std::string where_now(const std::vector<const Thread*>& threads, bool counts_steps, bool are_lanes = false);
/// The same with the names of the threads.
std::string where_others_wait(const std::vector<const Thread*>& threads);
/// " 2", of a named barrier.
std::string number_of_barrier(const Wait& wait);
/// "once", "twice", "3 times".
std::string times(uint64_t count);
/// " block (1,0,0)", or " blocks (1,0,0) to (3,0,0)".
std::string ranges_of_blocks(const std::vector<const Block*>& blocks);

}  // namespace cpu_device
