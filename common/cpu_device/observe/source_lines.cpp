/// @file
/// Finds source lines with the dynamic loader's list of modules and addr2line.
#include "common/cpu_device/observe/source_lines.hpp"

#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/cuda/barrier_names.hpp"

namespace cpu_device {
namespace {

using ladder::is_in_word;

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

/// "void lesson02::Loader<2>::load_tiles<2>(lesson02::SharedStorage&)" becomes "load_tiles",
/// "operator()(int)" a lambda.
std::string bare_name(std::string function) {
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at; (at = function.find(anonymous)) != std::string::npos;) function.erase(at, anonymous.size());
  const std::string tag = "[abi:";  // of a function that returns a std::string: "name[abi:cxx11](int)"
  for (size_t at; (at = function.find(tag)) != std::string::npos;)
    function.erase(at, function.find(']', at) - at + (function.find(']', at) != std::string::npos));
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
  // A shadow header renames what it wraps: readers know the name that the source has.
  const std::string renamed = "_untimed";
  if (name.size() > renamed.size() && name.ends_with(renamed)) name.resize(name.size() - renamed.size());
  return name == "operator" || name == "_Function_handler" ? "a lambda" : name;
}

/// Code that readers of a report do not look for: shadow headers, of either kind, and the standard library.
bool is_machinery(const std::string& path) {
  const bool in_device = path.find("/common/cpu_device/") != std::string::npos;
  const bool in_tests = path.find("/common/cpu_device/tests/") != std::string::npos;
  const bool in_wrapper = path.find("/common/instrumented/") != std::string::npos;
  const bool in_rewriter = path.find("/common/own_kernel/rewrite/") != std::string::npos;
  return (in_device && !in_tests) || in_wrapper || in_rewriter || path.rfind("/usr/", 0) == 0;
}

std::string hex(uintptr_t offset) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "0x%" PRIxPTR, offset);
  return text.data();
}

