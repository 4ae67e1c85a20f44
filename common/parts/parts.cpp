/// @file
/// The command line, the table and the result file of `ladder parts`.
#include "common/parts/parts.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "common/host/base/arguments.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/json.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/results.hpp"
#include "common/parts/part.hpp"

namespace ladder {
namespace {

std::vector<std::string> names_of(const std::vector<PartGroup>& groups) {
  std::vector<std::string> names;
  for (const PartGroup& group : groups) names.push_back(group.name);
  return names;
}

/// The groups that `--only` names. @throws std::invalid_argument if there is no such group
std::vector<PartGroup> chosen(const std::string& only) {
  std::vector<PartGroup> all = all_parts(), groups;
  if (only.empty()) return all;
  for (const std::string& name : split(only, ',')) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const PartGroup& group) { return group.name == name; });
    if (found == all.end())
      throw std::invalid_argument("--only " + only + ": '" + name + "' is none of " +
                                  join(names_of(all), ", "));
    groups.push_back(*found);
  }
  return groups;
}

double bytes_a_clock(const PartRow& row) { return row.bytes / row.clocks.median; }

std::vector<std::string> cells_of(const PartRow& row) {
  std::vector<std::string> values;
  for (const auto& [name, value] : row.settings) values.push_back(value);
  const double half_spread = 50 * (row.clocks.q3 - row.clocks.q1) / row.clocks.median;
  return {row.part,
          join(values, ", "),
          fixed(row.clocks.median, row.clocks.median < 100 ? 1 : 0),
          fixed(half_spread, 1),
          row.bytes > 0 ? fixed(bytes_a_clock(row), 1) : "",
          row.ideal_clocks > 0 ? fixed(row.ideal_clocks, 0) : "",
          row.mhz > 0 ? fixed(row.mhz, 0) : ""};
}

Json json_of(const PartRow& row) {
  const auto rounded = [](double value) { return std::round(value * 100) / 100; };
  Json json;
  json["part"] = row.part;
  json["settings"] = Json::object();
  for (const auto& [name, value] : row.settings) json["settings"][name] = value;
  json["clocks"] = rounded(row.clocks.median);
  json["clocks_q1"] = rounded(row.clocks.q1);
  json["clocks_q3"] = rounded(row.clocks.q3);
  if (row.bytes > 0) json["bytes"] = static_cast<int64_t>(row.bytes);
  if (row.ideal_clocks > 0) json["ideal_clocks"] = rounded(row.ideal_clocks);
  if (row.mhz > 0) json["mhz"] = rounded(row.mhz);
  return json;
}

int run(int argc, char** argv) {
  Arguments arguments("Measures the parts that the lessons' kernels are made of, in clocks of this GPU",
                      "ladder parts");
  std::string only, json_path;
  arguments.add_option("--only", only, "NAME,...", "Measure only these groups; a wrong name lists them");
  arguments.add_option("--json", json_path, "PATH", "Write the rows to a result file");
  arguments.set_footer(
      "Clocks are those of a multiprocessor, read in the kernel: median over repetitions and\n"
      "multiprocessors, and half the distance of the quartiles in percent. docs/parts.md\n"
      "says how each part is measured.");
  if (!arguments.parse(argc, argv)) return kExitOk;
  if (on_cpu_device())
    throw BadInput("parts are measured in clocks of a GPU; the CPU device executes semantics, not speed");
  require_device();
  if (device_info().compute_capability != 90 || !has_core(device_info().code, "wgmma"))
    throw BadInput(device_info().name +
                   ": the parts need a GPU of compute capability 9.0 and code for sm_90a");
  const std::vector<PartGroup> groups = chosen(only);

  Json document = parse_json(to_json(new_result_file()));
  std::cout << "Parts of the lessons' kernels on " << device_info().name
            << ", in clocks of a multiprocessor\n";
  for (const PartGroup& group : groups) {
    std::cout << "\n" << group.what << "\n\n";
    Table table(std::cout, {{"part", 11, false},
                            {"setting", 45, false},
                            {"clocks", 7},
                            {"+- %", 5},
                            {"bytes/clk", 9},
                            {"ideal", 6},
                            {"MHz", 5}});
    table.header();
    group.measure([&](const PartRow& row) {
      table.row(cells_of(row));
      document["runs"].push_back(json_of(row));
    });
  }
  if (!json_path.empty())
    write_file_atomically("--json", json_path, [&](std::ostream& file) { file << json_rows(document); });
  return kExitOk;
}

}  // namespace

int run_parts(int argc, char** argv) {
  return run_program("ladder parts", [&] { return run(argc, argv); });
}

}  // namespace ladder
