/// @file
/// Finds a kernel's declaration: debug information knows its line, and the source is read from there.
#include "common/cpu_device/kernel/from_source/kernel_declaration.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "common/cpu_device/kernel/from_source/launch_bounds.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cuda/barrier_names.hpp"

namespace cpu_device {
namespace {

using ladder::is_in_word;

constexpr const char* kGlobal = "__global__";

/// Comments become spaces, so that places stay.
std::string without_comments(std::string text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const bool is_block = text[i] == '/' && text[i + 1] == '*';
    if (!is_block && !(text[i] == '/' && text[i + 1] == '/')) continue;
    size_t end = is_block ? text.find("*/", i + 2) : text.find('\n', i);
    end = end == text.npos ? text.size() : is_block ? end + 2 : end;
    for (; i < end; ++i) {
      if (text[i] != '\n') text[i] = ' ';
    }
  }
  return text;
}

/// The place behind the parenthesis that closes the one at `open`; npos if none does.
size_t behind(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '(';
    depth -= text[i] == ')';
    if (depth == 0) return i + 1;
  }
  return text.npos;
}

std::string trimmed(const std::string& text) {
  const char* spaces = " \t\n";
  const size_t first = text.find_first_not_of(spaces);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

/// At commas that no bracket encloses.
std::vector<std::string> split_parameters(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '<' || c == '(' || c == '{';
    depth -= c == '>' || c == ')' || c == '}';
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

unsigned line_at(const std::string& text, size_t place) {
  return 1 + static_cast<unsigned>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
}

KernelDeclaration find_declaration(const void* function) {
  const std::string place = line_of_function(function);
  const size_t colon = place.rfind(':');
  if (colon == place.npos) return {};
  std::ifstream file(place.substr(0, colon));
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return {};
  KernelDeclaration result =
      read_declaration(text.str(), static_cast<unsigned>(std::atoi(place.c_str() + colon + 1)));
  result.place = short_path(place);
  result.file = place.substr(0, colon);
  return result;
}

}  // namespace

KernelDeclaration read_declaration(const std::string& source, unsigned line) {
  const std::string text = without_comments(source);
  size_t end_of_line = 0;
  for (unsigned i = 0; i < line && end_of_line != text.npos; ++i)
    end_of_line = text.find('\n', end_of_line + (i > 0));
  const size_t begin = text.rfind(kGlobal, end_of_line);
  if (begin == text.npos) return {};
  // The first parentheses that are not those of an attribute.
  for (size_t open = begin; (open = text.find('(', open)) != text.npos;) {
    size_t name_end = open;
    while (name_end > begin && !is_in_word(text[name_end - 1])) --name_end;
    size_t name = name_end;
    while (name > begin && is_in_word(text[name - 1])) --name;
    const size_t close = behind(text, open);
    if (close == text.npos) return {};
    if (text.compare(name, 2, "__") == 0) {
      open = close;
      continue;
    }
    KernelDeclaration result;
    result.name = text.substr(name, name_end - name);
    result.first_line = line_at(text, begin);
    result.last_line = line_at(text, close - 1);
    const size_t body = text.find_first_not_of(" \t\n", close);
    // A compiler names the line of the function's name, or of its body.
    if (body == text.npos || text[body] != '{' || line < result.first_line || line > line_at(text, body))
      return {};
    result.is_known = true;
    result.parameters = split_parameters(text.substr(open + 1, close - open - 2));
    return result;
  }
  return {};
}

std::string name_of_parameter(const std::string& text) {
  size_t begin = text.size();
  while (begin > 0 && is_in_word(text[begin - 1])) --begin;
  return text.substr(begin);
}

const KernelDeclaration& declaration_of(const void* function) {
  const Unobserved unobserved;
  static std::mutex mutex;
  static std::map<const void*, KernelDeclaration> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = known.try_emplace(function);
  if (is_new && function) entry->second = find_declaration(function);
  return entry->second;
}

bool has_launch_bounds(const void* function) {
  const Unobserved unobserved;
  const KernelDeclaration& declaration = declaration_of(function);
  const auto& records = launch_bounds_records();
  return !declaration.is_known ||
         std::any_of(records.begin(), records.end(), [&](const LaunchBoundsRecord& record) {
           return common_end(declaration.file, record.file) > 0 && record.line >= declaration.first_line &&
                  record.line <= declaration.last_line;
         });
}

bool find_cluster_dims(const void* function, Dim3& cluster) {
  const Unobserved unobserved;
  const auto& records = cluster_dims_records();
  if (records.empty() || !function) return false;
  const KernelDeclaration& declaration = declaration_of(function);
  size_t agrees = 0;
  for (const ClusterDimsRecord& record : records) {
    const size_t length = common_end(declaration.file, record.file);
    if (!declaration.is_known || length <= agrees || record.line < declaration.first_line ||
        record.line > declaration.last_line)
      continue;
    agrees = length;
    cluster = {record.x, record.y, record.z};
  }
  return agrees > 0;
}

unsigned threads_in_launch_bounds(const void* function) {
  const Unobserved unobserved;
  if (!function) return 0;
  const KernelDeclaration& declaration = declaration_of(function);
  if (!declaration.is_known) return 0;
  std::set<unsigned> threads;
  size_t agrees = 1;
  for (const LaunchBoundsRecord& record : launch_bounds_records()) {
    const size_t length = common_end(declaration.file, record.file);
    if (length < agrees || record.line < declaration.first_line || record.line > declaration.last_line)
      continue;
    if (length > agrees) threads.clear();
    agrees = length;
    threads.insert(record.threads);
  }
  return threads.size() == 1 ? *threads.begin() : 0;
}

std::string line_that_reads(const void* function, const std::string& built_in) {
  const Unobserved unobserved;
  if (!function) return "";
  const KernelDeclaration& declaration = declaration_of(function);
  if (!declaration.is_known || !declaration.last_line) return "";
  std::ifstream file(declaration.file);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string source = without_comments(text.str());
  unsigned number = 0;
  int depth = 0;
  bool has_begun = false;
  for (size_t at = 0; at < source.size(); ++number) {
    const size_t end = std::min(source.find('\n', at), source.size());
    const std::string line = source.substr(at, end - at);
    at = end + 1;
    if (number + 1 < declaration.last_line) continue;
    if (has_begun && line.find(built_in) != line.npos)
      return declaration.file.substr(declaration.file.rfind('/') + 1) + ":" + std::to_string(number + 1);
    for (const char c : line) {
      depth += (c == '{') - (c == '}');
      has_begun |= c == '{';
      if (has_begun && depth == 0) return "";
    }
  }
  return "";
}

unsigned blocks_in_launch_bounds(const void* function, unsigned threads) {
  const Unobserved unobserved;
  // Most programs have no kernel that wants several, and to ask which kernel this is takes long.
  const auto& records = launch_bounds_records();
  if (std::none_of(records.begin(), records.end(), [&](const LaunchBoundsRecord& record) {
        return record.threads == threads && record.blocks > 1;
      }))
    return 1;
  const KernelDeclaration& declaration = declaration_of(function);
  if (!declaration.is_known) return 1;
  // Kernels made from one template may want different numbers; those for this block size, and of those the
  // least.
  unsigned blocks = 0;
  size_t agrees = 1;
  for (const LaunchBoundsRecord& record : launch_bounds_records()) {
    const size_t length = common_end(declaration.file, record.file);
    if (length < agrees || record.line < declaration.first_line || record.line > declaration.last_line ||
        record.threads != threads) {
      continue;
    }
    blocks = length == agrees && blocks ? std::min(blocks, record.blocks) : record.blocks;
    agrees = length;
  }
  return std::max(blocks, 1u);
}

}  // namespace cpu_device