/// addr2line for one module. It reads all debug information when it is asked for the first time, so it is
/// kept and asked again, until this process ends and its input with it.
class Addr2Line {
 public:
  explicit Addr2Line(const std::string& module) : owner_(getpid()) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO})
      posix_spawn_file_actions_adddup2(&actions, ends[1], stream);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::string program = "addr2line", options = "-aCfie", name = module;
    char* const arguments[] = {program.data(), options.data(), name.data(), nullptr};
    pid_t child = 0;
    if (posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ) == 0)
      socket_ = ends[0];
    else
      close(ends[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
  }
  Addr2Line(const Addr2Line&) = delete;

  /// A child of this process would get answers to the parent's questions.
  bool is_mine() const { return owner_ == getpid(); }

  /// Two lines for each level of inlining, innermost first: the function, and the file with the line.
  std::vector<std::string> ask(uintptr_t offset) {
    // An answer begins with the address, and that to 0, where there is no code, has two lines more.
    const std::string question = hex(offset) + "\n0x0\n";
    if (send(socket_, question.data(), question.size(), MSG_NOSIGNAL) != ssize_t(question.size())) return {};
    std::vector<std::string> lines;
    next_line();
    for (std::string line; !(line = next_line()).empty() && line.rfind("0x", 0) != 0;)
      lines.push_back(line.substr(0, line.find(" (discriminator")));
    next_line(), next_line();
    return lines;
  }

 private:
  /// Empty at the end.
  std::string next_line() {
    size_t end;
    while ((end = unread_.find('\n')) == std::string::npos) {
      std::array<char, 1024> buffer;
      const ssize_t count = read(socket_, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return "";
      unread_.append(buffer.data(), static_cast<size_t>(count));
    }
    const std::string line = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    return line;
  }

  pid_t owner_;
  int socket_ = -1;
  std::string unread_;
};

/// What addr2line says of an address in a module. Nothing without addr2line. It is asked once for each
/// address: asked again it may name another function of those that are inlined.
std::vector<std::string> ask_addr2line(const std::string& module, uintptr_t offset) {
  static std::mutex mutex;
  static auto& of_module = *new std::map<std::string, std::unique_ptr<Addr2Line>>;
  const std::lock_guard<std::mutex> lock(mutex);
  static auto& known = *new std::map<std::pair<std::string, uintptr_t>, std::vector<std::string>>;
  const auto [answer, is_new] = known.try_emplace({module, offset});
  if (is_new) {
    std::unique_ptr<Addr2Line>& one = of_module[module];
    if (!one || !one->is_mine()) one = std::make_unique<Addr2Line>(module);
    answer->second = one->ask(offset);
  }
  return answer->second;
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
  for (const std::string& place : calls_in(ask_addr2line(module.path, offset))) {
    result += (result.empty() ? "" : ", called from ") + place;
  }
  return result.empty() ? module_and_offset(module, offset) : result;
}

std::vector<std::string> source_calls(const uintptr_t* return_addresses, unsigned count) {
  std::vector<std::string> calls;
  for (unsigned i = 0; i < count; ++i) {
    const uintptr_t call = return_addresses[i] - 1;
    const Module module = find_module(call);
    if (module.load_address != program_load_address()) continue;
    for (std::string& place : calls_in(ask_addr2line(program_path(), call - module.load_address)))
      calls.push_back(std::move(place));
  }
  return calls;
}

std::string describe_callers(const Location& where) {
  if (!where.call) return "";
  const auto address = reinterpret_cast<uintptr_t>(where.call);
  std::vector<std::string> calls = source_calls(&address, 1);
  const std::string place = short_path(where.file) + ":" + std::to_string(where.line) + " in ";
  if (calls.empty() || calls.front().rfind(place, 0) != 0) return "";
  std::string text = " in " + calls.front().substr(place.size());
  if (const auto outer = reinterpret_cast<uintptr_t>(where.outer_call))
    for (std::string& call : source_calls(&outer, 1)) calls.push_back(std::move(call));
  for (size_t i = 1; i < calls.size(); ++i) text += ", called from " + calls[i];
  return text;
}

namespace {

/// Whether the path belongs to a lesson, an exercise or a test.
bool is_own(const std::string& path) {
  return !is_machinery(path) && (path.find("/common/") == std::string::npos ||
                                 path.find("/common/cpu_device/tests/") != std::string::npos ||
                                 path.find("/common/tests/") != std::string::npos);
}

/// The statement that begins in this line of the file: that line and those that it goes on in.
std::string statement_at(const std::string& path, unsigned line) {
  constexpr int kMostLines = 4;
  if (ladder::is_newer_than_program(path)) return "";
  std::ifstream file(path);
  std::string text, statement;
  for (unsigned i = 1; i < line && std::getline(file, text); ++i) {
  }
  for (int i = 0; i < kMostLines && std::getline(file, text); ++i) {
    text.erase(std::min(text.find("//"), text.size()));
    statement += text;
    if (text.find_first_of(";{}") != std::string::npos) break;
  }
  return statement;
}

/// Splits "/path/gemm.cuh:82".
std::pair<std::string, unsigned> path_and_line(const std::string& place) {
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos) return {place, 0};
  return {place.substr(0, colon),
          static_cast<unsigned>(std::strtoul(place.c_str() + colon + 1, nullptr, 10))};
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string without_indices(const std::string& operand) {
  std::string text;
  int depth = 0;
  for (const char c : operand) {
    depth += c == '[';
    if (depth == 0) text += c;
    depth -= c == ']';
  }
  return text;
}

}  // namespace

std::vector<std::string> own_calls(const std::vector<uintptr_t>& return_addresses) {
  std::vector<std::string> calls;
  for (const uintptr_t address : return_addresses) {
    const Module module = find_module(address - 1);
    if (module.load_address != program_load_address()) continue;
    const std::vector<std::string> lines = ask_addr2line(module.path, address - 1 - module.load_address);
    for (size_t i = 0; i + 1 < lines.size(); i += 2)
      if (lines[i + 1].rfind("??", 0) != 0 && is_own(lines[i + 1]))
        calls.push_back(short_path(lines[i + 1]) + " in " + bare_name(lines[i]));
  }
  return calls;
}

std::vector<uintptr_t> calling_now() {
  constexpr int kMost = 32;
  void* frames[kMost];
  const int count = backtrace(frames, kMost);
  std::vector<uintptr_t> addresses;
  for (int i = 1; i < count; ++i) addresses.push_back(reinterpret_cast<uintptr_t>(frames[i]));
  return addresses;
}

std::vector<std::string> operands_in(const std::string& text) {
  std::vector<std::string> operands;
  for (const char* const storage : {"smem", "smem_", "shared", "shared_"}) {
    const std::string name = storage;
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      size_t end = at + name.size();
      if ((at > 0 && (is_in_word(text[at - 1]) || text[at - 1] == ':')) || end >= text.size()) continue;
      if (text[end] != '.' && text.compare(end, 2, "->") != 0) continue;
      size_t last_member = end;  // where the name ends without its last member
      for (int depth = 0; end < text.size(); ++end) {
        const char c = text[end];
        if (depth == 0 && c == '.') last_member = end;
        depth += c == '[';
        depth -= c == ']';
        const bool is_arrow = text.compare(end, 2, "->") == 0 || (c == '>' && text[end - 1] == '-');
        if (depth < 0 || (depth == 0 && !is_in_word(c) && c != '.' && c != ']' && !is_arrow)) break;
      }
      std::string operand = text.substr(at, (end < text.size() && text[end] == '(' ? last_member : end) - at);
      if (operand.size() <= name.size()) continue;  // a function of all of it
      if (std::find(operands.begin(), operands.end(), operand) == operands.end())
        operands.push_back(std::move(operand));
    }
  }
  return operands;
}

