/// @file
/// The GPU has no choices of execution, and counts nothing.
#include "common/host/device/execution.hpp"

namespace ladder {

void ExecutionOptions::add_to(Arguments&, bool) {}
Execution ExecutionOptions::parsed() const { return {}; }
std::optional<Execution> thorough_execution() { return std::nullopt; }
void use_schedule(const Execution&, const std::string&) {}
std::optional<LaunchCounters> last_launch_counters() { return std::nullopt; }
std::optional<LaunchRecord> last_launch_record() { return std::nullopt; }
std::optional<StreamCounters> stream_counters() { return std::nullopt; }

}  // namespace ladder
