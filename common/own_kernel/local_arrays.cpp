/// @file
/// Indices that an array of a kernel does not have. The compiler tests each index of an array whose bound it
/// knows (-fsanitize=bounds), and calls the function below, which is libubsan's in other programs.
///
/// Only arrays that the file declares itself, and calls by their plain name, are judged: programs use a tile
/// of shared memory, or a row of a matrix, as one long array. What lies in shared memory has checks of its
/// own.
#include <fmt/core.h>
#include <algorithm>
#include <cerrno>  // program_invocation_short_name
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cuda/barrier_names.hpp"

namespace {

using ladder::is_in_word;

// The compilers' structs.
struct Type {
  uint16_t kind, info;
  char name[1];
};
struct OutOfBounds {
  const char* file;
  uint32_t line, column;  ///< of the bracket that closes the index
  const Type* array;
  const Type* index;
};
constexpr uint32_t kJudged = UINT32_MAX;  ///< for a column: as libubsan marks what it has reported

/// The name of the array that is indexed, where the rewritten source declares it as a plain one; else empty.
std::string array_at(const std::string& source, const OutOfBounds& data) {
  size_t begin = 0, line = 0;
  for (bool is_in_file = false;;) {
    if (source.compare(begin, 2, "# ") == 0) {
      line = std::strtoul(source.c_str() + begin + 2, nullptr, 10) - 1;
      const std::string file = std::string(data.file) + '"';
      is_in_file = source.compare(source.find('"', begin) + 1, file.size(), file) == 0;
    } else if (++line == data.line && is_in_file && begin + data.column <= source.size() &&
               source[begin + data.column - 1] == ']') {
      break;
    }
    begin = source.find('\n', begin) + 1;
    if (begin == 0) return "";
  }
  size_t at = begin + data.column - 1;
  for (int depth = 0; at > begin; --at) {
    depth += (source[at] == ']') - (source[at] == '[');
    if (depth == 0) break;
  }
  while (at > begin && source[at - 1] == ' ') --at;
  const size_t end = at;
  while (at > begin && is_in_word(source[at - 1])) --at;
  const std::string name = source.substr(at, end - at);
  const bool is_plain =
      !name.empty() && (at == 0 || (source[at - 1] != '.' && source[at - 1] != '>' && source[at - 1] != ':'));
  if (!is_plain || source.find(">(\"" + name + "\")") != source.npos) return "";  // __shared__
  static const std::regex other("\\b(return|case|else|throw|delete)\\s+$");
  for (size_t found = source.rfind(name, begin); found != source.npos && found;
       found = source.rfind(name, found - 1)) {
    const size_t behind = source.find_first_not_of(' ', found + name.size());
    const size_t before = source.find_last_not_of(' ', found - 1);
    if (behind == source.npos || source[behind] != '[' || before == source.npos || before + 1 == found)
      continue;
    if (!is_in_word(source[before]) && source[before] != '>') continue;
    if (!std::regex_search(source.substr(before > 8 ? before - 8 : 0, found - (before > 8 ? before - 8 : 0)),
                           other))
      return name;
  }
  return "";
}

std::string array_at(const OutOfBounds& data) {
  for (const auto& entry : std::filesystem::directory_iterator(LADDER_OWN_FOLDER)) {
    if (entry.path().extension() != ".ii" || entry.path().stem().string().rfind("part_", 0) != 0) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string source{std::istreambuf_iterator<char>(stream), {}};
    if (std::string name = array_at(source, data); !name.empty()) return name;
  }
  return "";
}

}  // namespace

/// No exception can leave it.
extern "C" void __ubsan_handle_out_of_bounds(OutOfBounds* data, uintptr_t index) {
  if (data->column == kJudged || !cpu_device::observers().running) return;
  const cpu_device::Unobserved unobserved;
  const std::string name = array_at(*data);
  if (name.empty()) {
    data->column = kJudged;
    return;
  }
  const bool is_signed = data->index->info & 1;
  const unsigned bits = 1u << (data->index->info >> 1);
  const auto value = static_cast<int64_t>(index << (64 - bits)) >> (64 - bits);
  const cpu_device::ThreadIds& thread = *cpu_device::current_thread_ids;
  std::fflush(stdout);
  fmt::print(
      stderr,
      "{}: error: kernel '{}': {}[{}] is beyond the end of the array, whose type is {}\n  at {}:{}\n  in "
      "block ({},{},{}), thread ({},{},{})\n",
      program_invocation_short_name, cpu_device::launch_progress().name, name,
      is_signed ? std::to_string(value) : std::to_string(index), std::string(data->array->name),
      cpu_device::short_path(data->file), data->line, thread.block->index.x, thread.block->index.y,
      thread.block->index.z, thread.index.x, thread.index.y, thread.index.z);
  std::fflush(stderr);
  std::_Exit(EXIT_FAILURE);
}
