/// @file
/// Finds source lines with the dynamic loader's list of modules and addr2line.
#include "common/cpu_device/observe/source_lines.hpp"

#include <link.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace cpu_device {
namespace {

/// A program or shared library in memory.
struct Module {
  std::string path;
  uintptr_t load_address = 0;
};

/// Of the program itself the loader reports an empty name.
std::string program_path() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return length > 0 ? std::string(path.data(), static_cast<size_t>(length)) : std::string();
}

Module find_module(uintptr_t address) {
  struct Search {
    uintptr_t address;
    Module found;
  } search{address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type != PT_LOAD || wanted.address < begin ||
              wanted.address >= begin + segment.p_memsz) {
            continue;
          }
          wanted.found = {info->dlpi_name, info->dlpi_addr};
          return 1;
        }
        return 0;
      },
      &search);
  if (search.found.path.empty()) search.found.path = program_path();
  return search.found;
}

/// For a POSIX shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::vector<std::string> lines_of_command(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return lines;
  std::string text;
  std::array<char, 1024> buffer;
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), count);
  }
  pclose(pipe);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// "void lesson02::Loader<2>::load_tiles<2>(lesson02::SharedStorage&)" becomes "load_tiles",
/// "operator()(int)" a lambda.
std::string bare_name(std::string function) {
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at; (at = function.find(anonymous)) != std::string::npos;) function.erase(at, anonymous.size());
  const std::string with_arguments = function.substr(0, function.find('('));
  std::string name;
  int depth = 0;
  for (const char c : with_arguments) {
    depth += c == '<';
    if (depth == 0) name += c;
    depth -= c == '>';
  }
  const size_t qualifiers = name.find_last_of(": ");
  if (qualifiers != std::string::npos) name.erase(0, qualifiers + 1);
  return name == "operator" ? "a lambda" : name;
}

/// Code that readers of a report do not look for: shadow headers, of either kind, and the standard library.
bool is_machinery(const std::string& path) {
  const bool in_device = path.find("/common/cpu_device/") != std::string::npos;
  const bool in_tests = path.find("/common/cpu_device/tests/") != std::string::npos;
  const bool in_wrapper = path.find("/common/instrumented/") != std::string::npos;
  return (in_device && !in_tests) || in_wrapper || path.rfind("/usr/", 0) == 0;
}

std::string hex(uintptr_t offset) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "0x%" PRIxPTR, offset);
  return text.data();
}

/// What addr2line says of addresses in a module: two lines for each level of inlining, innermost first: the
/// function, and the file with the line.
std::vector<std::string> ask_addr2line(const std::string& module, const std::string& offsets) {
  std::vector<std::string> lines =
      lines_of_command("addr2line -C -f -i -e " + quoted(module) + offsets + " 2>/dev/null");
  for (std::string& line : lines) line = line.substr(0, line.find(" (discriminator"));
  return lines;
}

/// The calls among these lines that readers look for.
std::vector<std::string> calls_in(const std::vector<std::string>& lines) {
  std::vector<std::string> calls;
  for (size_t i = 0; i + 1 < lines.size(); i += 2) {
    if (lines[i + 1].rfind("??", 0) == 0 || is_machinery(lines[i + 1])) continue;
    calls.push_back(short_path(lines[i + 1]) + " in " + bare_name(lines[i]));
  }
  return calls;
}

std::string module_and_offset(const Module& module, uintptr_t offset) {
  return short_path(module.path) + "+" + hex(offset);
}

}  // namespace

uintptr_t program_load_address() {
  static const uintptr_t address = [] {
    uintptr_t first = 0;
    dl_iterate_phdr(  // the program itself comes first
        [](dl_phdr_info* info, size_t, void* data) {
          *static_cast<uintptr_t*>(data) = info->dlpi_addr;
          return 1;
        },
        &first);
    return first;
  }();
  return address;
}

std::string short_path(const std::string& path) {
  const size_t file = path.rfind('/');
  if (file == std::string::npos || file == 0) return path;
  const size_t directory = path.rfind('/', file - 1);
  return directory == std::string::npos ? path : path.substr(directory + 1);
}

std::string describe_call_site(uintptr_t return_address) {
  const uintptr_t call =
      return_address - 1;  // inside of the call instruction, so that the line is the call's
  const Module module = find_module(call);
  const uintptr_t offset = call - module.load_address;

  std::string result;
  for (const std::string& place : calls_in(ask_addr2line(module.path, ' ' + hex(offset)))) {
    result += (result.empty() ? "" : ", called from ") + place;
  }
  return result.empty() ? module_and_offset(module, offset) : result;
}

std::vector<std::string> source_calls(const uintptr_t* return_addresses, unsigned count) {
  // Chains of calls have most of their addresses in common, and each addr2line reads all debug information.
  static std::mutex mutex;
  static std::map<uintptr_t, std::vector<std::string>> known;
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<uintptr_t> offsets;
  std::string asked;
  for (unsigned i = 0; i < count; ++i) {
    const uintptr_t call = return_addresses[i] - 1;
    const Module module = find_module(call);
    if (module.load_address != program_load_address()) continue;
    offsets.push_back(call - module.load_address);
    if (known.try_emplace(offsets.back()).second) asked += ' ' + hex(offsets.back());
  }
  if (!asked.empty()) {
    std::vector<std::string>* of_address = nullptr;
    for (const std::string& line : ask_addr2line(program_path(), " -a" + asked)) {
      if (line.rfind("0x", 0) == 0)
        of_address = &known[std::strtoull(line.c_str(), nullptr, 16)];
      else if (of_address)
        of_address->push_back(line);
    }
  }
  std::vector<std::string> calls;
  for (const uintptr_t offset : offsets)
    for (std::string& call : calls_in(known[offset])) calls.push_back(std::move(call));
  return calls;
}

std::string describe_callers(const void* return_address, const char* file, unsigned line) {
  const auto address = reinterpret_cast<uintptr_t>(return_address);
  const std::vector<std::string> calls = source_calls(&address, 1);
  const std::string place = short_path(file) + ":" + std::to_string(line) + " in ";
  if (calls.empty() || calls.front().rfind(place, 0) != 0) return "";
  std::string text = " in " + calls.front().substr(place.size());
  for (size_t i = 1; i < calls.size(); ++i) text += ", called from " + calls[i];
  return text;
}

std::string line_of_function(const void* function) {
  const auto address = reinterpret_cast<uintptr_t>(function);
  const Module module = find_module(address);
  const auto lines = ask_addr2line(module.path, ' ' + hex(address - module.load_address));
  return lines.size() < 2 || lines.back().rfind("??", 0) == 0 ? "" : lines.back();
}

}  // namespace cpu_device
