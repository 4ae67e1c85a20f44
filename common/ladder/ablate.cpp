/// @file
/// What each ingredient of a lesson is worth: knobs, and the lab's broken programs, switch it off.
#include "common/ladder/commands.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
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

const std::string kCapstone = "capstone";
constexpr int kCapstoneTileM = 128, kCapstoneTileN = 256;
constexpr int kGpuSize = 4096, kCpuSize = 512;
constexpr int kTurns = 3;  ///< of all programs, one after the other; the median counts

/// A lesson without one ingredient: one of its own programs with an option, or a program of the lab.
struct Variant {
  std::string name;  ///< of what it lacks
  std::string program;
  std::vector<std::string> options;
};

/// The lesson itself comes first. A program called right_NN is the same kernel. The swizzle is switched off
/// where it was introduced: wgmma, which is all that 05 and 06 have, reads unswizzled tiles only in another
/// layout, in pieces of 8 x 8 elements, for which TMA would have to copy boxes of eight columns.
const std::map<std::string, std::vector<Variant>>& ablations() {
  static const std::vector<std::string> mma_sync = {"--core", "mma_sync"},
                                        pair = {"--tile", "128x256", "--cluster_m", "2"},
                                        always = {"--clusters", "always"}, yours = {"--lessons", "yours"};
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
       {{"(as it is)", "06_clusters_dsmem", always},
        {"multicast", "broken_06_no_multicast", {}},
        {"sums both ways", "06_clusters_dsmem", {"--step", "one_way", "--clusters", "always"}},
        {"the split of K", "06_clusters_dsmem", {"--step", "narrow_tile", "--clusters", "always"}}}},
      {"any",
       {{"(as it is)", "right_any", pair},
        {"multicast", "broken_any_no_multicast", pair},
        {"relaxed arrivals", "broken_any_release_at_cluster_scope", pair}}},
      // The learner's kernel, and what was kept of it when earlier stages were done.
      {kCapstone,
       {{"as it is", "capstone", yours},
        {"without storer and persistence", "capstone_stage_7", yours},
        {"... and without the ring", "capstone_stage_6", yours},
        {"... and without roles", "capstone_stage_5", yours}}}};
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

/// What the cache of a build directory says of a variable of CMake's own. @throws BadInput if it says nothing
std::string cached(const fs::path& build, const std::string& variable) {
  const std::string begin = variable + ":INTERNAL=";
  std::ifstream cache(build / "CMakeCache.txt");
  for (std::string line; std::getline(cache, line);)
    if (line.rfind(begin, 0) == 0) return line.substr(begin.size());
  throw BadInput(build.string() + ": is no build directory, as its CMakeCache.txt has no " + variable);
}

/// Builds the learner's kernels whose files have changed.
/// @throws BadInput naming the stage that is not done, std::runtime_error if something does not compile
void build_capstone(const fs::path& build) {
  const fs::path kernels =
      fs::path(cached(build, "CMAKE_HOME_DIRECTORY")) / "05_ws_double_buffer/exercise/capstone";
  for (const int stage : {5, 6, 7, 8})
    if (!fs::exists(kernels / fmt::format("my_gemm.stage_{}.cuh", stage)))
      throw BadInput(fmt::format("capstone.{0} is not done yet: ladder learn capstone.{0}", stage));
  std::vector<std::string> command = {cached(build, "CMAKE_COMMAND"), "--build", build.string(), "--target"};
  for (const Variant& variant : ablations().at(kCapstone)) command.push_back(variant.program);
  std::cout << "Building what has changed of your kernel\n" << std::endl;
  const fs::path log = build / "ablate.log";
  if (run_subprocess(command, {.output = log, .errors_too = true}).exit_code != kExitOk)
    throw std::runtime_error("your kernel does not compile; what the compiler says is in " + log.string());
}

/// Runs the program beside this one and reads what it measured.
/// @throws BadInput if it is not built, std::runtime_error if it fails
Run measure(const Variant& variant, const Shape& shape, const fs::path& folder, bool verify) {
  const fs::path program = folder / variant.program,
                 results =
                     fs::temp_directory_path() / ("ladder_ablate_" + std::to_string(getpid()) + ".json");
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
  run.settings["without"] = variant.name;
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

/// A block that stays has several tiles, so that cycles are those of one.
void print_counts_of_capstone(const std::vector<Run>& runs) {
  Table table(
      std::cout,
      {{"your kernel", 32, false}, {"tiles/block", 11}, {"cycles/tile", 11}, {"+ %", 7}, {"overlap", 7}});
  table.header();
  double before = 0;
  for (const Run& run : runs) {
    const LaunchCounters& counters = *run.counters;
    const auto over = [](uint64_t count, uint64_t parts) { return (count + parts - 1) / parts; };
    const uint64_t tiles = over(run.shape.m, kCapstoneTileM) * over(run.shape.n, kCapstoneTileN),
                   of_block = over(tiles, counters.blocks);
    const double cycles = counters.cycles / static_cast<double>(of_block);
    table.row({run.settings.at("without"), std::to_string(of_block), fixed(cycles, 0),
               change(cycles, before > 0 ? before : cycles),
               fixed(100 * counters.overlap_cycles / counters.copy_cycles, 0) + " %"});
    before = cycles;
  }
}

/// @param heading of the names. @param of_the_row_above that changes are, not of the first row
void print_times(const std::vector<Run>& runs, const std::string& heading, bool of_the_row_above) {
  Table table(std::cout, {{heading, 32, false}, {"time us", 10}, {"TFLOP/s", 7}, {"+ %", 7}, {"SM MHz", 6}});
  table.header();
  double before = *runs.front().time_us_median;
  for (const Run& run : runs) {
    table.row({run.settings.at("without"), fixed(*run.time_us_median, 1), fixed(*run.tflops, 1),
               change(*run.time_us_median, before), run.clock_mhz ? fixed(*run.clock_mhz, 0) : "-"});
    if (of_the_row_above) before = *run.time_us_median;
  }
}

void print_capstone(const std::vector<Run>& runs) {
  if (on_cpu_device())
    print_counts_of_capstone(runs);
  else
    print_times(runs, "your kernel", /*of_the_row_above=*/true);
  std::cout
      << "\nEach kernel lacks what the kernels above it lack, too; + % is the change from the one above.\n";
  if (on_cpu_device())
    std::cout
        << "Cycles are those of the virtual clock, for one block; a tile has 128 x 256 elements.\n"
           "There a block starts at no cost, and nobody waits for stores from registers: what the storer\n"
           "and persistence save only a GPU shows.\n";
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
  const bool is_capstone = lesson == kCapstone;
  if (is_capstone) build_capstone(folder.parent_path());
  std::cout << (is_capstone ? "Your kernel" : "Lesson " + lesson) << ", " << shape.name() << " (M x N x K)\n"
            << std::endl;
  ResultFile results = new_result_file();
  measure_all(ablations().at(lesson), shape, folder, [&](const std::vector<Run>& so_far) {
    results.runs = so_far;
    write_results_so_far("--json", json_path, results);
  });
  if (is_capstone)
    print_capstone(results.runs);
  else if (on_cpu_device())
    print_counts(results.runs);
  else
    print_times(results.runs, "without", /*of_the_row_above=*/false);
  if (!json_path.empty()) write_results("--json", json_path, results);
  return kExitOk;
}

}  // namespace

int run_ablate(int argc, char** argv) {
  return run_program("ladder ablate", [&] { return run(argc, argv); });
}

}  // namespace ladder
