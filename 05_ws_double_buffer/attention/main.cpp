/// @file
/// The program `05_attention`: checks each step on each problem, and on a GPU times them against each other.
#include <fmt/core.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <stdexcept>

#include "05_ws_double_buffer/attention/check.hpp"
#include "05_ws_double_buffer/attention/kernels.hpp"
#include "05_ws_double_buffer/attention/measure.hpp"
#include "common/host/base/arguments.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/json.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/device/execution.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/results.hpp"

namespace lesson05::attention {
namespace {

constexpr char kProgram[] = "05_attention";
constexpr int kMost = 1 << 20;

struct Options {
  std::vector<Extent> extents;
  std::vector<const Step*> steps;
  std::string data = "random", json_path;
  uint64_t seed = 1;
  int rounds = 11;
  ladder::Execution execution;
};

/// Of a list, or all of them.
std::vector<std::string> choices(const char* option, const std::string& text,
                                 const std::vector<std::string>& all) {
  if (text == "all") return all;
  const std::vector<std::string> chosen = ladder::split(text, ',');
  for (const std::string& one : chosen)
    if (std::find(all.begin(), all.end(), one) == all.end())
      throw std::invalid_argument(
          fmt::format("{} {}: must be all, or some of {}", option, one, ladder::join(all, ", ")));
  return chosen;
}

/// @returns false if that was all, as with --help
bool read_options(int argc, char** argv, Options& options) {
  const bool cpu = ladder::on_cpu_device();
  std::string lengths = cpu ? "300" : "4096", heads = cpu ? "2" : "16", kv_heads, batch, tokens,
              causal = "all", chosen = "all", rounds = "11", seed = "1";
  ladder::Arguments arguments(
      "The forward pass of attention, O = softmax(Q K^T / sqrt(d)) V with d = 128, in steps", kProgram);
  arguments.add_option(
      "--length", lengths, "N",
      "Queries and keys of a sequence; a list gives several problems (default " + lengths + ")");
  arguments.add_option("--heads", heads, "N", "Heads of Q (default " + heads + ")");
  arguments.add_option("--kv-heads", kv_heads, "N",
                       "Heads of K and V, which heads of Q share (default: as many)");
  arguments.add_option("--batch", batch, "N", "Sequences (default 1)");
  arguments.add_option("--tokens", tokens, "N", "As many sequences as have so many queries together");
  arguments.exclude("--tokens", "--batch");
  arguments.add_option("--causal", causal, "off,on",
                       "Whether a query sees only keys up to its own (default: both)");
  arguments.add_option("--step", chosen, "1..5", "Only these steps, for example 2,5");
  arguments.add_option("--data", options.data, "NAME",
                       "What Q, K and V hold: " + ladder::join(data_names(), ", ") + " (default random)");
  arguments.add_option("--data-seed", seed, "SEED", "Chooses other data");
  if (!cpu)
    arguments.add_option("--rounds", rounds, "R", "Samples of each measurement; 0: only check (default 11)");
  arguments.add_option("--json", options.json_path, "PATH", "Write the results to this file");
  ladder::ExecutionOptions execution;
  execution.add_to(arguments);
  if (!arguments.parse(argc, argv)) return false;

  const auto number = [](const char* option, const std::string& text) {
    return static_cast<int>(ladder::parse_number(option, text, 1, kMost));
  };
  std::vector<std::string> names;
  for (const Step& step : steps()) names.push_back(step.name);
  for (const std::string& name : choices("--step", chosen, names))
    options.steps.push_back(&steps()[std::find(names.begin(), names.end(), name) - names.begin()]);
  for (const std::string& length : ladder::split(lengths, ','))
    for (const std::string& is_causal : choices("--causal", causal, {"off", "on"})) {
      Extent extent{1, number("--heads", heads), 0, number("--length", length), is_causal == "on"};
      extent.kv_heads = kv_heads.empty() ? extent.heads : number("--kv-heads", kv_heads);
      if (!batch.empty()) extent.batch = number("--batch", batch);
      if (!tokens.empty()) extent.batch = std::max(1, number("--tokens", tokens) / extent.length);
      extent.check();
      options.extents.push_back(extent);
    }
  choices("--data", options.data, data_names());
  options.seed = ladder::parse_number("--data-seed", seed, 0, UINT32_MAX);
  options.rounds = static_cast<int>(ladder::parse_number("--rounds", rounds, 0, 10'000));
  options.execution = execution.parsed();
  if (!options.json_path.empty()) ladder::check_writable("--json", options.json_path);
  return true;
}

/// "05_attention --step 3 --length 300 ...", which repeats a run.
std::string command(const Step& step, const Extent& extent, const std::string& data,
                    const std::string& schedule) {
  return fmt::format("{} --step {} --length {} --heads {} --kv-heads {} --batch {} --causal {} --data {}{}",
                     kProgram, step.name, extent.length, extent.heads, extent.kv_heads, extent.batch,
                     extent.causal ? "on" : "off", data,
                     schedule.empty() ? "" : " --schedule " + schedule + " --check-races");
}

/// Runs a step on each schedule. @returns whether all results were right; if not, the complaint is on stderr
bool is_right(const Step& step, Checker& checker, const Extent& extent, const std::string& data,
              const ladder::Execution& execution) {
  bool all_right = true;
  for (const std::string& schedule : execution.schedules) {
    ladder::use_schedule(execution, schedule);
    std::string complaint;
    try {
      complaint = checker.complaint([&](const Attention& p) { step.launch(p, nullptr); });
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("step {}: {}\nrepeat it with: {}", step.name, error.what(),
                                           command(step, extent, data, schedule)));
    }
    if (complaint.empty()) continue;
    all_right = false;
    std::cout.flush();
    std::cerr << fmt::format("{}: error: wrong result of step {}: {}\nrepeat it with: {}", kProgram,
                             step.name, complaint, command(step, extent, data, schedule))
              << std::endl;
  }
  return all_right;
}

/// What one run hides on the CPU device: races, on two schedules, where rings wrap, blocks are ragged, some
/// are masked, and later ones have larger scores.
bool check_unasked(const Options& options) {
  const std::optional<ladder::Execution> thorough = ladder::thorough_execution();
  if (!thorough || options.execution.only_asked) return true;
  bool all_right = true;
  for (const Extent& extent :
       {Extent{1, 2, 1, 420, false}, Extent{1, 1, 1, 650, true}, Extent{1, 1, 1, 1, true}}) {
    Checker checker(extent, "rising", options.seed);
    for (const Step* step : options.steps) all_right &= is_right(*step, checker, extent, "rising", *thorough);
  }
  std::cout << "\nchecked: races, at lengths 420 and 650 on 2 schedules" << std::endl;
  return all_right;
}

ladder::Json row_of(const Step& step, const Extent& extent) {
  return {{"step", step.name},     {"length", extent.length},     {"batch", extent.batch},
          {"heads", extent.heads}, {"kv_heads", extent.kv_heads}, {"causal", extent.causal}};
}

int run(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) return ladder::kExitOk;
  ladder::require_device();
  if (const std::string reason = ladder::why_not({ladder::kHopper, {"wgmma"}}, ladder::this_target());
      !reason.empty())
    throw ladder::BadInput(fmt::format("{} {}", kProgram, reason));
  const ladder::ResultFile file = ladder::new_result_file();
  ladder::Json rows = ladder::Json::array();
  const bool timed = !ladder::on_cpu_device() && options.rounds > 0;
  bool all_right = true;
  std::cout << fmt::format("{}, {}{}\n", file.gpu, file.toolkit,
                           timed ? "" : ": checks results, and times nothing");
  for (const Extent& extent : options.extents) {
    std::cout << "\n" << extent.name() << "\n";
    Checker checker(extent, options.data, options.seed);
    ladder::Table table(std::cout, {{"step", 4},
                                    {"registers", 9},
                                    {"KB", 4},
                                    {"error", 8},
                                    {"us", 9},
                                    {"TFLOP/s", 7},
                                    {"MHz", 5},
                                    {"what is in it", 50, false}});
    table.header();
    std::vector<Timing> timings;
    std::vector<double> errors;
    for (const Step* step : options.steps) {
      all_right &= is_right(*step, checker, extent, options.data, options.execution);
      errors.push_back(checker.rel_error());
    }
    if (timed) timings = time_steps(options.steps, checker.arguments(), options.rounds);
    for (size_t i = 0; i < options.steps.size(); ++i) {
      const Step& step = *options.steps[i];
      const ladder::Resources resources = step.resources();
      ladder::Json row = row_of(step, extent);
      row["rel_error"] = errors[i];
      std::vector<std::string> times(3, "-");
      if (timed) {
        const double us = timings[i].time_us.median, tflops = extent.flops() / us * 1e-6;
        times = {ladder::fixed(us, 1), ladder::fixed(tflops, 1), ladder::fixed(timings[i].clock_mhz, 0)};
        row["time_us_median"] = us;
        row["time_us_q1"] = timings[i].time_us.q1;
        row["time_us_q3"] = timings[i].time_us.q3;
        row["tflops"] = tflops;
        row["clock_mhz"] = timings[i].clock_mhz;
      }
      table.row({step.name, std::to_string(resources.registers),
                 std::to_string(resources.shared_bytes / 1024), fmt::format("{:.1e}", errors[i]), times[0],
                 times[1], times[2], step.idea});
      rows.push_back(row);
    }
  }
  all_right &= check_unasked(options);
  if (!options.json_path.empty()) {
    const ladder::Json document = {{"date", file.date},     {"commit", file.commit},   {"gpu", file.gpu},
                                   {"driver", file.driver}, {"toolkit", file.toolkit}, {"runs", rows}};
    ladder::write_file_atomically("--json", options.json_path,
                                  [&](std::ostream& out) { out << ladder::json_rows(document); });
  }
  return all_right ? ladder::kExitOk : ladder::kExitFailure;
}

}  // namespace
}  // namespace lesson05::attention

int main(int argc, char** argv) {
  return ladder::run_program(lesson05::attention::kProgram,
                             [&] { return lesson05::attention::run(argc, argv); });
}
