/// @file
/// Chooses what the CPU device does.
#include "common/host/device/execution.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/launch_progress.hpp"
#include "common/cuda/residency.hpp"
#include "common/host/base/arguments.hpp"
#include "common/host/base/progress.hpp"
#include "common/host/base/text.hpp"

namespace ladder {
namespace {

constexpr double kEndlessLoopsEndAfter = 20;  ///< seconds
constexpr size_t kReportLines = 12;           ///< of a deadlock; the rest with --all

/// "17" is one seed, "1-100" a hundred.
std::vector<std::string> random_schedules(const std::string& seeds) {
  constexpr uint64_t kMaxSeeds = 100000;
  const size_t dash = seeds.find('-', 1);  // a number that begins with one is refused as a number
  if (dash != seeds.npos && dash + 1 == seeds.size())
    throw std::invalid_argument("--seed '" + seeds + "': the last seed of the range is missing, as in 1-100");
  const uint64_t first = parse_number("--seed", seeds.substr(0, dash), 0, UINT64_MAX);
  const uint64_t last =
      dash == seeds.npos ? first : parse_number("--seed", seeds.substr(dash + 1), 0, UINT64_MAX);
  if (last < first || last - first >= kMaxSeeds)
    throw std::invalid_argument("--seed " + seeds +
                                ": must be SEED or FIRST-LAST, with FIRST at most LAST and " +
                                std::to_string(kMaxSeeds) + " seeds at most");
  std::vector<std::string> schedules;
  for (uint64_t i = 0; i <= last - first; ++i)
    schedules.push_back(cpu_device::Schedule::random(first + i).name());
  return schedules;
}

/// For Progress.
std::string progress_of_launch() {
  const cpu_device::LaunchProgress now = cpu_device::launch_progress();
  if (!now.runs) return "";
  std::string text = fmt::format("{} of {} blocks of kernel '{}' after {:.0f} s", now.blocks_done, now.blocks,
                                 now.name, now.seconds);
  if (now.blocks_done)
    text += fmt::format(", the launch takes about {:.0f} s",
                        now.seconds * static_cast<double>(now.blocks) / static_cast<double>(now.blocks_done));
  if (const std::string loop = cpu_device::describe_endless_loop(); !loop.empty()) text += "; " + loop;
  return text;
}

}  // namespace

void ExecutionOptions::add_to(Arguments& arguments, bool of_lessons) {
  arguments.add_option(
      "--schedule", schedule_, "NAME",
      "Order of threads and landing of copies, for example lowest-first/eager; or random:SEED; or all");
  arguments.add_option("--seed", seed_, "SEED",
                       "The same as --schedule random:SEED; 1-100: with each of these seeds");
  arguments.add_flag("--all", all_lines_, "Print all lines of a deadlock's report");
  if (!of_lessons) return;
  arguments.add_option("--threads", threads_, "N",
                       "Threads of the host to run on (default: one for each core)");
  arguments.add_option("--resident-blocks", blocks_, "N",
                       "Blocks of a persistent kernel, which walk over all tiles of C (default: 4)");
  arguments.add_flag("--check-races", check_races_,
                     "Check every access to shared memory for races, and to global memory that blocks share");
  arguments.add_flag("--only-asked", only_asked_,
                     "Run the given shapes by the given schedules, and check nothing besides");
}

Execution ExecutionOptions::parsed() const {
  Progress::of_launch = progress_of_launch;
  cpu_device::endless_loops_end_after = kEndlessLoopsEndAfter;
  Execution execution;
  if (!schedule_.empty() && !seed_.empty())
    throw std::invalid_argument("--seed " + seed_ + ": is the same as --schedule random:" + seed_ +
                                " and cannot be combined with --schedule");
  if (!seed_.empty()) execution.schedules = random_schedules(seed_);
  if (schedule_ == "all") {
    execution.schedules.clear();
    for (const cpu_device::Schedule& schedule : cpu_device::fixed_schedules())
      execution.schedules.push_back(schedule.name());
  } else if (!schedule_.empty()) {
    try {
      execution.schedules = {cpu_device::Schedule::parse(schedule_).name()};
    } catch (const std::invalid_argument& error) {
      const bool is_nearly_all = schedule_.size() > 1 && schedule_.size() < 5 && schedule_.starts_with("al");
      throw std::invalid_argument(std::string("--") + error.what() + "; or all" +
                                  (is_nearly_all ? "; did you mean all?" : ""));
    }
  }
  if (!threads_.empty())
    execution.os_threads = static_cast<int>(parse_number("--threads", threads_, 1, 1024));
  if (!blocks_.empty())
    execution.blocks = static_cast<int>(parse_number("--resident-blocks", blocks_, 1, 1024));
  execution.check_races = execution.check_grid = check_races_;
  execution.all_lines = all_lines_;
  execution.only_asked = only_asked_;
  execution.chosen = check_races_ || !schedule_.empty() || !seed_.empty();
  if (check_races_ && !cpu_device::instrumented())
    throw std::invalid_argument("--check-races: this program was built without the instrumentation it needs");
  return execution;
}

std::optional<Execution> thorough_execution() {
  if (!cpu_device::instrumented()) return std::nullopt;
  Execution execution;
  execution.schedules = {"round-robin/late", "lowest-first/eager"};
  execution.check_races = execution.check_grid = execution.chosen = true;
  return execution;
}

void use_schedule(const Execution& execution, const std::string& schedule) {
  cpu_device::Options options;
  if (!schedule.empty()) options.schedule = cpu_device::Schedule::parse(schedule);
  options.os_threads = execution.os_threads;
  options.check_races = execution.check_races;
  options.check_grid = execution.check_grid;
  options.warn = execution.warn;
  options.report_lines = execution.all_lines ? 0 : kReportLines;
  options.trace = execution.record;
  options.count = cpu_device::instrumented();
  cpu_device::set_options(options);
  static const int all_blocks = blocks_at_once;
  blocks_at_once = execution.blocks ? execution.blocks : all_blocks;
  has_one_piece_each = false;
}

std::optional<LaunchCounters> last_launch_counters() {
  const cpu_device::Counters& from = cpu_device::last_launch();
  LaunchCounters counters;
  counters.blocks = from.blocks;
  counters.global_read_sectors = from.global_read_sectors;
  counters.global_write_sectors = from.global_write_sectors;
  counters.shared_wavefronts = from.shared_wavefronts;
  counters.bank_conflicts = from.bank_conflicts;
  counters.cluster_bytes = from.cluster_bytes;
  counters.block_barriers = from.block_barriers;
  counters.barrier_waits = from.barrier_waits;
  counters.async_copies = from.async_copies;
  counters.slot_fills = from.slot_fills;
  counters.has_one_piece_each = has_one_piece_each;
  counters.cycles = from.cycles;
  counters.copy_cycles = from.copy_cycles;
  counters.math_cycles = from.math_cycles;
  counters.overlap_cycles = from.overlap_cycles;
  return counters;
}

std::optional<LaunchRecord> last_launch_record() {
  LaunchRecord record;
  for (const cpu_device::MbarrierRecord& from : cpu_device::last_mbarriers())
    record.mbarriers.push_back({from.name, from.where, from.arrivals, from.phases, from.witnesses});
  for (const cpu_device::Span& span : cpu_device::last_trace()) {
    if (span.what == "copy") record.loads.insert(span.warp);
    if (span.what == "mma") record.multiplies.insert(span.warp);
    if (span.what == "store") record.stores.insert(span.warp);
    const auto barrier =
        std::find_if(record.mbarriers.begin(), record.mbarriers.end(),
                     [&](const LaunchRecord::Mbarrier& one) { return span.what == "wait " + one.name; });
    if (barrier != record.mbarriers.end()) record.waits[barrier->name].insert(span.warp);
  }
  record.registers = cpu_device::last_registers();
  if (std::any_of(record.registers.begin(), record.registers.end(), [](unsigned count) { return count > 0; }))
    record.has_launch_bounds = cpu_device::last_kernel_has_launch_bounds();
  const cpu_device::Counters& counters = cpu_device::last_launch();
  record.blocks = counters.blocks;
  record.threads = counters.threads;
  record.mma_flops = counters.mma_flops;
  return record;
}

std::optional<StreamCounters> stream_counters() {
  const cpu_device::GraphCalls graphs = cpu_device::graph_calls();
  return StreamCounters{cpu_device::stream_time_us(), graphs.instantiations, graphs.launches};
}

}  // namespace ladder