namespace {

/// What addr2line says of the call that returns there; nothing where that is not in the program.
std::vector<std::string> lines_of_call(const void* return_address) {
  if (!return_address) return {};
  const uintptr_t call = reinterpret_cast<uintptr_t>(return_address) - 1;
  const Module module = find_module(call);
  if (module.load_address != program_load_address()) return {};
  return ask_addr2line(program_path(), call - module.load_address);
}

OwnLine find_own_line(const Location& where) {
  OwnLine own{file_name(where.file) + ":" + std::to_string(where.line), {}};
  // A wrapper that forwards its caller's location is skipped, so that the report names the caller.
  bool is_found = where.line && where.file[0] == '/' && is_own(where.file), is_inside = is_found;
  const std::string of_operation = own.place;
  const auto take_operands = [&](const std::string& path, unsigned line, bool is_innermost) {
    own.statement = statement_at(path, line);
    own.operands = operands_in(own.statement);
    own.is_direct = is_innermost;
  };
  if (is_found) take_operands(where.file, where.line, /*is_innermost=*/true);
  for (const void* const return_address : {where.call, where.outer_call}) {
    const std::vector<std::string> lines = lines_of_call(return_address);
    bool is_innermost = !where.line && return_address == where.call;
    for (size_t i = 1; i < lines.size(); i += 2) {
      // A function of CUDA's, as one that converts a number, takes what the line reads by its value.
      is_innermost = is_innermost && (is_own(lines[i]) || is_machinery(lines[i]));
      if (!is_own(lines[i])) continue;
      const auto [path, number] = path_and_line(lines[i]);
      const std::string place = file_name(path) + ":" + std::to_string(number);
      is_inside = is_inside && place != own.place;
      if (is_inside) continue;
      own.caller = place;
      own.calls.push_back({place, bare_name(lines[i - 1])});
      if (!is_found) own.place = own.caller;
      is_found = true;
      if (own.operands.empty())
        take_operands(path, number, is_innermost || (where.line && place == of_operation));
      is_innermost = false;
    }
  }
  if (own.caller == own.place) own.caller.clear();
  return own;
}

}  // namespace

OwnLine own_line(const Location& where) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::tuple<std::string, unsigned, const void*, const void*>, OwnLine>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = known.try_emplace({where.file, where.line, where.call, where.outer_call});
  if (is_new) entry->second = find_own_line(where);
  return entry->second;
}

HelperCall call_of_helper(const Location& where) {
  std::string helper;
  for (const void* const return_address : {where.call, where.outer_call}) {
    const std::vector<std::string> lines = lines_of_call(return_address);
    for (size_t i = 0; i + 1 < lines.size(); i += 2) {
      if (lines[i + 1].rfind("??", 0) == 0 || is_machinery(lines[i + 1])) continue;
      if (!helper.empty()) {
        const auto [path, line] = path_and_line(lines[i + 1]);
        return {path, line, helper};
      }
      helper = bare_name(lines[i]);
    }
  }
  return {};
}

std::string shared_operand(const OwnLine& one, const OwnLine& other) {
  if (one.operands.empty() || other.operands.empty()) {
    const auto& named = one.operands.empty() ? other.operands : one.operands;
    return named.size() == 1 ? named.front() : "";
  }
  std::vector<std::string> both;
  for (const std::string& operand : one.operands)
    for (const std::string& candidate : other.operands)
      if (without_indices(operand) == without_indices(candidate)) both.push_back(operand);
  return both.size() == 1 ? both.front() : "";
}

