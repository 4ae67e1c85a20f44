/// @file
/// Prints comparisons as a table.
#include "common/host/program/report.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <iostream>

#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/results.hpp"

namespace ladder {
namespace {

constexpr char kUnknown[] = "-";

std::string cell(const std::optional<double>& value, int digits) {
  return value ? fixed(*value, digits) : kUnknown;
}

/// Zero where nothing was counted: plain loads are seen only in an instrumented program.
double bytes_read(const Run& run) {
  return run.counters ? 32.0 * double(run.counters->global_read_sectors) : 0;
}

std::string describe_device(const DeviceInfo& device) {
  if (on_cpu_device())
    return fmt::format("{} ({}): it executes semantics, not speed", device.name, device.toolkit);
  return fmt::format("{}, {} SMs, driver {}, {}", device.name, device.multiprocessors, device.driver,
                     device.toolkit);
}

/// "SM clock 1410 to 1980 MHz, power 512 to 690 W": the ranges over all runs; empty if nothing was measured.
std::string describe_clocks(const std::vector<Run>& runs) {
  const auto range = [&](const char* name, std::optional<double> Run::*figure, const char* unit) {
    std::vector<double> values;
    for (const Run& run : runs)
      if (run.*figure) values.push_back(*(run.*figure));
    if (values.empty()) return std::string();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return name + fixed(*low, 0) + " to " + fixed(*high, 0) + unit;
  };
  const std::string clock = range("SM clock ", &Run::clock_mhz, " MHz");
  const std::string power = range("power ", &Run::power_watts, " W");
  return clock + (clock.empty() || power.empty() ? "" : ", ") + power;
}

/// The largest of length(item).
template <class Items, class Length>
int widest(const Items& items, const Length& length) {
  size_t result = 0;
  for (const auto& item : items) result = std::max(result, length(item));
  return static_cast<int>(result);
}

}  // namespace

int widest_label(const std::vector<Contender>& contenders) {
  return widest(contenders, [](const Contender& contender) { return contender.label.size(); });
}

int widest_shape(const std::vector<Shape>& shapes) {
  return widest(shapes, [](const Shape& shape) { return shape.name().size(); });
}

int widest_schedule(const Execution& execution) {
  return widest(execution.schedules, [](const std::string& schedule) { return schedule.size(); });
}

std::string time_cell(const Run& run) { return cell(run.time_us_median, 1); }
std::string tflops_cell(const Run& run) { return cell(run.tflops, 1); }
std::string percent_cell(const std::optional<double>& percent) { return cell(percent, 1); }
std::string count_cell(uint64_t count) { return std::to_string(count); }

std::string spread_cell(const Run& run) {
  if (!run.time_us_median) return kUnknown;
  return fixed((*run.time_us_q3 - *run.time_us_q1) / 2 / *run.time_us_median * 100, 1);
}

std::string verified_cell(const Outcome& outcome) {
  if (!outcome.run.verified) return kUnknown;
  if (!*outcome.run.verified) return "NO";
  return outcome.sampled ? "sampled" : "yes";
}

std::string sample_of(const Outcome& outcome) {
  if (!outcome.sampled || !outcome.complaint.empty()) return "";
  return fmt::format("{} of {} rows of {}", outcome.rows, outcome.run.shape.m, outcome.run.shape.name());
}

std::string bytes_per_output_cell(const Run& run) {
  const double bytes = bytes_read(run);
  return bytes > 0 ? fixed(bytes / run.shape.m / run.shape.n, 1) : kUnknown;
}

std::string flops_per_byte_cell(const Run& run) {
  const double bytes = bytes_read(run);
  if (bytes <= 0) return kUnknown;
  const double flops = run.shape.flops() / bytes;
  return fixed(flops, flops < 1 ? 2 : 1);  // 0.06 is not 0.1
}

std::string cluster_bytes_per_output_cell(const Run& run) {
  return run.counters ? fixed(double(run.counters->cluster_bytes) / run.shape.m / run.shape.n, 1) : kUnknown;
}

std::string overlap_cell(const Run& run) {
  if (!run.counters || run.counters->copy_cycles <= 0) return kUnknown;
  return fixed(run.counters->overlap_cycles / run.counters->copy_cycles * 100, 0) + " %";
}

std::string shared_kb_cell(const Run& run) {
  return run.resources ? fixed(double(run.resources->shared_bytes) / 1024, 1) : kUnknown;
}
std::string registers_cell(const Run& run) {
  return run.resources && run.resources->registers ? count_cell(run.resources->registers) : kUnknown;
}
std::string blocks_cell(const Run& run) {
  return run.resources && run.resources->blocks_per_sm ? count_cell(run.resources->blocks_per_sm) : kUnknown;
}

int report_comparisons(const Report& report, const std::vector<Contender>& contenders,
                       const CommonOptions& options) {
  return report_comparisons(
      report, [&](const Shape&) { return contenders; }, options);
}

int report_comparisons(const Report& report, const ContendersOf& contenders, const CommonOptions& options) {
  ResultFile results = new_result_file();
  std::cout << report.title << "\n" << describe_device(device_info()) << "\n" << std::endl;
  Table table(std::cout, report.columns);
  if (!report.table_for_each_shape) table.header();

  Progress progress;
  std::vector<std::string> complaints, traffic, energy, samples, libraries;
  const auto run_shape = [&](const Shape& shape) {
    if (report.table_for_each_shape) {
      std::cout << (&shape == &options.shapes.front() ? "" : "\n") << shape.name() << " (M x N x K)\n";
      table.header();
    }
    std::vector<Contender> all = contenders(shape);
    if (options.with_library)
      for (const Contender& baseline : baselines(shape)) all.push_back(baseline);
    compare(all, shape, options.comparison, progress, [&](const Outcome& outcome) {
      table.row(report.cells(outcome));
      results.runs.push_back(outcome.run);
      // On the CPU device bytes are counted.
      if (!on_cpu_device() && outcome.run.global_bytes && outcome.contender->epilogue.apply)
        traffic.push_back(shape.name() + " " + outcome.contender->label + ": " +
                          fixed(*outcome.run.global_bytes * 1e-6, 1) + " MB");
      if (outcome.run.joules)
        energy.push_back(shape.name() + " " + outcome.contender->label + ": " +
                         fixed(*outcome.run.joules, 3) + " J");
      const std::string library = outcome.fastest_variant + " at " + shape.name();
      if (!outcome.fastest_variant.empty() && (libraries.empty() || libraries.back() != library))
        libraries.push_back(library);
      const std::string sample = sample_of(outcome);
      if (!sample.empty() && (samples.empty() || samples.back() != sample)) samples.push_back(sample);
      if (!outcome.complaint.empty())
        complaints.push_back(outcome.contender->lesson + " (" + outcome.contender->label +
                             (outcome.schedule.empty() ? "" : ", " + outcome.schedule) +
                             "): " + outcome.complaint);
    });
    if (report.after_shape) report.after_shape(shape, results.runs);
    write_results_so_far("--json", options.json_path, results);
  };
  const auto print_complaints = [&] {
    std::cout.flush();
    for (const std::string& complaint : complaints)
      std::cerr << report.program << ": error: wrong result of " << complaint << std::endl;
  };
  try {
    for (const Shape& shape : options.shapes) run_shape(shape);
  } catch (...) {
    print_complaints();
    throw;
  }

  const std::string clocks = describe_clocks(results.runs);
  if (!clocks.empty() || !samples.empty() || !libraries.empty()) std::cout << "\n";
  if (!clocks.empty()) std::cout << clocks << "\n";
  if (!libraries.empty())
    std::cout << "% library: of the fastest variant in the same run, " << join(libraries, ";\n  ") << "\n";
  if (!samples.empty())
    std::cout << "sampled: compared with fp64 were " << join(samples, ", ")
              << "; all elements were checked to be finite\n";
  if (!traffic.empty()) std::cout << "\nGlobal memory, if every operand and result crosses once:\n";
  for (const std::string& line : traffic) std::cout << "  " << line << "\n";
  if (options.comparison.energy)
    std::cout << (energy.empty() ? "\nNo energy: the driver does not count the joules of this GPU\n"
                                 : "\nEnergy of a launch, averaged over a second of launches:\n");
  for (const std::string& line : energy) std::cout << "  " << line << "\n";
  print_complaints();
  if (report.afterwards) report.afterwards(results);
  if (!options.json_path.empty()) write_results("--json", options.json_path, results);
  return complaints.empty() ? kExitOk : kExitFailure;
}

}  // namespace ladder
