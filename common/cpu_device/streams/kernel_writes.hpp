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
/// @param atomically whether the kernel also changed what is not among `writes`
void add_kernel_writes(const MemoryTable&, Ranges& writes, bool atomically);
/// "kernels wrote 2560 of the 5600 bytes allocated at FILE:33: ..." of each allocation that they have written
/// only a part of, a line each; nothing if there is none, or if atomic operations may have written the rest.
std::string describe_partly_written();

}  // namespace cpu_device
