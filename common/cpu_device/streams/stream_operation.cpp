/// @file
/// Clocks and names of operations.
#include "common/cpu_device/streams/stream_operation.hpp"

#include <algorithm>
#include <fstream>
#include <regex>

#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {
thread_local const Operation* host_function = nullptr;
}  // namespace

std::string describe_place(const Location& place) {
  return short_path(place.file) + ":" + std::to_string(place.line);
}

std::string describe_creation(const Location& place) {
  if (!place.line) return "";
  std::ifstream source(place.file);
  std::string line;
  for (unsigned number = 0; number < place.line && std::getline(source, line);) ++number;
  static const std::regex variable(R"(cudaStreamCreate\w*\s*\(\s*&\s*([\w.\[\]>-]+))");
  const std::sregex_iterator first(line.begin(), line.end(), variable), none;
  const std::string created = "created at " + describe_place(place);
  const bool is_clear = first != none && std::next(first) == none;  // of several nobody knows which is meant
  return is_clear ? "`" + (*first)[1].str() + "`, " + created : created;
}

void OrderClock::raise(unsigned lane, uint64_t tick) {
  if (lane >= ticks_.size()) ticks_.resize(lane + 1);
  ticks_[lane] = std::max(ticks_[lane], tick);
}

void OrderClock::join(const OrderClock& other) {
  if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
  for (size_t i = 0; i < other.ticks_.size(); ++i) ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
}

void OrderClock::meet(const OrderClock& other) {
  if (ticks_.size() > other.ticks_.size()) ticks_.resize(other.ticks_.size());
  for (size_t i = 0; i < ticks_.size(); ++i) ticks_[i] = std::min(ticks_[i], other.ticks_[i]);
}

bool OrderClock::covers(const OrderClock& other) const {
  for (unsigned lane = 0; lane < other.ticks_.size(); ++lane) {
    if ((*this)[lane] < other.ticks_[lane]) return false;
  }
  return true;
}

std::string Operation::describe() const {
  if (std::string(kind) == "kernel") return "kernel " + name + " on " + stream;
  return std::string("the ") + (is_host_function ? "host function" : kind) + " on " + stream;
}

std::string Operation::describe_places() const {
  if (!where.line && stream_origin.empty()) return "";
  return "\n  " + describe() + (stream_origin.empty() ? "" : " (" + stream_origin + ")") +
         (where.line ? ": " + describe_place(where) : "");
}

const Operation* running_host_function() { return host_function; }
InsideHostFunction::InsideHostFunction(const Operation& operation) { host_function = &operation; }
InsideHostFunction::~InsideHostFunction() { host_function = nullptr; }

}  // namespace cpu_device
