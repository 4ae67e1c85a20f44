/// @file
/// The two sentences about the root of a deadlock: what all wait for in the end, and why that does not come.
#pragma once
#include <string>

namespace cpu_device {

class WaitGraph;

/// Two lines; empty if nobody waits for what others do.
std::string describe_root(const WaitGraph&);

}  // namespace cpu_device
