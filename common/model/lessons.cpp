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
  constexpr uint64_t kMax = 1000;
  return static_cast<int>(parse_number(run.lesson + ", " + name, setting(run, name, otherwise), 1, kMax));
}

bool same_run(const Run& a, const Run& b) {
  return a.lesson == b.lesson && a.shape == b.shape && a.settings == b.settings &&
         a.time_us_median == b.time_us_median;
}

std::vector<Prediction> predictions(const ResultFile& file, const Parameters& parameters) {
  std::vector<Prediction> result;
  for (const int size : kSizes)
    for (const Run& run : file.runs) {
      const std::optional<Kernel> kernel = kernel_of(run);
      const bool predicted = std::none_of(parameters.read_from.begin(), parameters.read_from.end(),
                                          [&](const Run& source) { return same_run(run, source); });
      if (kernel && predicted && run.shape == Shape{size, size, size} && run.time_us_median && run.clock_mhz)
        result.push_back(predict(run, *kernel, parameters, file.gpu));
    }
  return result;
}

/// Of products that are no smaller than 2048 cubed, which fill the GPU.
std::vector<Prediction> bound_predictions(const ResultFile& file) {
  constexpr double kSmallest = 2048;
  std::vector<Prediction> result;
  for (const Run& run : file.runs) {
    const bool large = std::min({run.shape.m, run.shape.n, run.shape.k}) >= kSmallest;
    const auto prediction = large ? predict_bound(run, file.gpu) : std::nullopt;
    if (prediction) result.push_back(*prediction);
  }
  return result;
}

/// The newest file of an experiment, if it was recorded.
std::optional<ResultFile> experiment(const std::string& directory, const std::string& name) {
  const std::optional<std::string> path =
      newest_result_file(directory + "/experiments", "-" + name + ".json");
  return path ? std::optional(read_results("--results", *path)) : std::nullopt;
}

/// 03's run at 4096 cubed, if it is in the file.
const Run* run_of_03(const ResultFile& file, int slots) {
  constexpr int kSize = 4096;
  for (const Run& run : file.runs) {
    const std::optional<Kernel> kernel = kernel_of(run);
    if (kernel && kernel->all_warps_copy && kernel->slots == slots &&
        run.shape == Shape{kSize, kSize, kSize} && run.time_us_median && run.clock_mhz)
      return &run;
  }
  return nullptr;
}

}  // namespace

Pipeline ring_of(int slots, double load, double compute, Release release) {
  Pipeline pipeline{.load = load, .compute = compute};
  pipeline.load_interval = 0;
  pipeline.release = release;
  return with_slots(pipeline, slots);
}

double Kernel::step_cycles() const { return 2.0 * tile_m * tile_n * tile_k / kFlopsPerCycle; }

std::optional<Kernel> kernel_of(const Run& run) {
  if (run.core != "wgmma") return std::nullopt;
  if (run.lesson == "02_tiled") {
    if (setting(run, "step", "core") != "core") return std::nullopt;
    return Kernel{128, 128, 64, 1, 2, false};
  }
  if (run.lesson == "03_double_buffer") {
    const std::string copy = setting(run, "copy", "primitives");
    if ((copy != "memcpy_async" && copy != "primitives") || setting(run, "bytes", "16") != "16")
      return std::nullopt;
    const int slots = number_of(run, "slots", "3");
    // Four slots of 32 KB leave no room for a second block.
    return Kernel{128, 128, 64, slots, slots <= 3 ? 2 : 1, false, true, Release::after_next_wait};
  }
  if (run.lesson == "04_warp_specialized") {
    if (run.rung.empty() ? setting(run, "step", "walk") != "walk" : run.rung != "04") return std::nullopt;
    return Kernel{128, 128, 64, 1, 2, true};
  }
  if (run.lesson == "05_ws_double_buffer") {
    if (setting(run, "ratio", "1:2") != "1:2" || setting(run, "consumers", "together") != "together" ||
        setting(run, "epilogue", "none") != "none" || setting(run, "step", "wide") != "wide" ||
        setting(run, "tile", "128x256") == "128x128" || setting(run, "in_flight", "auto") != "auto")
      return std::nullopt;
    return Kernel{128, 256, 64, number_of(run, "slots", "4"), 1, true};
  }
  if (run.lesson == "06_any_shape" && run.choice.rfind("128x256", 0) == 0)
    return Kernel{128, 256, 64, 4, 1, true, false, Release::after_next_wait};
  return std::nullopt;
}

Parameters parameters_from(const Calibration& one_slot, const Calibration& ring, const Calibration& clusters,
                           const ResultFile& climb) {
  if (!one_slot.load)
    throw std::invalid_argument(one_slot.lesson +
                                ": its timeline has more than one slot, so that loads are hidden");
  Parameters parameters;
  parameters.clock_recorded = one_slot.clock_mhz && ring.clock_mhz && clusters.clock_mhz;
  double highest = 0;
  for (const Run& run : climb.runs) highest = std::max(highest, run.clock_mhz.value_or(0));
  const auto cycles = [&](const Calibration& from, double ns) {
    return ns * (parameters.clock_recorded ? *from.clock_mhz : highest) / 1000;
  };
  parameters.clock_mhz = parameters.clock_recorded ? *one_slot.clock_mhz : highest;
  parameters.load = parameters.load_03 = cycles(one_slot, *one_slot.load);
  parameters.epilogue_04 = cycles(one_slot, one_slot.epilogue);
  parameters.epilogue_05 = cycles(ring, ring.epilogue);
  parameters.epilogue_06 = cycles(clusters, clusters.epilogue);
  return parameters;
}

