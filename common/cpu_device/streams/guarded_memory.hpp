/// @file
/// Device memory and pinned memory, with zones before and behind it that no kernel may touch.
///
/// Under AddressSanitizer the zones are its own, and begin and end with what was asked for.
#pragma once
#include <cstddef>
#include <string>

namespace cpu_device {

constexpr size_t kMemoryAlignment = 256;  ///< what cudaMalloc guarantees

/// @param name how reports call it
/// @return null if there is no memory left
std::byte* take_guarded_memory(size_t bytes, const std::string& name);
/// From now on no kernel may touch it. Its addresses are not given out again for a while, so that who does is
/// named.
void give_back_guarded_memory(std::byte* begin);
/// What lay there until it was given back, as long as nothing else does: then addresses are not given out
/// again. Else empty.
std::string freed_guarded_memory(const void* place);

}  // namespace cpu_device
