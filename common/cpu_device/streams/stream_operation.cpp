/// @file
/// Clocks and names of operations.
#include "common/cpu_device/streams/stream_operation.hpp"

#include <algorithm>
#include <cerrno>  // program_invocation_short_name
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {
thread_local const Operation* host_function = nullptr;
/// The line that creates a stream, and those before it that may begin a loop.
constexpr unsigned kLinesOfLoop = 4;

/// Which element of an array a loop creates here: counts on while the elements follow each other in memory.
/// @param begin the index of the first one
size_t count_element(const Location& place, const void* const* element, size_t begin) {
  struct Last {
    const void* const* element;
    size_t index;
  };
  static auto& places = *new std::map<std::string, Last>;
  const auto [entry, is_new] = places.try_emplace(describe_place(place), Last{element, begin});
  Last& last = entry->second;
  if (!is_new) last = {element, element == last.element + 1 ? last.index + 1 : begin};
  return last.index;
}

/// `streams[2]` of `streams[i]`, or of `s` in a loop over `streams`. As it is written where no loop is known.
std::string name_in_loop(const std::string& written, const std::string& text, const Location& place,
                         const void* const* element) {
  static const std::regex subscript(R"((\w+)\[(\w+)\])");
  std::smatch parts, loop;
  if (std::regex_match(written, parts, subscript)) {
    const std::regex begin("for *\\([^;()]*\\b" + parts.str(2) + " *= *(\\d+) *[;,]");
    if (!std::regex_search(text, loop, begin)) return written;
    const size_t index = count_element(place, element, std::stoul(loop[1]));
    return parts.str(1) + "[" + std::to_string(index) + "]";
  }
  const std::regex over("for *\\([^;()]*& *" + std::regex_replace(written, std::regex("\\W"), ".") +
                        " *: *(\\w+) *\\)");
  if (!std::regex_search(text, loop, over)) return written;
  return loop.str(1) + "[" + std::to_string(count_element(place, element, 0)) + "]";
}

}  // namespace

std::string describe_place(const Location& place) {
  return short_path(place.file) + ":" + std::to_string(place.line);
}

std::string describe_creation(const Location& place, const void* const* element) {
  if (!place.line) return "";
  std::ifstream source(place.file);
  std::string line, loop;
  for (unsigned number = 0; number < place.line && std::getline(source, line); ++number)
    if (number + kLinesOfLoop >= place.line)
      loop = line.find("for") == line.npos ? loop + line : line.substr(line.rfind("for"));
  static const std::regex variable(R"(cudaStreamCreate\w*\s*\(\s*&\s*([\w.\[\]>-]+))");
  const std::sregex_iterator first(line.begin(), line.end(), variable), none;
  const std::string created = "created at " + describe_place(place);
  const bool is_clear = first != none && std::next(first) == none;  // of several nobody knows which is meant
  return is_clear ? "`" + name_in_loop((*first)[1].str(), loop, place, element) + "`, " + created : created;
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
  std::string origin = stream_origin, place = where.line ? describe_place(where) : "", lesson;
  const auto file = [](const std::string& call) { return call.substr(0, call.find(':')); };
  const auto is_helper = [&](const std::string& call) { return file(call).ends_with(".hpp"); };
  if (const auto calls = stream_creators ? own_calls(*stream_creators) : std::vector<std::string>{};
      !calls.empty()) {
    const auto user = std::find_if_not(calls.begin(), calls.end(), is_helper);
    origin = "created at " + (user == calls.end() ? calls.front() : *user);
    lesson = calls.front().substr(0, calls.front().find('/') + 1);
  }
  if (const auto calls = own_calls(callers); !calls.empty()) {
    if (place.empty()) place = calls.front();
    // Of a helper of the lesson's, or a launch function of another one's, also who uses it.
    const auto is_user = [&](const std::string& call) {
      return call.starts_with(lesson) && file(call) != file(place) && !is_helper(call);
    };
    auto user = std::find_if(calls.begin(), calls.end(), [&](const std::string& call) {
      return is_user(call) && !file(call).ends_with("/lesson.cu");  // which launches for all programs
    });
    if (user == calls.end()) user = std::find_if(calls.begin(), calls.end(), is_user);
    if (user != calls.end()) place += ", called from " + *user;
  }
  if (place.empty() && origin.empty()) return "";
  return "\n  " + describe() + (origin.empty() ? "" : " (" + origin + ")") +
         (place.empty() ? "" : ": " + place);
}

const Operation* running_host_function() { return host_function; }

void end_program(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, what.c_str());
  std::fflush(stderr);
  std::_Exit(EXIT_FAILURE);
}

InsideHostFunction::InsideHostFunction(const Operation& operation) {
  host_function = &operation;
  before_ = std::set_terminate([] {
    std::string what = "an exception left " + (host_function ? host_function->describe() : "a thread");
    try {
      if (std::current_exception()) throw;
    } catch (const Failure& failure) {
      what = failure.what();
    } catch (const std::exception& error) {
      what += std::string(": ") + error.what();
    } catch (...) {
    }
    end_program(what);
  });
}
InsideHostFunction::~InsideHostFunction() {
  host_function = nullptr;
  std::set_terminate(before_);
}

}  // namespace cpu_device
