/// @file
/// Which bytes of each allocation kernels have written: a result that is wrong may lack some.
#pragma once
#include <string>

#include "common/cpu_device/observe/global_accesses.hpp"
#include "common/cpu_device/streams/memory_table.hpp"

namespace cpu_device {

/// From now on.
void count_kernel_writes();
bool counts_kernel_writes();
/// Of a kernel that has run. @param blocks, threads of its launch
void add_kernel_writes(const MemoryTable&, const Operation& kernel, GlobalAccesses&, uint64_t blocks,
                       uint64_t threads);
/// Copies and memsets, of which the touches are known before they run.
void add_other_writes(const MemoryTable&, const Operation&);
/// "kernels wrote 2560 of the 5600 bytes allocated at FILE:33: ..." of each allocation that they have written
/// a part of, a line each; nothing if there is none, or if atomic operations may have written the rest.
/// @param only_downloaded those of which bytes that nobody had written were copied to the host
std::string describe_partly_written(bool only_downloaded = false);
/// "kernel sum at FILE:9 read what nobody had written: bytes 0 to 3 of the 4 bytes allocated at FILE:8" and a
/// line break: of the first since the last call; nothing if no kernel has.
std::string take_unwritten_global();

}  // namespace cpu_device
