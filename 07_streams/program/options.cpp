/// @file
/// The command line of `07_streams`.
#include "07_streams/program/options.hpp"

#include <algorithm>
#include <stdexcept>

#include "07_streams/experiments/experiment.hpp"
#include "07_streams/program/levels.hpp"
#include "common/host/base/arguments.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"

namespace lesson07 {
namespace {

constexpr int kLevels = 5;

std::vector<int> parse_levels(const std::string& list) {
  std::vector<int> levels;
  for (const std::string& text : ladder::split(list, ','))
    levels.push_back(static_cast<int>(ladder::parse_number("--level", text, 0, kLevels - 1)));
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

std::vector<std::string> parse_experiments(const std::string& list) {
  std::vector<std::string> known{"levels"};
  for (const Experiment* experiment : experiments()) known.push_back(experiment->name);
  std::vector<std::string> names = ladder::split(list, ',');
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw std::invalid_argument("--experiment " + name + ": must be one of " + ladder::join(known, ", "));
  return names;
}

}  // namespace

bool read_options(int argc, char** argv, Options& options) {
  ladder::Arguments arguments(
      "Streams batches through the GPU: uploads, kernels and downloads at the same time", "07_streams");
  const bool cpu = ladder::on_cpu_device();
  std::string experiments = "levels", levels = "0,1,2,3,4", sizes, shapes;
  std::string batches = std::to_string(default_batches()), streams = "3", slots = "6", rounds = "5",
              data_seed = "1";
  ladder::ExecutionOptions execution;
  arguments.add_flag("--list", options.list, "List the experiments, each with its question");
  arguments.add_option("--experiment", experiments, "NAME", "Run these instead of the table of levels");
  arguments.add_option("--level", levels, "0..4", "Only these levels of the table, for example 0,4");
  arguments.add_option("--size", sizes, "N", "The same as --shape NxNxN");
  arguments.add_option(
      "--shape", shapes, "MxNxK",
      "A batch has M rows on average, the weights are K x N; a list gives several tables (default " +
          default_shapes() + ")");
  arguments.add_option("--batches", batches, "B", "How many batches (default " + batches + ")");
  arguments.add_option("--streams", streams, "S", "Streams that the batches take turns in (default 3)");
  arguments.add_option("--slots", slots, "S", "Slots of pinned memory in each direction (default 6)");
  if (cpu)
    arguments.refuse("--rounds", ladder::kOnlyTimedOnGpu);
  else
    arguments.add_option("--rounds", rounds, "R", "Samples of each measurement (default 5)");
  arguments.add_option("--data-seed", data_seed, "SEED", "Chooses other sizes and input data");
  arguments.add_option("--json", options.json_path, "PATH", "Write the results to this file");
  arguments.add_option(
      "--trace", options.trace_path, "PATH",
      "Run each schedule once more and write what its streams did to this file, for Perfetto");
  execution.add_to(arguments);
  if (!arguments.parse(argc, argv)) return false;

  options.experiments = parse_experiments(experiments);
  options.levels = parse_levels(levels);
  if (!sizes.empty()) options.shapes = ladder::parse_sizes("--size", sizes);
  if (shapes.empty() && sizes.empty()) shapes = default_shapes();
  if (!shapes.empty())
    for (const ladder::Shape& shape : ladder::parse_shapes("--shape", shapes))
      options.shapes.push_back(shape);
  const auto number = [](const char* option, const std::string& text, uint64_t low, uint64_t high) {
    return static_cast<int>(ladder::parse_number(option, text, low, high));
  };
  options.batches = number("--batches", batches, 1, 100'000);
  options.streams = number("--streams", streams, 1, 64);
  options.slots = number("--slots", slots, 1, 64);
  options.rounds = number("--rounds", rounds, 1, 10'000);
  options.data_seed = ladder::parse_number("--data-seed", data_seed, 0, UINT32_MAX);
  options.execution = execution.parsed();
  if (!options.json_path.empty()) ladder::check_writable("--json", options.json_path);
  if (!options.trace_path.empty()) ladder::check_writable("--trace", options.trace_path);
  return true;
}

}  // namespace lesson07
