/// @file
/// Accesses of global memory that no allocation covers.
#pragma once
#include <cstddef>
#include <string>

namespace cpu_device {

struct Thread;

/// What is wrong with an access to these bytes: "reaches 4 bytes behind the end of the buffer of ..."; empty
/// if nothing.
std::string blame_global_access(Thread&, const void* global, size_t bytes);

}  // namespace cpu_device
