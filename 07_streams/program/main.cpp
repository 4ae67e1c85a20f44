/// @file
/// The program of lesson 07: the table of levels, or one of the experiments. `07_streams --help` lists what
/// it can do.
#include <iostream>
#include <optional>

#include "07_streams/experiments/experiment.hpp"
#include "07_streams/measure/trace_recorder.hpp"
#include "07_streams/program/levels.hpp"
#include "07_streams/program/options.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/interrupt.hpp"
#include "common/host/device/device.hpp"
#include "common/host/program/program.hpp"

namespace lesson07 {
namespace {

void print_experiments() {
  std::cout << "levels        What is each level of overlap worth, and how far is the last from the bound?\n";
  for (const Experiment* experiment : experiments())
    std::cout << experiment->name
              << std::string(std::max<size_t>(14, experiment->name.size() + 1) - experiment->name.size(), ' ')
              << experiment->question << "\n";
}

void run_experiment(const std::string& name, const Context& context, const Options& options) {
  if (name == "levels") {
    run_levels(context, options.levels, options.data_seed);
    return;
  }
  for (const Experiment* experiment : experiments()) {
    if (experiment->name != name) continue;
    context.out << experiment->question << "\n";
    experiment->run(context);
  }
}

int run(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) return ladder::kExitOk;
  if (options.list) {
    print_experiments();
    return ladder::kExitOk;
  }
  ladder::require_device();
  ladder::catch_interrupts();
  ladder::ResultFile results = ladder::new_result_file();
  std::cout << results.gpu << ", " << results.toolkit
            << (ladder::on_cpu_device() ? ": times are virtual; it executes semantics, not speed" : "")
            << std::endl;
  std::optional<TraceRecorder> recorder;
  if (!options.trace_path.empty()) recorder.emplace(options.trace_path);
  for (const std::string& schedule : options.execution.schedules) {
    ladder::use_schedule(options.execution, schedule);
    for (const std::string& name : options.experiments)
      for (const ladder::Shape& shape : options.shapes) {
        std::cout << "\n" << name << (schedule.empty() ? "" : ", " + schedule) << ": ";
        if (recorder) recorder->begin_experiment(name + " " + shape.name());
        try {
          run_experiment(
              name,
              {std::cout, results, shape, options.batches, options.rounds, options.streams, options.slots},
              options);
        } catch (...) {
          std::cout << std::endl;  // the error begins a line of its own
          throw;
        }
        ladder::write_results_so_far("--json", options.json_path, results);
        if (!recorder) continue;
        recorder->print(std::cout);
        if (ladder::can_be_rewritten(options.trace_path)) recorder->write();
      }
  }
  if (recorder) recorder->write();
  if (!options.json_path.empty()) ladder::write_results("--json", options.json_path, results);
  return ladder::kExitOk;
}

}  // namespace
}  // namespace lesson07

int main(int argc, char** argv) {
  return ladder::run_program("07_streams", [&] {
    try {
      return lesson07::run(argc, argv);
    } catch (const ladder::Interrupted& interrupted) {
      std::cout.flush();
      std::cerr << "07_streams: " << interrupted.what() << std::endl;
      return ladder::kExitInterrupted;
    }
  });
}
