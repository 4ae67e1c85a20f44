/// @file
/// What a message calls threads, blocks, barriers, arrays and places in the source.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine_mbarriers.hpp"

namespace cpu_device {

class Cluster;
class SharedLayout;
struct Block;
struct MbarrierRecord;
struct Thread;

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string print(const char* format, ...);
/// "gemm.cuh:57".
std::string to_string(Location);
/// "gemm.cuh:80": the line of the lesson that calls what calls the operation.
std::string own_place(Location);
/// "products.cuh:51 (called at attention.cuh:93)", where a helper in another file executes it; else the
/// place.
std::string place_and_caller(Location);
/// "block (1,0,0) warp 2 lane 5".
std::string describe(const Thread&);
std::string describe(const Block&);
std::string describe(const Mbarrier&);
/// "gemm.cuh:112": the line that initialises it, and says its count.
std::string place_of_initialisation(const Mbarrier&);
/// "full[1]".
std::string name_of(const Mbarrier&);
/// "warps 0-3, warps 8-9 lane 0", of each block. A warp that has lost lanes counts as whole.
std::string names_of(const std::vector<const Thread*>&);
/// "warps 8-9 lanes 1-31, warp 10": of each warp exactly the lanes that `is_meant`.
std::string names_of_lanes(const Block&, const std::function<bool(const Thread&)>& is_meant);
/// "1-3, 7", of a mask of lanes.
std::string ranges_of_lanes(uint32_t lanes);
/// "warps 1-3, 7", of a mask of warps.
std::string names_of_warps(uint32_t warps);
/// Does such a name take a verb in the plural?
bool are_several(const std::string& names);
/// "block (0,0,0) and block (1,0,0)": of a mask of ranks in the cluster.
std::string names_of_blocks(Cluster&, uint32_t mask);
/// "0b0011": a bit for each block of the cluster.
std::string binary(uint32_t mask, const Block&);
/// "smem.b[0].panels[1]", of "smem.b[0].panels[1][32][0]": without row and column.
std::string without_row(std::string name);
/// The bytes of the array that holds this one, as far as they have names: where it begins and ends.
std::pair<size_t, size_t> array_around(SharedLayout&, size_t bytes, size_t offset);
/// May this operand of a line, "smem.inbox", hold the byte? Not if it is a barrier that lies elsewhere.
bool may_hold(const Block&, const std::string& operand, size_t offset);
/// All of a block.
std::vector<MbarrierRecord> records_of_mbarriers(const Block&);

}  // namespace cpu_device
