/// @file
/// Source lines of return addresses, for reports.
#pragma once
#include <cstdint>
#include <string>

namespace cpu_device {

/// Where this program's own code is loaded; addresses minus this are what debug information speaks of.
uintptr_t program_load_address();

/// The last two parts of a path: "02_tiled/gemm.cuh".
std::string short_path(const std::string& path);

/// The place of the call that returns to `return_address`: "02_tiled/gemm.cuh:88 in load_tiles", followed by
/// the calls it is inlined into. Runs addr2line, so only reports should ask. Without addr2line or debug
/// information: the module and the offset in it.
std::string describe_call_site(uintptr_t return_address);

}  // namespace cpu_device