std::string argument_of_call(const Location& place, const std::string& function, unsigned argument) {
  if (!place.line) return "";
  const std::string source = ladder::source_from(place.file, place.line),
                    line = source.substr(0, source.find('\n'));
  const size_t call = line.find(function + "(");
  if (call == line.npos || line.find(function + "(", call + 1) != line.npos) return "";
  std::string text;
  int depth = 0;
  for (size_t at = call + function.size() + 1; at < line.size(); ++at) {
    const char c = line[at];
    if (depth == 0 && (c == ',' || c == ')')) {
      if (argument-- == 0) {
        if (text.ends_with(".get()")) text.resize(text.size() - 6);
        return text;
      }
      if (c == ')') return "";
      text.clear();
      continue;
    }
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
    if (c != ' ' || !text.empty()) text += c;
  }
  return "";
}

std::pair<unsigned, unsigned> lines_made_in_loop(const std::string& source, unsigned line,
                                                 const std::string& type, const std::string& argument) {
  std::string text;  // without comments
  std::istringstream lines(source);
  std::string one;
  for (unsigned at = 1; at <= line && std::getline(lines, one); ++at)
    text += one.substr(0, one.find("//")) + "\n";
  const auto line_at = [&](size_t offset) {
    return static_cast<unsigned>(
        1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(offset), '\n'));
  };
  size_t made = text.npos;
  for (size_t at = text.find(type); at != text.npos; at = text.find(type, at + 1)) {
    if (at && is_in_word(text[at - 1])) continue;
    const std::string statement = text.substr(at, text.find(';', at) - at);
    const size_t end = statement.find_last_of(")}");
    if (end == statement.npos || end < argument.size() || statement.find('\n') != statement.npos) continue;
    const size_t begin = end - argument.size();
    if (statement.compare(begin, argument.size(), argument) == 0 && begin &&
        !is_in_word(statement[begin - 1]))
      made = at;
  }
  if (made == text.npos) return {0, 0};
  int depth = 0;
  for (size_t at = made; at-- > 0;) {
    depth += text[at] == '}';
    depth -= text[at] == '{';
    if (depth >= 0) continue;
    depth = 0;  // the statement around it
    int parentheses = 0;
    size_t begin = at;
    for (; begin > 0; --begin) {
      const char c = text[begin - 1];
      parentheses += c == ')';
      parentheses -= c == '(';
      if (parentheses == 0 && (c == ';' || c == '{' || c == '}')) break;
    }
    while (begin < at && std::isspace(static_cast<unsigned char>(text[begin]))) ++begin;
    for (const char* const word : {"for", "while", "do"})
      if (text.compare(begin, std::strlen(word), word) == 0 && !is_in_word(text[begin + std::strlen(word)]))
        return {line_at(made), line_at(begin)};
  }
  return {0, 0};
}

MadeInLoop made_in_loop(const Location& where, const std::string& type, const std::string& argument) {
  std::vector<std::string> places;
  if (where.line && where.file[0] == '/' && is_own(where.file))
    places.push_back(std::string(where.file) + ":" + std::to_string(where.line));
  for (const void* const return_address : {where.call, where.outer_call}) {
    const std::vector<std::string> lines = lines_of_call(return_address);
    for (size_t i = 1; i < lines.size(); i += 2)
      if (is_own(lines[i])) places.push_back(lines[i]);
  }
  if (places.empty()) return {};
  const auto [path, line] = path_and_line(places.front());
  if (ladder::is_newer_than_program(path)) return {};
  std::ifstream file(path);
  std::stringstream source;
  source << file.rdbuf();
  const auto [object, loop] = lines_made_in_loop(source.str(), line, type, argument);
  if (!object) return {};
  const std::string name = file_name(path) + ":";
  return {name + std::to_string(object), name + std::to_string(loop)};
}

std::string line_of_function(const void* function) {
  const auto address = reinterpret_cast<uintptr_t>(function);
  const Module module = find_module(address);
  const auto lines = ask_addr2line(module.path, address - module.load_address);
  return lines.size() < 2 || lines.back().rfind("??", 0) == 0 ? "" : lines.back();
}

}  // namespace cpu_device
