/// @file
/// Reads in the source what a barrier is called.
#include "common/cuda/barrier_names.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

namespace ladder {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// Where the expression begins that ends before `end`: words, `.`, `->`, `::` and brackets with what they
/// hold.
size_t begin_of_expression(const std::string& text, size_t end) {
  int depth = 0;
  size_t begin = end;
  for (; begin > 0; --begin) {
    const char c = text[begin - 1];
    depth += c == ']';
    depth -= c == '[';
    const bool is_arrow = c == '>' && begin > 1 && text[begin - 2] == '-';
    const bool is_arrows_dash = c == '-' && begin < end && text[begin] == '>';
    if (depth == 0 && c != '[' && !is_in_word(c) && c != '.' && c != ':' && !is_arrow && !is_arrows_dash)
      break;
  }
  return begin;
}

/// The first argument of the call whose parenthesis opens at `open`.
std::string first_argument(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
    if (depth == 0 || (depth == 1 && c == ',')) return text.substr(open + 1, i - open - 1);
  }
  return "";
}

/// Without what readers do not look for: `&`, spaces, and the struct that is all of shared memory.
std::string simplified(const std::string& expression) {
  std::string text;
  for (size_t i = 0; i < expression.size(); ++i) {
    if (std::isspace(static_cast<unsigned char>(expression[i])) || expression[i] == '&') continue;
    const bool is_arrow = expression.compare(i, 2, "->") == 0;
    text += is_arrow ? '.' : expression[i];
    i += is_arrow;
  }
  for (const char* storage : {"this.", "smem.", "smem_.", "shared.", "shared_."})
    if (text.rfind(storage, 0) == 0) text.erase(0, std::strlen(storage));
  return text;
}

/// The name with the number in the place of its last index that is not a constant. Behind the name if it has
/// no such index and there are several barriers.
std::string with_number(const std::string& name, unsigned number, bool several) {
  for (size_t close = name.rfind(']'); close != name.npos && close > 0; close = name.rfind(']', close - 1)) {
    size_t open = close;
    for (int depth = 1; depth > 0 && open > 0;) {
      --open;
      depth += name[open] == ']';
      depth -= name[open] == '[';
    }
    if (!is_number(name.substr(open + 1, close - open - 1)))
      return fmt::format("{}[{}]{}", name.substr(0, open), number, name.substr(close + 1));
    if (open == 0) break;
    close = open;
  }
  return several ? fmt::format("{}[{}]", name, number) : name;
}

std::string file_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/// What the source calls the barriers that are initialised there, once read; empty if it does not say.
std::string expression_at(const BarrierOrigin& origin) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, unsigned, bool, std::string>, std::string> known;
  const bool is_pipeline = origin.end[0] != 0;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = known.try_emplace({origin.file, origin.line, is_pipeline, origin.function});
  if (is_new)
    entry->second = initialised_in(source_from(origin.file, origin.line), is_pipeline, origin.function);
  return entry->second;
}

bool same_place(const BarrierNote& one, const BarrierNote& other) {
  return one.launch == other.launch && one.line == other.line && one.slot == other.slot &&
         !std::strcmp(one.end, other.end) && !std::strcmp(one.file, other.file);
}

/// When what holds this code was built: the program, or a shared library.
std::filesystem::file_time_type time_of_program() {
  static const auto time = [] {
    Dl_info info;
    std::string path = "/proc/self/exe";
    if (dladdr(reinterpret_cast<const void*>(&time_of_program), &info) && info.dli_fname &&
        std::strstr(info.dli_fname, ".so"))
      path = info.dli_fname;
    std::error_code error;
    const auto written = std::filesystem::last_write_time(path, error);
    return error ? std::filesystem::file_time_type::max() : written;
  }();
  return time;
}

}  // namespace

std::string source_from(const char* path, unsigned line) {
  constexpr unsigned kLinesOfCall = 4;
  const auto full_path = std::filesystem::path(LADDER_BUILD_DIR) / path;  // an absolute path stays as it is
  if (is_newer_than_program(full_path.string())) return "";
  std::ifstream file(full_path);
  std::string text, one;
  for (unsigned at = 1; at < line + kLinesOfCall && std::getline(file, one); ++at)
    if (at >= line) text += one + "\n";
  return text;
}

bool is_newer_than_program(const std::string& source) {
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  static bool has_said = false;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = known.try_emplace(source, false);
  if (!is_new) return entry->second;
  std::error_code error;
  const auto written = std::filesystem::last_write_time(source, error);
  entry->second = !error && written > time_of_program();
  if (entry->second && !std::exchange(has_said, true))
    fmt::print(
        stderr,
        "{} is newer than the program: lines in reports may be wrong, and names are left out; build again\n",
        source);
  return entry->second;
}

std::string initialised_in(const std::string& source, bool is_pipeline, const std::string& function) {
  const std::string& name = is_pipeline ? "init" : function;
  std::string found;
  const size_t end_of_line = source.find('\n');
  for (size_t at = source.find(name); at < end_of_line && at != source.npos; at = source.find(name, at + 1)) {
    size_t open = at + name.size();
    if (at > 0 && is_in_word(source[at - 1])) continue;  // another function whose name ends so
    if (source[open] == '<') open = source.find('>', open) + 1;
    if (open >= source.size() || source[open] != '(') continue;
    // A member function is called of the barrier; others have it as the first argument.
    size_t end = at;
    if (end > 0 && source[end - 1] == '.') end -= 1;
    if (end > 1 && source.compare(end - 2, 2, "->") == 0) end -= 2;
    if (end == at && is_pipeline) continue;
    const size_t begin = begin_of_expression(source, end);
    if (!found.empty()) return "";
    found = simplified(end == at ? first_argument(source, open) : source.substr(begin, end - begin));
  }
  return found;
}

bool names_barrier(const BarrierOrigin& origin) { return !expression_at(origin).empty(); }

std::string barrier_name(const BarrierOrigin& origin, unsigned number, bool several) {
  std::string called = expression_at(origin);
  if (called.empty()) called = fmt::format("{}:{}", file_name(origin.file), origin.line);
  const std::string name = with_number(called, number, several);
  return origin.end[0] ? fmt::format("{}.{}[{}]", name, origin.end, origin.slot) : name;
}

std::string name_in_notes(const BarrierNote* notes, size_t count, uint32_t address) {
  const BarrierNote* note = nullptr;
  for (size_t i = 0; i < count; ++i)
    if (notes[i].line > 0 && notes[i].address == address) note = &notes[i];
  if (!note) return "";
  std::set<uint32_t> before, others;
  for (size_t i = 0; i < count; ++i) {
    if (notes[i].line == 0 || notes[i].address == address || !same_place(notes[i], *note)) continue;
    others.insert(notes[i].address);
    if (notes[i].address < address) before.insert(notes[i].address);
  }
  return barrier_name({note->file, note->line, note->end, note->slot}, static_cast<unsigned>(before.size()),
                      !others.empty());
}

}  // namespace ladder
