/// @file
/// Reads the spans of a timeline's roles, and takes medians.
#include "common/model/calibration.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "common/host/base/json.hpp"
#include "common/host/base/statistics.hpp"
#include "common/host/base/text.hpp"
#include "common/model/model.hpp"

namespace ladder::model {
namespace {

struct NamedSpan {
  std::string name;
  Span span;
};

/// The first block's lanes, by name, each in order.
using Lanes = std::map<std::string, std::vector<NamedSpan>>;

constexpr double kNsPerMicrosecond = 1000;  // the file's times are in microseconds

Lanes first_block(const Json& events) {
  unsigned block = ~0u;
  for (const Json& event : events) block = std::min(block, event.at("pid").get<unsigned>());
  std::map<int, std::string> names;
  Lanes lanes;
  for (const Json& event : events) {
    if (event.at("pid").get<unsigned>() != block) continue;
    const int lane = event.at("tid").get<int>();
    if (event.at("name") == "thread_name") names[lane] = event.at("args").at("name").get<std::string>();
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts").get<double>() * kNsPerMicrosecond;
    const double length = event.at("dur").get<double>() * kNsPerMicrosecond;
    lanes[names.at(lane)].push_back({event.at("name").get<std::string>(), {begin, begin + length}});
  }
  return lanes;
}

/// The spans whose name begins with `name`.
std::vector<Span> named(const std::vector<NamedSpan>& lane, const std::string& name) {
  std::vector<Span> spans;
  for (const NamedSpan& span : lane)
    if (span.name.rfind(name, 0) == 0) spans.push_back(span.span);
  return spans;
}

/// Whether a wait is one for the loader's pipeline, at its end "full" or "empty".
bool waits_at(const NamedSpan& span, const std::string& end) {
  // Timelines that were recorded before barriers were called as in the source say "loaded" and "free".
  const std::string before = end == "full" ? "loaded" : "free";
  return span.name.rfind("wait pipe_lc." + end, 0) == 0 || span.name.rfind("wait " + before, 0) == 0;
}

/// A consumer's waits for the loader.
std::vector<Span> waits_for_tiles(const std::vector<NamedSpan>& lane) {
  std::vector<Span> spans;
  for (const NamedSpan& span : lane)
    if (waits_at(span, "full")) spans.push_back(span.span);
  return spans;
}

/// The lanes of a role: "compute", or "compute 0", "compute 1", ...
std::vector<std::vector<NamedSpan>> of_role(const Lanes& lanes, const std::string& role) {
  std::vector<std::vector<NamedSpan>> found;
  for (const auto& [name, spans] : lanes)
    if (name == role || name.rfind(role + " ", 0) == 0) found.push_back(spans);
  return found;
}

double median(std::vector<double> samples) {
  return samples.empty() ? 0 : quartiles(std::move(samples)).median;
}

/// When each step's tile was seen to have landed, by the first warpgroup that saw it; and when the last one
/// had computed it, which is known where wgmma is drained in every step (one slot).
struct Steps {
  std::vector<double> landed, computed;
};

Steps steps_of(const std::vector<std::vector<NamedSpan>>& computers, size_t count) {
  Steps steps{std::vector<double>(count, std::numeric_limits<double>::max()), std::vector<double>(count, 0)};
  for (const std::vector<NamedSpan>& computer : computers) {
    const std::vector<Span> waits = waits_for_tiles(computer), products = named(computer, "compute");
    if (waits.size() != count || products.size() < count)
      throw std::invalid_argument("its roles did not take the same number of steps");
    for (size_t step = 0; step < count; ++step) {
      steps.landed[step] = std::min(steps.landed[step], waits[step].end);
      steps.computed[step] = std::max(steps.computed[step], products[step].end);
    }
  }
  return steps;
}

/// From the last span of a tile that computes until the next tile's first wait.
double epilogue(const std::vector<NamedSpan>& computer, size_t steps_per_tile) {
  const std::vector<Span> waits = waits_for_tiles(computer), products = named(computer, "compute");
  std::vector<double> times;
  for (size_t first = steps_per_tile; first < waits.size(); first += steps_per_tile) {
    double last = 0;
    for (const Span& product : products)
      if (product.end <= waits[first].begin) last = std::max(last, product.end);
    times.push_back(waits[first].begin - last);
  }
  return median(times);
}

Calibration calibration_of(const Json& file) {
  const Json& facts = file.at("metadata");
  if (facts.at("unit") != "ns")
    throw std::invalid_argument("was recorded on the CPU device, whose clock is a model itself");
  const Lanes lanes = first_block(file.at("traceEvents"));
  const auto loaders = of_role(lanes, "loader"), computers = of_role(lanes, "compute"),
             storers = of_role(lanes, "storer");
  if (loaders.size() != 1 || computers.empty() || storers.empty())
    throw std::invalid_argument("has no loader, compute and storer; lessons 04 to 06 have");

  Calibration result;
  const auto text = [&](const char* key) { return facts.at(key).get<std::string>(); };
  result.lesson = text("lesson");
  result.settings = text("settings");
  result.shape = text("shape");
  result.device = text("device");
  result.date = text("date");
  result.commit = text("commit");
  if (facts.contains("clock_mhz")) result.clock_mhz = std::stod(text("clock_mhz"));
  result.tiles = facts.at("summary").at(0).at("tiles").get<int>();

  const std::vector<Span> loads = named(loaders[0], "load");
  const size_t count = loads.size();
  if (result.tiles < 1 || count < 2 || count % static_cast<size_t>(result.tiles) != 0)
    throw std::invalid_argument(fmt::format("has {} loads for {} tiles", count, result.tiles));
  result.steps_per_tile = static_cast<int>(count) / result.tiles;
  std::set<std::string> slots;
  for (const NamedSpan& span : loaders[0])
    if (waits_at(span, "empty")) slots.insert(span.name);
  result.slots = static_cast<int>(slots.size());
  result.epilogue = epilogue(computers[0], static_cast<size_t>(result.steps_per_tile));
  double stored = 0;
  for (const Span& span : named(storers[0], "store")) stored += span.end - span.begin;
  result.store = stored / result.tiles;

  const Steps steps = steps_of(computers, count);
  std::vector<double> load, compute;
  for (size_t step = 0; step < count; ++step) {
    const bool first_of_tile = step % static_cast<size_t>(result.steps_per_tile) == 0;
    if (result.slots == 1) compute.push_back(steps.computed[step] - steps.landed[step]);
    if (first_of_tile) continue;  // the epilogue lies before it
    if (result.slots == 1) load.push_back(steps.landed[step] - steps.computed[step - 1]);
    if (result.slots > 1) compute.push_back(steps.landed[step] - steps.landed[step - 1]);
  }
  if (result.slots == 1) result.load = median(load);
  result.compute = median(compute);
  for (const std::vector<NamedSpan>& computer : computers)
    result.recorded = std::max(result.recorded, named(computer, "compute").back().end - loads.front().begin);
  return result;
}

}  // namespace

Calibration calibrate(const std::string& argument, const std::string& path) {
  const auto complain = [&](const std::string& what) {
    return std::invalid_argument(argument + " '" + path + "': " + what);
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) throw complain("cannot be read");
  try {
    return calibration_of(parse_json(file));
  } catch (const Json::exception& error) {
    throw complain("is no timeline: " + one_line(error.what()));
  } catch (const std::logic_error& error) {
    throw complain(error.what());
  }
}

}  // namespace ladder::model
