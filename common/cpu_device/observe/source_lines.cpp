/// @file
/// Finds source lines with the dynamic loader's list of modules and addr2line.
#include "common/cpu_device/observe/source_lines.hpp"

#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
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

/// What addr2line says of an address in a module. Nothing without addr2line.
std::vector<std::string> ask_addr2line(const std::string& module, uintptr_t offset) {
  static std::mutex mutex;
  static auto& of_module = *new std::map<std::string, std::unique_ptr<Addr2Line>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Addr2Line>& one = of_module[module];
  if (!one || !one->is_mine()) one = std::make_unique<Addr2Line>(module);
  return one->ask(offset);
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
  const auto lines = ask_addr2line(module.path, address - module.load_address);
  return lines.size() < 2 || lines.back().rfind("??", 0) == 0 ? "" : lines.back();
}

}  // namespace cpu_device
