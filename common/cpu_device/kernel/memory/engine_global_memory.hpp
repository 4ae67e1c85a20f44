/// @file
/// Accesses of global memory: those that no allocation covers, and those that streams want to know of.
#pragma once
#include <cstddef>
#include <string>

#include "common/cpu_device/base/location.hpp"

namespace cpu_device {

struct Thread;
struct TmaBox;

/// What is wrong with an access to these bytes: "reaches 4 bytes beyond the end of the buffer of ..."; empty
/// if nothing.
std::string blame_global_access(Thread&, const void* global, size_t bytes);
/// For the order between kernels, and between clusters: an operation of the device touches these bytes.
/// Clusters need no order for what is atomic. `box`: of TMA with a tensor map; else null.
void note_global_access(Thread&, const void* global, size_t bytes, bool write, Location where,
                        bool is_atomic = false, const TmaBox* box = nullptr);

}  // namespace cpu_device