void read_03(Parameters& parameters, const ResultFile& slots) {
  const Run *one = run_of_03(slots, 1), *five = run_of_03(slots, 5);
  if (!one || !five) return;
  const int sms = known_gpu(slots.gpu).sms;
  const auto clocks_of_step = [&](const Run& run) {
    const Kernel kernel = *kernel_of(run);
    const int tiles = rounded_up(run.shape.m, kernel.tile_m) * rounded_up(run.shape.n, kernel.tile_n);
    const double of_tile =
        *run.time_us_median * *run.clock_mhz / rounded_up(tiles, sms * kernel.blocks_per_sm);
    return (of_tile - parameters.epilogue_04) / rounded_up(run.shape.k, kernel.tile_k);
  };
  const double product = kernel_of(*one)->step_cycles();
  parameters.load_03 = std::max(0.0, clocks_of_step(*one) - product);
  parameters.turn_03 = std::max(0.0, clocks_of_step(*five) - product);
  parameters.read_from = {*one, *five};
}

std::optional<Prediction> predict_bound(const Run& run, const std::string& gpu) {
  Prediction prediction;
  prediction.run = run;
  if (run.lesson == "01_naive" && run.time_us_median && run.clock_mhz) {
    // A warp makes 32 elements. For each step of k it asks for a line of A and one of B, or along rows for 32
    // of A.
    constexpr int kWarp = 32;
    const int lines = setting(run, "along", "columns") == "rows" ? kWarp + 1 : 2;
    const double warps = double(run.shape.m) * run.shape.n / kWarp;
    prediction.cycles = warps * run.shape.k * lines / known_gpu(gpu).sms;
    prediction.us = prediction.cycles / *run.clock_mhz;
    prediction.bound = "load units";
  } else if (run.lesson == "07_streams" && setting(run, "experiment", "") == "levels" &&
             setting(run, "level", "0") != "0" && run.bound_us && run.time_us_median) {
    prediction.us = *run.bound_us;
    prediction.bound = setting(run, "bound_by", "");
  } else {
    return std::nullopt;
  }
  prediction.error_percent = (prediction.us / *run.time_us_median - 1) * 100;
  return prediction;
}

Prediction predict(const Run& run, const Kernel& kernel, const Parameters& parameters,
                   const std::string& gpu) {
  const int sms = known_gpu(gpu).sms;
  const int tiles = rounded_up(run.shape.m, kernel.tile_m) * rounded_up(run.shape.n, kernel.tile_n);
  const int steps = rounded_up(run.shape.k, kernel.tile_k);
  // The busiest block and the busiest SM decide.
  const int tiles_of_block = rounded_up(tiles, sms * kernel.blocks_per_sm),
            tiles_of_sm = rounded_up(tiles, sms);

  // With one slot the turn is part of the load.
  const double turn = kernel.all_warps_copy && kernel.slots > 1 ? parameters.turn_03 : 0;
  const Pipeline pipeline =
      ring_of(kernel.slots, kernel.all_warps_copy ? parameters.load_03 : parameters.load,
              kernel.step_cycles() + turn, kernel.release);
  const double epilogue = run.lesson == "06_any_shape"          ? parameters.epilogue_06
                          : run.lesson == "05_ws_double_buffer" ? parameters.epilogue_05
                                                                : parameters.epilogue_04;
  const double block = kernel.persistent
                           ? *closed_form(pipeline, tiles_of_block * steps) + tiles_of_block * epilogue
                           : tiles_of_block * (*closed_form(pipeline, steps) + epilogue);
  // Blocks that share an SM hide each other's waits, at best until its tensor cores are always busy.
  const double tensor_cores = double(tiles_of_sm) * steps * kernel.step_cycles();

  Prediction prediction;
  prediction.run = run;
  prediction.kernel = kernel;
  prediction.cycles = std::max(block, tensor_cores);
  prediction.us = prediction.cycles / run.clock_mhz.value();
  prediction.error_percent = (prediction.us / run.time_us_median.value() - 1) * 100;
  const bool computes = *time_per_tile(pipeline) == pipeline.compute;
  prediction.bound = tensor_cores >= block || (computes && turn == 0) ? "tensor cores"
                     : computes                                       ? "copy, then compute"
                     : kernel.slots == 1                              ? "load + compute"
                                                                      : "load";
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
  report.clusters = calibrate("--results", (traces / "06_any_shape.json").string());
  report.parameters = parameters_from(report.one_slot, report.ring, report.clusters, report.climb);
  if (const auto slots = experiment(directory, "slots")) read_03(report.parameters, *slots);
  report.climb_predictions = predictions(report.climb, report.parameters);
  const auto append = [](std::vector<Prediction>& all, const std::vector<Prediction>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (const char* name : {"slots", "ring"})
    if (const auto file = experiment(directory, name))
      append(report.slot_predictions, predictions(*file, report.parameters));
  append(report.bound_predictions, bound_predictions(report.climb));
  for (const char* name : {"coalescing", "levels"})
    if (const auto file = experiment(directory, name))
      append(report.bound_predictions, bound_predictions(*file));
  return report;
}

}  // namespace ladder::model
