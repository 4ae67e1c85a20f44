/// @file
/// The file of tuned plans: a list, in JSON, of objects that say for what each plan is.
#include "common/host/problem/tuned_plans.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include "common/host/base/atomic_file.hpp"
#include "common/host/base/json.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"

namespace ladder {
namespace {

namespace fs = std::filesystem;

const std::string kOpen = "auto";  ///< of a knob that leaves the choice to the lesson

std::atomic<bool> ignored = false;

Json json_of(const TunedPlan& plan) {
  Json json;
  json["gpu"] = plan.on.gpu;
  json["driver"] = plan.on.driver;
  json["build"] = plan.on.build;
  json["lesson"] = plan.lesson;
  json["m"] = plan.shape.m;
  json["n"] = plan.shape.n;
  json["k"] = plan.shape.k;
  json["settings"] = Json::object();
  for (const auto& [knob, value] : plan.settings) json["settings"][knob] = value;
  return json;
}

uint64_t size_of(const Json& json) {
  if (!json.is_number_unsigned()) throw std::invalid_argument("m, n and k must be whole numbers");
  return json.get<uint64_t>();
}

TunedPlan plan_of(const Json& json) {
  TunedPlan plan;
  json.at("gpu").get_to(plan.on.gpu);
  json.at("driver").get_to(plan.on.driver);
  json.at("build").get_to(plan.on.build);
  json.at("lesson").get_to(plan.lesson);
  plan.shape = checked_shape("m, n, k", size_of(json.at("m")), size_of(json.at("n")), size_of(json.at("k")));
  const Json& settings = json.at("settings");
  if (!settings.is_object() || settings.empty())
    throw std::invalid_argument("settings must be an object that names knobs");
  for (const auto& [knob, value] : settings.items()) plan.settings[knob] = value.get<std::string>();
  return plan;
}

std::string file_name(const std::string& path) { return "tuned plans '" + path + "'"; }

/// Text of a file. @throws std::invalid_argument, also for what would block or never end, as a pipe
std::string text_of(const std::string& path) {
  if (!fs::is_regular_file(path)) throw std::invalid_argument(file_name(path) + ": is no regular file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad())
    throw std::invalid_argument(file_name(path) + ": cannot be read: " + std::strerror(errno));
  return text;
}

void write_plans(const std::string& path, const std::vector<TunedPlan>& plans) {
  Json json;
  json["plans"] = Json::array();
  for (const TunedPlan& plan : plans) json["plans"].push_back(json_of(plan));
  try {
    write_file_atomically("tuned plans", path,
                          [&](std::ostream& file) { file << json_text(json, 2) << "\n"; });
  } catch (const std::invalid_argument& error) {  // nobody typed this path
    throw std::runtime_error(error.what());
  }
}

bool is_for_the_same(const TunedPlan& a, const TunedPlan& b) {
  return a.on == b.on && a.lesson == b.lesson && a.shape == b.shape;
}

/// What to call a shape's plan in memory.
std::string key_of(const std::string& lesson, const Shape& shape) { return lesson + " " + shape.name(); }

/// The plans of this device and build.
std::map<std::string, Settings> usable_plans() {
  std::map<std::string, Settings> usable;
  if (!tuned_plans_are_wanted()) return usable;
  try {
    for (const TunedPlan& plan : read_tuned_plans(tuned_plans_path()))
      if (plan.on == tuned_here(plan.lesson)) usable[key_of(plan.lesson, plan.shape)] = plan.settings;
  } catch (const DamagedPlans& error) {
    std::cerr << "warning: " << one_line(error.what()) << "; not used, `ladder tune --forget` removes it"
              << std::endl;
  } catch (const std::invalid_argument& error) {
    std::cerr << "warning: " << one_line(error.what()) << "; not used" << std::endl;
  } catch (const std::runtime_error&) {
    // Neither variable is set: there is no file.
  }
  return usable;
}

}  // namespace

bool tuned_plans_are_wanted() {
  const char* variable = std::getenv("LADDER_TUNED");
  const std::string value = variable ? variable : "";
  if (!value.empty() && value != "yes" && value != "no")
    throw std::invalid_argument("LADDER_TUNED=" + value + ": must be yes or no");
  return value != "no";
}

TunedOn tuned_here(const std::string& lesson) {
  const DeviceInfo& device = device_info();
  return {device.name, device.driver, kernel_build(lesson) + ", " + device.toolkit};
}

std::string tuned_plans_path() {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    return fs::path(value && *value == '/' ? value : "");
  };
  const fs::path cache = folder("XDG_CACHE_HOME"), home = folder("HOME");
  if (cache.empty() && home.empty())
    throw std::runtime_error("tuned plans: neither XDG_CACHE_HOME nor HOME names a folder");
  return ((cache.empty() ? home / ".cache" : cache) / "kernel-ladder" / "plans.json").string();
}

std::vector<TunedPlan> read_tuned_plans(const std::string& path) {
  std::error_code unknown;
  if (!fs::exists(path, unknown)) {
    if (unknown) throw std::invalid_argument(file_name(path) + ": cannot be read: " + unknown.message());
    return {};
  }
  const std::string text = text_of(path);
  try {
    std::vector<TunedPlan> plans;
    const Json json = parse_json(text);
    if (!json.at("plans").is_array()) throw std::invalid_argument("plans must be a list");
    for (const Json& plan : json.at("plans")) plans.push_back(plan_of(plan));
    return plans;
  } catch (const Json::exception& error) {
    throw DamagedPlans(file_name(path) + ": damaged: " + one_line(error.what()));
  } catch (const std::invalid_argument& error) {
    throw DamagedPlans(file_name(path) + ": damaged: " + error.what());
  }
}

std::string damaged_plans_path(const std::string& path) { return path + ".damaged"; }

void prepare_tuned_plans(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw std::runtime_error(file_name(path) + ": cannot make the folder " + folder + ": " + error.message());
  if (access(folder.c_str(), W_OK))
    throw std::runtime_error(file_name(path) + ": cannot be written: " + std::strerror(errno));
  try {
    read_tuned_plans(path);
  } catch (const DamagedPlans&) {
    throw;
  } catch (const std::invalid_argument& unreadable) {  // nobody typed this path
    throw std::runtime_error(unreadable.what());
  }
}

void remember_plans(const std::string& path, const std::vector<TunedPlan>& plans) {
  std::vector<TunedPlan> all;
  try {
    prepare_tuned_plans(path);
    all = read_tuned_plans(path);
  } catch (const DamagedPlans&) {
    std::error_code error;
    fs::rename(path, damaged_plans_path(path), error);
    if (error) throw std::runtime_error(file_name(path) + ": cannot be moved: " + error.message());
  }
  for (const TunedPlan& plan : plans) {
    const auto before = std::find_if(all.begin(), all.end(),
                                     [&](const TunedPlan& other) { return is_for_the_same(plan, other); });
    if (before == all.end())
      all.push_back(plan);
    else
      *before = plan;
  }
  write_plans(path, all);
}

std::optional<size_t> forget_plans(const std::string& path, const std::string& lesson,
                                   const std::vector<Shape>& shapes) {
  if (!shapes.empty()) {
    std::vector<TunedPlan> plans = read_tuned_plans(path);
    const TunedOn here = tuned_here(lesson);
    const size_t forgotten = std::erase_if(plans, [&](const TunedPlan& plan) {
      return plan.on == here && plan.lesson == lesson &&
             std::find(shapes.begin(), shapes.end(), plan.shape) != shapes.end();
    });
    if (forgotten > 0) write_plans(path, plans);
    return forgotten;
  }
  std::optional<size_t> count;
  try {
    count = read_tuned_plans(path).size();
  } catch (const std::invalid_argument&) {
    // It is removed all the same.
  }
  std::error_code error;
  fs::remove(path, error);
  // Where a part of the path is no folder, there is no file to forget.
  if (error && error != std::errc::not_a_directory)
    throw std::runtime_error(file_name(path) + ": cannot be removed: " + error.message());
  return count;
}

void ignore_tuned_plans() { ignored = true; }

std::optional<Settings> with_remembered_plan(const std::string& lesson, const Shape& shape,
                                             const Settings& settings) {
  if (ignored) return std::nullopt;
  static const std::map<std::string, Settings> plans = usable_plans();
  if (plans.empty()) return std::nullopt;
  const auto plan = plans.find(key_of(lesson, shape));
  if (plan == plans.end()) return std::nullopt;
  Settings result = settings;
  for (const auto& [knob, value] : plan->second) {
    const auto setting = result.find(knob);
    if (setting == result.end() || setting->second != kOpen) return std::nullopt;
    setting->second = value;
  }
  return result;
}

}  // namespace ladder
