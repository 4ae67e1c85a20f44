/// @file
/// Result files.
#include "common/host/program/results.hpp"

#include <fmt/core.h>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "common/host/base/atomic_file.hpp"
#include "common/host/base/json.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"

namespace ladder {
namespace {

/// A measured figure. Two digits more than any page shows keep what the page rounds it to.
Json rounded(double value) { return std::stod(fmt::format("{:.8g}", value)); }

void put(Json& json, const char* name, const std::optional<double>& value) {
  if (value) json[name] = rounded(*value);
}

template <class Value>
void get(const Json& json, const char* name, std::optional<Value>& value) {
  if (json.contains(name)) value = json.at(name).get<Value>();
}

/// Calls visit(name, field) for every counter.
template <class Counters, class Visit>
void for_each_counter(Counters& counters, const Visit& visit) {
  visit("blocks", counters.blocks);
  visit("global_read_sectors", counters.global_read_sectors);
  visit("global_write_sectors", counters.global_write_sectors);
  visit("shared_wavefronts", counters.shared_wavefronts);
  visit("bank_conflicts", counters.bank_conflicts);
  visit("cluster_bytes", counters.cluster_bytes);
  visit("block_barriers", counters.block_barriers);
  visit("barrier_waits", counters.barrier_waits);
  visit("async_copies", counters.async_copies);
  visit("cycles", counters.cycles);
  visit("copy_cycles", counters.copy_cycles);
  visit("math_cycles", counters.math_cycles);
  visit("overlap_cycles", counters.overlap_cycles);
}

Json json_of(const Run& run) {
  Json json;
  json["lesson"] = run.lesson;
  json["core"] = run.core;
  if (run.shape.m > 0) {  // else what was timed is no product
    json["m"] = run.shape.m;
    json["n"] = run.shape.n;
    json["k"] = run.shape.k;
  }
  json["settings"] = Json::object();
  for (const auto& [name, value] : run.settings) json["settings"][name] = value;
  put(json, "time_us_median", run.time_us_median);
  put(json, "time_us_q1", run.time_us_q1);
  put(json, "time_us_q3", run.time_us_q3);
  put(json, "tflops", run.tflops);
  put(json, "clock_mhz", run.clock_mhz);
  put(json, "power_watts", run.power_watts);
  put(json, "joules", run.joules);
  if (run.verified) json["verified"] = *run.verified;
  put(json, "rel_error", run.rel_error);
  put(json, "eager_us", run.eager_us);
  if (run.counters) {
    Json& counters = json["counters"];
    for_each_counter(*run.counters, [&](const char* name, auto value) { counters[name] = value; });
  }
  if (run.resources)
    json["resources"] = {{"tile", run.resources->tile},
                         {"shared_bytes", run.resources->shared_bytes},
                         {"registers", run.resources->registers},
                         {"blocks_per_sm", run.resources->blocks_per_sm}};
  if (run.global_bytes) json["global_bytes"] = std::llround(*run.global_bytes);
  put(json, "bound_us", run.bound_us);
  if (!run.rung.empty()) json["rung"] = run.rung;
  if (!run.choice.empty()) json["choice"] = run.choice;
  if (!run.inputs.empty()) json["inputs"] = run.inputs;
  return json;
}

Run run_of(const Json& json) {
  Run run;
  run.lesson = json.at("lesson").get<std::string>();
  run.core = json.at("core").get<std::string>();
  if (json.contains("m"))
    run.shape = checked_shape("m, n, k", json.at("m").get<uint64_t>(), json.at("n").get<uint64_t>(),
                              json.at("k").get<uint64_t>());
  for (const auto& [name, value] : json.at("settings").items()) run.settings[name] = value.get<std::string>();
  get(json, "time_us_median", run.time_us_median);
  get(json, "time_us_q1", run.time_us_q1);
  get(json, "time_us_q3", run.time_us_q3);
  get(json, "tflops", run.tflops);
  get(json, "clock_mhz", run.clock_mhz);
  get(json, "power_watts", run.power_watts);
  get(json, "joules", run.joules);
  get(json, "verified", run.verified);
  get(json, "rel_error", run.rel_error);
  get(json, "eager_us", run.eager_us);
  if (json.contains("counters")) {
    LaunchCounters counters;
    const Json& of_run = json.at("counters");
    for_each_counter(counters, [&](const char* name, auto& value) {
      if (of_run.contains(name)) of_run.at(name).get_to(value);  // older files have fewer
    });
    run.counters = counters;
  }
  if (json.contains("resources")) {
    const Json& resources = json.at("resources");
    run.resources =
        Resources{resources.at("tile").get<std::string>(), resources.at("shared_bytes").get<size_t>(),
                  resources.at("registers").get<int>(), resources.at("blocks_per_sm").get<int>()};
  }
  if (json.contains("rung")) run.rung = json.at("rung").get<std::string>();
  if (json.contains("choice")) run.choice = json.at("choice").get<std::string>();
  if (json.contains("inputs")) run.inputs = json.at("inputs").get<std::string>();
  get(json, "global_bytes", run.global_bytes);
  get(json, "bound_us", run.bound_us);
  return run;
}

/// Of a file that holds several.
std::string text_of_record(const std::string& text, const std::string& name) {
  try {
    const Json file = parse_json(text);
    for (const Json& record : file.at("records"))
      if (record.at("record") == name) return json_text(record);
  } catch (const Json::exception& error) {
    throw std::invalid_argument("not a file of several records: " + one_line(error.what()));
  }
  throw std::invalid_argument("holds no record '" + name + "'");
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

}  // namespace

ResultFile new_result_file() {
  const DeviceInfo device = device_info();
  return {today(), build_commit(), device.name, device.driver, device.toolkit, {}, device.max_clock_mhz};
}

std::string to_json(const ResultFile& results) {
  Json json;
  json["date"] = results.date;
  json["commit"] = results.commit;
  json["gpu"] = results.gpu;
  json["driver"] = results.driver;
  json["toolkit"] = results.toolkit;
  if (results.max_clock_mhz > 0) json["max_clock_mhz"] = results.max_clock_mhz;
  json["runs"] = Json::array();
  for (const Run& run : results.runs) json["runs"].push_back(json_of(run));
  return json_rows(json);
}

ResultFile from_json(const std::string& text) {
  try {
    const Json json = parse_json(text);
    ResultFile results;
    results.date = json.at("date").get<std::string>();
    results.commit = json.at("commit").get<std::string>();
    results.gpu = json.at("gpu").get<std::string>();
    results.driver = json.at("driver").get<std::string>();
    results.toolkit = json.at("toolkit").get<std::string>();
    results.max_clock_mhz = json.value("max_clock_mhz", 0.0);
    for (const Json& run : json.at("runs")) results.runs.push_back(run_of(run));
    return results;
  } catch (const Json::exception& error) {
    throw std::invalid_argument("not a result file: " + one_line(error.what()));
  }
}

void write_results(const std::string& argument, const std::string& path, const ResultFile& results) {
  write_file_atomically(argument, path, [&](std::ostream& file) { file << to_json(results); });
}

void write_results_so_far(const std::string& argument, const std::string& path, const ResultFile& results) {
  if (!path.empty() && can_be_rewritten(path)) write_results(argument, path, results);
}

ResultFile read_results(const std::string& argument, const std::string& path) {
  const size_t mark = std::ifstream(path) ? std::string::npos : path.rfind('#');
  const std::string name = mark == std::string::npos ? "" : path.substr(mark + 1);
  std::ifstream file(path.substr(0, mark), std::ios::binary);
  if (!file) throw std::invalid_argument(argument + " '" + path + "': cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    return from_json(name.empty() ? text : text_of_record(text, name));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(argument + " '" + path + "': " + error.what());
  }
}

std::optional<std::string> newest_result_file(const std::string& directory, const std::string& ending) {
  std::error_code missing;
  std::optional<std::string> newest;
  for (const auto& entry : std::filesystem::directory_iterator(directory, missing)) {
    const std::string name = entry.path().filename().string();
    // Not ends_with(): of that, g++ 12 warns when it optimises little.
    if (name.size() < ending.size() || name.compare(name.size() - ending.size(), ending.size(), ending) != 0)
      continue;
    // Names begin with the date, year first.
    if (!newest || entry.path().filename() > std::filesystem::path(*newest).filename())
      newest = entry.path().string();
  }
  return newest;
}

}  // namespace ladder
