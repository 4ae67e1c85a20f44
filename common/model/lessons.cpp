/// @file
/// What the cost model says of each lesson's kernel.
#include "common/model/lessons.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "common/host/base/text.hpp"

namespace ladder::model {
namespace {

namespace fs = std::filesystem;

struct Gpu {
  const char* name;
  int sms;
};
constexpr Gpu kGpus[] = {{"NVIDIA H200", 132}};
/// Dense bf16 products and sums of an SM's tensor cores; the H200's data sheet divided by SMs and clock.
constexpr double kFlopsPerCycle = 4096;
constexpr int kSizes[] = {4096, 8192, 16384};

const Gpu& known_gpu(const std::string& name) {
  for (const Gpu& gpu : kGpus)
    if (gpu.name == name) return gpu;
  throw std::invalid_argument("gpu '" + name + "': the model knows only the " + kGpus[0].name);
}

int rounded_up(int dividend, int divisor) { return (dividend + divisor - 1) / divisor; }

/// The value of a setting; `otherwise` where the run has none.
std::string setting(const Run& run, const std::string& name, const std::string& otherwise) {
  const auto found = run.settings.find(name);
  return found == run.settings.end() ? otherwise : found->second;
}

int number_of(const Run& run, const std::string& name, const std::string& otherwise) {
  constexpr uint64_t kMost = 1000;
  return static_cast<int>(parse_number(run.lesson + ", " + name, setting(run, name, otherwise), 1, kMost));
}

std::vector<Prediction> predictions(const ResultFile& file, const Parameters& parameters) {
  std::vector<Prediction> result;
  for (const int size : kSizes)
    for (const Run& run : file.runs) {
      const std::optional<Kernel> kernel = kernel_of(run);
      if (kernel && run.shape == Shape{size, size, size} && run.time_us_median && run.sm_clock_mhz)
        result.push_back(predict(run, *kernel, parameters, file.gpu));
    }
  return result;
}

}  // namespace

Pipeline ring_of(int slots, double load, double compute) {
  Pipeline pipeline{.load = load, .compute = compute};
  pipeline.load_interval = 0;
  pipeline.release = Release::after_next_wait;
  return with_slots(pipeline, slots);
}

double Kernel::step_cycles() const { return 2.0 * tile_m * tile_n * tile_k / kFlopsPerCycle; }

std::optional<Kernel> kernel_of(const Run& run) {
  if (run.core != "wgmma") return std::nullopt;
  if (run.lesson == "02_tiled") return Kernel{128, 128, 64, 1, 2, false};
  if (run.lesson == "03_double_buffer") {
    const std::string copy = setting(run, "copy", "primitives");
    if ((copy != "memcpy_async" && copy != "primitives") || setting(run, "bytes", "16") != "16")
      return std::nullopt;
    const int slots = number_of(run, "slots", "3");
    return Kernel{128,  128, 64, slots, slots <= 3 ? 2 : 1,
                  false};  // four slots of 32 KB leave no room for a second block
  }
  if (run.lesson == "04_warp_specialized")
    return Kernel{128, 128, number_of(run, "slot_k", "128"), 1, 2, true};
  if (run.lesson == "05_ws_double_buffer") {
    if (setting(run, "ratio", "1:2") != "1:2" || setting(run, "consumers", "together") != "together" ||
        setting(run, "epilogue", "none") != "none")
      return std::nullopt;
    return Kernel{128, 256, 64, number_of(run, "slots", "4"), 1, true};
  }
  if (run.lesson == "06_clusters_dsmem" && run.choice.rfind("128x256", 0) == 0)
    return Kernel{128, 256, 64, 4, 1, true};
  return std::nullopt;
}

Parameters parameters_from(const Calibration& one_slot, const Calibration& ring, const Calibration& clusters,
                           const ResultFile& climb) {
  if (!one_slot.load)
    throw std::invalid_argument(one_slot.lesson +
                                ": its timeline has more than one slot, so that loads are hidden");
  Parameters parameters;
  parameters.clock_recorded = one_slot.sm_clock_mhz && ring.sm_clock_mhz && clusters.sm_clock_mhz;
  double highest = 0;
  for (const Run& run : climb.runs) highest = std::max(highest, run.sm_clock_mhz.value_or(0));
  const auto cycles = [&](const Calibration& from, double ns) {
    return ns * (parameters.clock_recorded ? *from.sm_clock_mhz : highest) / 1000;
  };
  parameters.clock_mhz = parameters.clock_recorded ? *one_slot.sm_clock_mhz : highest;
  parameters.load = cycles(one_slot, *one_slot.load);
  parameters.epilogue_04 = cycles(one_slot, one_slot.epilogue);
  parameters.epilogue_05 = cycles(ring, ring.epilogue);
  parameters.epilogue_06 = cycles(clusters, clusters.epilogue);
  return parameters;
}

Prediction predict(const Run& run, const Kernel& kernel, const Parameters& parameters,
                   const std::string& gpu) {
  const int sms = known_gpu(gpu).sms;
  const int tiles = rounded_up(run.shape.m, kernel.tile_m) * rounded_up(run.shape.n, kernel.tile_n);
  const int steps = rounded_up(run.shape.k, kernel.tile_k);
  // The busiest block and the busiest SM decide.
  const int tiles_of_block = rounded_up(tiles, sms * kernel.blocks_per_sm),
            tiles_of_sm = rounded_up(tiles, sms);

  const Pipeline pipeline = ring_of(kernel.slots, parameters.load, kernel.step_cycles());
  const double epilogue = run.lesson == "06_clusters_dsmem"     ? parameters.epilogue_06
                          : run.lesson == "05_ws_double_buffer" ? parameters.epilogue_05
                                                                : parameters.epilogue_04;
  const double block = kernel.persistent
                           ? *closed_form(pipeline, tiles_of_block * steps) + tiles_of_block * epilogue
                           : tiles_of_block * (*closed_form(pipeline, steps) + epilogue);
  // Blocks that share an SM hide each other's waits, at best until its tensor cores are always busy.
  const double tensor_cores = double(tiles_of_sm) * steps * pipeline.compute;

  Prediction prediction;
  prediction.run = run;
  prediction.kernel = kernel;
  prediction.cycles = std::max(block, tensor_cores);
  prediction.us = prediction.cycles / run.sm_clock_mhz.value();
  prediction.error_percent = (prediction.us / run.time_us_median.value() - 1) * 100;
  const bool computes = tensor_cores >= block || *time_per_tile(pipeline) == pipeline.compute;
  prediction.bound = computes ? "tensor cores" : kernel.slots == 1 ? "load + compute" : "load";
  return prediction;
}

Report report_on(const std::string& directory) {
  const std::optional<std::string> newest = newest_result_file(directory);
  if (!newest) throw std::invalid_argument("--results '" + directory + "': holds no result file");
  Report report;
  report.climb = read_results("--results", *newest);
  const fs::path traces = fs::path(directory) / "traces";
  report.one_slot = calibrate("--results", (traces / "04_warp_specialized.json").string());
  report.ring = calibrate("--results", (traces / "05_ws_double_buffer.json").string());
  report.clusters = calibrate("--results", (traces / "06_clusters_dsmem.json").string());
  report.parameters = parameters_from(report.one_slot, report.ring, report.clusters, report.climb);
  report.climb_predictions = predictions(report.climb, report.parameters);
  for (const char* experiment : {"slots", "slot_k", "ring"}) {
    const std::optional<std::string> path =
        newest_result_file(directory + "/experiments", std::string("-") + experiment + ".json");
    if (!path) continue;
    const auto more = predictions(read_results("--results", *path), report.parameters);
    report.slot_predictions.insert(report.slot_predictions.end(), more.begin(), more.end());
  }
  return report;
}

}  // namespace ladder::model
