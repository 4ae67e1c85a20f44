/// @file
/// A host that makes no calls: it may spin on what a host function will set, as a GPU's host may. Private to
/// the host's side of the CPU device.
#pragma once
#include <atomic>
#include <cstdint>

namespace cpu_device {

/// Calls of the host so far.
inline std::atomic<uint64_t> host_calls_so_far{0};

/// Called where a host function has been queued: from now on, where the host makes no call for a quarter of a
/// second, the host functions that are queued run in a thread of their own, with what they need.
void watch_for_a_spinning_host();

}  // namespace cpu_device
