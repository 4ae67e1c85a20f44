/// @file
/// What each ingredient of a lesson is worth: knobs, and the lab's broken programs, switch it off.
#include "common/ladder/ablate.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/host/base/arguments.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/subprocess.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/shape.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/results.hpp"

namespace ladder {
namespace {
namespace fs = std::filesystem;

constexpr int kGpuSize = 4096, kCpuSize = 512;
constexpr int kTurns = 3;  ///< of all programs, one after the other; the median counts

/// A lesson without one ingredient: one of its own programs with an option, or a program of the lab.
struct Variant {
  std::string without, program;
  std::vector<std::string> options;
};

/// The lesson itself comes first. A program called right_NN is the same kernel. The swizzle is switched off
/// where it was introduced: wgmma, which is all that 05 and 06 have, reads unswizzled tiles only in another
/// layout, in pieces of 8 x 8 elements, for which TMA would have to copy boxes of eight columns.
const std::map<std::string, std::vector<Variant>>& ablations() {
  static const std::vector<std::string> mma_sync = {"--core", "mma_sync"},
                                        pair = {"--tile", "128x256", "--cluster_m", "2"},
                                        yours = {"--lessons", "yours"};
  static const std::map<std::string, std::vector<Variant>> all = {
      {"02",
       {{"(as it is)", "right_02", mma_sync},
        {"swizzle", "broken_02_swizzle_off", mma_sync},
        {"coalesced loads", "broken_02_uncoalesced_loads", mma_sync}}},
      {"05",
       {{"(as it is)", "05_ws_double_buffer", {}},
        {"the ring", "05_ws_double_buffer", {"--slots", "1"}},
        {"half of the ring", "05_ws_double_buffer", {"--slots", "2"}},
        {"short K steps", "broken_05_deep_k_tiles", {}},
        {"the wide tile", "broken_05_narrow_tile", {}},
        {"order of tiles", "broken_05_one_tile_order", {}},
        {"second compute warpgroup", "broken_05_wrong_role_ratio", {}},
        {"setmaxnreg", "broken_05_setmaxnreg_ignored", {}},
        {"one arrival for a release", "broken_05_all_threads_release", {}},
        {"stores by TMA", "broken_05_stores_from_registers", {}},
        {"persistence", "broken_05_not_persistent", {}}}},
      {"06",
       {{"(as it is)", "06_clusters_dsmem", {}},
        {"multicast", "broken_06_no_multicast", {}},
        {"the split of K", "06_clusters_dsmem", {"--step", "multicast"}}}},
      {"any",
       {{"(as it is)", "right_any", pair},
        {"multicast", "broken_any_no_multicast", pair},
        {"relaxed arrivals", "broken_any_release_at_cluster_scope", pair}}},
      // The learner's kernel as it was after earlier stages: each row lacks what those above it lack, too.
      {"capstone",
       {{"(as it is)", "capstone", yours},
        {"storer, persistence", "capstone_stage_7", yours},
        {"the ring", "capstone_stage_6", yours},
        {"roles", "capstone_stage_5", yours}}}};
  return all;
}

/// A word that a shell takes as it is, to be copied from a message.
std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char letter) {
    return std::isalnum(letter) || std::strchr("/._-+,", letter);
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

/// Runs the program beside this one and reads what it measured.
/// @throws BadInput if it is not built, std::runtime_error if it fails
Run measure(const Variant& variant, const Shape& shape, const fs::path& folder, bool verify) {
  const fs::path program = folder / variant.program,
                 results =
                     fs::temp_directory_path() / ("ladder_ablate_" + std::to_string(getpid()) + ".json");
  if (!fs::exists(program) && variant.program.rfind("capstone", 0) == 0)
    throw BadInput(program.string() +
                   " is not built: ladder learn capstone --run builds what you have come to");
  if (!fs::exists(program))
    throw BadInput(program.string() + " is not built: cmake --build " +
                   shell_word(folder.parent_path().string()) + " --target lab");
  std::vector<std::string> command = {program.string(), "--shape", shape.name()};
  const auto add = [&](const std::vector<std::string>& words) {
    command.insert(command.end(), words.begin(), words.end());
  };
  add(variant.options);
  add({"--json", results.string()});
  if (!verify) add({"--no-verify"});
  if (!on_cpu_device()) add({"--no-library", "--rounds", "5", "--sample-ms", "50"});
  if (run_subprocess(command, {.output = "/dev/null"}).exit_code != kExitOk)
    throw std::runtime_error("failed: " + join(command, " "));
  Run run = read_results("--json", results.string()).runs.at(0);
  fs::remove(results);
  run.settings["without"] = variant.without;
  return run;
}

/// A run of each. Counts do not vary; times do, so that there are turns, all programs and then all again, and
/// the run with the median time is the one that counts. The first turn verifies the results. Calls `so_far`
/// with what each turn has come to.
void measure_all(const std::vector<Variant>& variants, const Shape& shape, const fs::path& folder,
                 const std::function<void(const std::vector<Run>&)>& so_far) {
  const int turns = on_cpu_device() ? 1 : kTurns;
  std::vector<std::vector<Run>> runs(variants.size());
  std::vector<Run> result(variants.size());
  std::vector<std::optional<bool>> verified(variants.size());
  for (int turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < variants.size(); ++i) {
      runs[i].push_back(measure(variants[i], shape, folder, /*verify=*/turn == 0));
      if (turn == 0) verified[i] = runs[i].back().verified;
      std::sort(runs[i].begin(), runs[i].end(),
                [](const Run& a, const Run& b) { return a.time_us_median < b.time_us_median; });
      result[i] = runs[i][runs[i].size() / 2];
      result[i].verified = verified[i];
    }
    so_far(result);
  }
}

std::string change(double value, double before) { return fixed((value / before - 1) * 100, 1); }

void print_counts(const std::vector<Run>& runs) {
  constexpr double kSectorBytes = 32;
  Table table(
      std::cout,
      {{"without", 26, false}, {"B/output", 8}, {"conflicts", 9}, {"cycles", 8}, {"+ %", 7}, {"overlap", 7}});
  table.header();
  const double before = runs.front().counters->cycles;
  for (const Run& run : runs) {
    const LaunchCounters& counters = *run.counters;
    table.row({run.settings.at("without"),
               fixed(counters.global_read_sectors * kSectorBytes / run.shape.m / run.shape.n, 1),
               std::to_string(counters.bank_conflicts), fixed(counters.cycles, 0),
               change(counters.cycles, before),
               fixed(100 * counters.overlap_cycles / counters.copy_cycles, 0) + " %"});
  }
  std::cout
      << "\nCycles are those of the virtual clock, for one block; without persistence it has fewer tiles."
         "\nThe CPU device has no registers and no L2 cache, and bank conflicts take none of its cycles.\n";
}

void print_times(const std::vector<Run>& runs) {
  Table table(std::cout,
              {{"without", 26, false}, {"time us", 10}, {"TFLOP/s", 7}, {"+ %", 7}, {"SM MHz", 6}});
  table.header();
  for (const Run& run : runs)
    table.row({run.settings.at("without"), fixed(*run.time_us_median, 1), fixed(*run.tflops, 1),
               change(*run.time_us_median, *runs.front().time_us_median),
               run.sm_clock_mhz ? fixed(*run.sm_clock_mhz, 0) : "-"});
}

int run(int argc, char** argv) {
  Arguments arguments("Switches each ingredient of a lesson off in turn, and says what that costs",
                      "ladder ablate");
  std::vector<std::string> known;
  for (const auto& [number, variants] : ablations()) known.push_back(number);
  std::string lesson, shape_text, json_path;
  arguments.add_option("lesson", lesson, "NN", "One of " + join(known, ", "));
  arguments.require("lesson");
  arguments.add_option("--shape", shape_text, "MxNxK", "C is M x N, A has K columns");
  arguments.add_option("--json", json_path, "PATH", "Write the results to this file");
  if (!arguments.parse(argc, argv)) return kExitOk;
  if (!ablations().count(lesson))
    throw std::invalid_argument("ablate " + lesson + ": there are " + join(known, ", "));
  const int size = on_cpu_device() ? kCpuSize : kGpuSize;
  Shape shape{size, size, size};
  if (!shape_text.empty()) {
    const std::vector<Shape> shapes = parse_shapes("--shape", shape_text);
    if (shapes.size() != 1) throw std::invalid_argument("--shape " + shape_text + ": must be one shape");
    shape = shapes.front();
  }
  if (!json_path.empty()) check_writable("--json", json_path);
  require_device();

  const fs::path folder = fs::canonical("/proc/self/exe").parent_path();
  std::cout << (lesson == "capstone" ? "Your kernel" : "Lesson " + lesson) << ", " << shape.name()
            << " (M x N x K)\n"
            << std::endl;
  ResultFile results = new_result_file();
  measure_all(ablations().at(lesson), shape, folder, [&](const std::vector<Run>& so_far) {
    results.runs = so_far;
    write_results_so_far("--json", json_path, results);
  });
  on_cpu_device() ? print_counts(results.runs) : print_times(results.runs);
  if (!json_path.empty()) write_results("--json", json_path, results);
  return kExitOk;
}

}  // namespace

int run_ablate(int argc, char** argv) {
  return run_program("ladder ablate", [&] { return run(argc, argv); });
}

}  // namespace ladder
