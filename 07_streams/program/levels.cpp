/// @file
/// The table of levels.
#include "07_streams/program/levels.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <deque>
#include <map>
#include <sstream>

#include "07_streams/best_kernel.hpp"
#include "07_streams/measure/bound.hpp"
#include "07_streams/measure/measure.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/program/command_line.hpp"

namespace lesson07 {
namespace {

using ladder::fixed;

/// Host memory of a shape: the weights, and the ring's slots. Large, so there is one, used for one kind of
/// data after the other.
struct Stage {
  Stage(const Context& context, uint64_t data_seed)
      : batches(make_batches(context.shape, context.batches, data_seed)),
        pipeline(batches, context.streams, context.slots),
        weights(size_t(batches.k) * batches.n) {}

  Batches batches;
  Pipeline pipeline;
  PinnedBuffer<bf16> weights;
};

Schedule schedule_of(const Level& level, const Context& context) {
  return level.overlaps_batches ? Schedule{context.streams, false} : Schedule{1, true};
}

/// Enough batches for every slot and stream to be used again.
Batches first_of(const Batches& batches, int slots) {
  Batches few = batches;
  few.rows.resize(std::min<size_t>(few.rows.size(), 3 * slots + 1));
  return few;
}

/// Every level on small integers, bit for bit. @throws WrongResult
void verify(Stage& stage, const std::vector<Level>& chosen, const Context& context, uint64_t data_seed) {
  fill_integers(stage.weights.data(), stage.weights.size(), data_seed);
  const Batches few = first_of(stage.batches, context.slots);
  for (const Level& level : chosen) {
    // Uploaded anew, so that all streams of each level must wait for that.
    const Weights weights(stage.weights, stage.batches.k, stage.batches.n);
    try {
      run_batches(few, IntegerData(few, stage.weights.data(), data_seed), weights, level.kernel,
                  stage.pipeline, schedule_of(level, context));
    } catch (const WrongResult& wrong) {
      throw WrongResult(fmt::format("level {}: {}", level.number, wrong.what()));
    }
  }
}

void print(const Context& context, const Stage& stage, const std::vector<Level>& chosen,
           const std::vector<Measured>& times, const std::vector<Bound>& bounds) {
  const Batches& batches = stage.batches;
  context.out << batches.count() << " batches of "
              << *std::min_element(batches.rows.begin(), batches.rows.end()) << " to " << batches.most_rows()
              << " rows, weights " << batches.k << " x " << batches.n << ", " << context.streams
              << " streams, " << context.slots << " slots\n";
  ladder::Table table(context.out, {{"level", 5, false},
                                    {"added", 28, false},
                                    {"ms", 9},
                                    {"+- %", 5},
                                    {"TFLOP/s", 7},
                                    {"bound ms", 9},
                                    {"x bound", 7},
                                    {"bound by", 8, false}});
  table.header();
  for (size_t i = 0; i < chosen.size(); ++i) {
    const double us = times[i].median_us;
    table.row({std::to_string(chosen[i].number), chosen[i].added, fixed(us / 1e3, 3),
               fixed((times[i].q3_us - times[i].q1_us) / 2 / us * 100, 1),
               fixed(batches.flops() / us / 1e6, 1), fixed(bounds[i].us() / 1e3, 3),
               fixed(us / bounds[i].us(), 3), bounds[i].engine()});
  }
}

/// The settings of a level's result row, and how it is run.
Variant variant_of(const Level& level, const Context& context, const std::function<void()>& run) {
  return {level.added,
          {{"level", std::to_string(level.number)},
           {"kernel", level.kernel.lesson->name},
           {"batches", std::to_string(context.batches)},
           {"streams", std::to_string(schedule_of(level, context).streams)},
           {"slots", std::to_string(context.slots)}},
          run};
}

/// All levels, their kernels alone and the copies alone, in turns.
void measure(Stage& stage, const std::vector<Level>& chosen, const Context& context, uint64_t data_seed) {
  const Batches& batches = stage.batches;
  fill_normals(stage.weights.data(), stage.weights.size(), data_seed);
  fill_uploads(stage.pipeline, batches, data_seed);
  const Weights weights(stage.weights, batches.k, batches.n);
  const StampedData data(batches, stage.weights.data());
  CopiesAlone copies(batches, stage.pipeline);
  KernelsAlone kernels(batches, weights, stage.pipeline);

  std::vector<Variant> variants;
  for (const Level& level : chosen)
    variants.push_back(variant_of(level, context, [&] {
      run_batches(batches, data, weights, level.kernel, stage.pipeline, schedule_of(level, context));
    }));
  variants.push_back({"copies alone", {}, [&] { copies.run(); }});
  std::map<std::string, size_t> alone;  // levels 0 and 1 have the same kernel
  for (const Level& level : chosen)
    if (alone.emplace(level.kernel.lesson->name, variants.size()).second)
      variants.push_back({"kernels alone", {}, [&] { kernels.run(level.kernel); }});

  const std::vector<Measured> times = measure_interleaved(variants, context.rounds);
  std::vector<Bound> bounds;
  for (const Level& level : chosen)
    bounds.push_back(
        {copies.upload_us(), times[alone.at(level.kernel.lesson->name)].median_us, copies.download_us()});
  print(context, stage, chosen, times, bounds);
  for (size_t i = 0; i < chosen.size(); ++i) {
    ladder::Run row = result_row("levels", variants[i], context.shape, times[i]);
    row.settings["bound_by"] = bounds[i].engine();
    row.bound_us = bounds[i].us();
    row.tflops = batches.flops() / times[i].median_us / 1e6;
    row.verified = true;  // else run_batches would have thrown
    context.results.runs.push_back(row);
  }
}

}  // namespace

std::string default_shapes() {
  return ladder::on_cpu_device() ? "192x160x256" : "2048x4096x4096,2048x16384x16384";
}

int default_batches() { return ladder::on_cpu_device() ? 8 : 200; }

std::vector<Level> levels() {
  std::vector<Level> result = {{0, "nothing (kernel of 02)", kernel_of("02"), false},
                               {1, "streams", kernel_of("02"), true}};
  const auto add = [&](int number, const std::string& idea, const std::string& lesson) {
    if (pays_here(lesson))
      result.push_back({number, idea + " (kernel of " + lesson.substr(0, 2) + ")", kernel_of(lesson), true});
  };
  add(2, "roles", "04");
  add(3, "ring", pays_here("05") ? "05" : "03");
  add(4, "clusters, where they pay", "06_clusters_dsmem");  // its rules take the best kernel for a shape
  return result;
}

void run_levels(const Context& context, const std::vector<int>& numbers, uint64_t data_seed) {
  std::vector<Level> chosen;
  const std::vector<Level> here = levels();
  for (const int number : numbers) {
    const auto level =
        std::find_if(here.begin(), here.end(), [&](const Level& level) { return level.number == number; });
    if (level == here.end()) {
      context.out << "no level " << number << ": its kernel does not run here, or gains nothing\n";
      continue;
    }
    ladder::check_lesson(*level->kernel.lesson, level->kernel.settings, context.shape);
    chosen.push_back(*level);
  }
  if (chosen.empty()) throw ladder::BadInput("none of the levels runs here");
  Stage stage(context, data_seed);
  verify(stage, chosen, context, data_seed);
  measure(stage, chosen, context, data_seed);
}

std::vector<ladder::Run> measured_levels(const ladder::Shape& shape, int rounds) {
  std::vector<int> all;
  for (const Level& level : levels()) all.push_back(level.number);
  std::ostringstream table;
  ladder::ResultFile results;
  run_levels({table, results, shape, default_batches(), rounds}, all, 1);
  return results.runs;
}

}  // namespace lesson07
