/// @file
/// How kernels are executed. The GPU has one way; the CPU device runs one legal schedule of many.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ladder {

class Arguments;

/// What the CPU device counted in one launch; see cpu_device::Counters for what each figure means.
struct LaunchCounters {
  uint64_t blocks = 0;
  uint64_t global_read_sectors = 0, global_write_sectors = 0;
  uint64_t shared_wavefronts = 0, bank_conflicts = 0;
  uint64_t cluster_bytes = 0;
  uint64_t block_barriers = 0, barrier_waits = 0, async_copies = 0;
  uint64_t slot_fills = 0;          ///< of the slot that a block has filled most often; 0: there is no ring
  bool has_one_piece_each = false;  ///< of a persistent kernel: no block walks on to a second tile
  double cycles = 0, copy_cycles = 0, math_cycles = 0, overlap_cycles = 0;
};

/// What the first block of a launch did on the CPU device, where Execution::record is set.
struct LaunchRecord {
  struct Mbarrier {
    std::string name, where;  ///< "full" was initialised at "my_gemm.cuh:31"
    unsigned arrivals = 0;    ///< that complete a phase
    uint64_t phases = 0;      ///< that have been completed
    unsigned witnesses = 0;   ///< threads that have waited until a phase was completed
  };
  std::vector<Mbarrier> mbarriers;               ///< in the order in which they were initialised
  std::set<unsigned> loads, multiplies, stores;  ///< warps that start copies; of warpgroups the first
  /// [name of an mbarrier] warps that had to wait there.
  std::map<std::string, std::set<unsigned>> waits;
  bool has_launch_bounds = true;     ///< false where there are registers but no __launch_bounds__
  std::vector<unsigned> registers;   ///< [warpgroup] that its last setmaxnreg asked for; 0: there was none
  uint64_t blocks = 0, threads = 0;  ///< of all blocks
  uint64_t mma_flops = 0;            ///< done by mma.sync and wgmma, of all blocks
};

/// What the CPU device counted in streams; see cpu_device.hpp.
struct StreamCounters {
  double us = 0;  ///< virtual time at which the work has ended
  uint64_t graph_instantiations = 0, graph_launches = 0;
};

/// How the CPU device runs kernels. Without effect on the GPU.
struct Execution {
  std::vector<std::string> schedules = {""};  ///< names; "" is the device's default
  int os_threads = 0;                         ///< 0: one for each core
  bool check_races = false;
  bool check_grid = false;  ///< see cpu_device::Options
  bool record = false;      ///< what last_launch_record() says
  bool warn = true;         ///< the same
  int blocks = 0;  ///< that a persistent kernel's grid may have; 0: as many as the device has at once
  bool only_asked = false;  ///< without what the program of a lesson checks besides
  bool all_lines = false;   ///< reports of deadlocks are not shortened
  bool chosen = false;      ///< the reader has chosen schedules or race checks
};

/// What finds mistakes that one run hides: race checks, on a late and an eager schedule of different orders.
/// Nothing on the GPU, and in programs without the instrumentation that race checks need.
std::optional<Execution> thorough_execution();

/// Adds --schedule, --seed, --check-races, --all, --only-asked, --resident-blocks and --threads to a program,
/// where the device has such choices.
class ExecutionOptions {
 public:
  /// Adds the options to a program.
  /// @param of_lessons with what only their programs take
  void add_to(Arguments& arguments, bool of_lessons = true);
  /// What they mean, once they are parsed.
  /// @throws std::invalid_argument naming the option, its value and the rule
  Execution parsed() const;

 private:
  std::string schedule_, seed_, threads_, blocks_;
  bool check_races_ = false, all_lines_ = false, only_asked_ = false;
};

/// From now on, kernels run by this schedule.
void use_schedule(const Execution& execution, const std::string& schedule);

/// What the last launch of this thread did; nothing on the GPU.
std::optional<LaunchCounters> last_launch_counters();

/// The same of what was recorded.
std::optional<LaunchRecord> last_launch_record();

/// Of all work enqueued since the program began, which has run when this returns; nothing on the GPU.
std::optional<StreamCounters> stream_counters();

}  // namespace ladder
