/// @file
/// What the cost model says of each lesson's kernel.
#include "common/model/lessons.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/host/base/text.hpp"

namespace ladder::model {
namespace {

struct Gpu {
  const char* name;
  int sms;
};
constexpr Gpu kGpus[] = {{"NVIDIA H200", 132}};
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

std::vector<Prediction> predictions(const ResultFile& file, const Parts& parts) {
  std::vector<Prediction> result;
  for (const int size : kSizes)
    for (const Run& run : file.runs) {
      const std::optional<StepKind> kernel = kernel_of(run);
      if (kernel && run.shape == Shape{size, size, size} && run.time_us_median && run.clock_mhz)
        result.push_back(predict(run, *kernel, parts, file.gpu));
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

}  // namespace

std::optional<StepKind> kernel_of(const Run& run) {
  if (run.core != "wgmma") return std::nullopt;
  const std::string step = setting(run, "step", "");
  if (run.lesson == "02_tiled") {
    if (step != "" && step != "core") return std::nullopt;
    return StepKind{Mover::registers, 128, 1, 2};
  }
  if (run.lesson == "03_double_buffer") {
    const std::string copy = setting(run, "copy", "primitives");
    if ((copy != "memcpy_async" && copy != "primitives") || setting(run, "bytes", "16") != "16")
      return std::nullopt;
    if (setting(run, "l1", "auto") == "always") return std::nullopt;  // the parts were timed past L1
    const int slots = number_of(run, "slots", "3");
    // Four slots of 32 KB leave no room for a second block.
    return StepKind{Mover::cp_async, 128, slots, slots <= 3 ? 2 : 1};
  }
  if (run.lesson == "04_warp_specialized") {
    if (step == "tma") return StepKind{Mover::thread, 128, 1, 2};
    return StepKind{Mover::role, 128, 1, 2};
  }
  const bool as_in_05 = setting(run, "ratio", "1:2") == "1:2" &&
                        setting(run, "consumers", "together") == "together" &&
                        setting(run, "epilogue", "none") == "none";
  if (run.lesson == "05_ws_double_buffer") {
    const bool waits = setting(run, "in_flight", "auto") == "auto";
    const std::string tile = setting(run, "tile", "auto");
    if (!as_in_05 || !waits) return std::nullopt;
    const bool narrow = tile == "128x128" || step == "ring" || step == "pieces";
    return StepKind{Mover::role, narrow ? 128 : 256, number_of(run, "slots", "4"), 1};
  }
  if (run.lesson == "05_cube") {
    if (setting(run, "in_flight", "0") != "0") return std::nullopt;
    const Mover mover = setting(run, "roles", "on") == "on" ? Mover::role : Mover::thread_behind;
    return StepKind{mover, 128, number_of(run, "slots", "4"), number_of(run, "blocks", "1")};
  }
  // At the sizes of the predictions, rows are whole cache lines and tiles are plenty: neither step of 06 uses
  // its cluster.
  if (run.lesson == "06_clusters_dsmem" && setting(run, "clusters", "auto") == "auto")
    return StepKind{Mover::role, 256, 4, 1};
  return std::nullopt;
}

std::optional<Prediction> predict_bound(const Run& run, const std::string& gpu) {
  Prediction prediction;
  prediction.run = run;
  prediction.kernel.slots = 0;
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

Prediction predict(const Run& run, StepKind kernel, const Parts& parts, const std::string& gpu) {
  kernel.mhz = run.clock_mhz.value();
  const int sms = known_gpu(gpu).sms;
  const int tiles = rounded_up(run.shape.m, kTileM) * rounded_up(run.shape.n, kernel.tile_n);
  const int steps = rounded_up(run.shape.k, kTileK);
  const auto of_tile = [&](const StepKind& step) {
    return steps * clocks_of_step(parts, step) + clocks_of_epilogue(parts, step);
  };
  // Two blocks share an SM as long as there are tiles for both. A last tile has it for itself.
  const int of_busiest_sm = rounded_up(tiles, sms), alone = of_busiest_sm % kernel.blocks_per_sm;
  StepKind last = kernel;
  last.blocks_per_sm = 1;

  Prediction prediction;
  prediction.run = run;
  prediction.kernel = kernel;
  prediction.cycles = (of_busiest_sm - alone) * of_tile(kernel) + alone * of_tile(last);
  prediction.us = prediction.cycles / run.clock_mhz.value();
  prediction.error_percent = (prediction.us / run.time_us_median.value() - 1) * 100;
  prediction.bound = bound_of_step(parts, kernel);
  return prediction;
}

Report report_on(const std::string& directory) {
  const std::optional<std::string> newest = newest_result_file(directory);
  if (!newest) throw std::invalid_argument("--results '" + directory + "': holds no result file");
  Report report;
  report.climb = read_results("--results", *newest);
  const auto newest_of = [&](const std::string& name) {
    const auto path = newest_result_file(directory + "/experiments", "-" + name + ".json");
    if (!path) throw std::invalid_argument("--results '" + directory + "': holds no record of " + name);
    return *path;
  };
  report.parts = read_parts("--results", {newest_of("parts"), newest_of("paces"), newest_of("path")});
  report.climb_predictions = predictions(report.climb, report.parts);
  const auto append = [](std::vector<Prediction>& all, const std::vector<Prediction>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (const char* name : {"slots", "ring", "cube"})
    if (const auto file = experiment(directory, name))
      append(report.slot_predictions, predictions(*file, report.parts));
  append(report.bound_predictions, bound_predictions(report.climb));
  for (const char* name : {"coalescing", "levels"})
    if (const auto file = experiment(directory, name))
      append(report.bound_predictions, bound_predictions(*file));
  return report;
}

}  // namespace ladder::model
