/// @file
/// What kernels say in __launch_bounds__, which compilers for the host forget.
///
/// The shadow of __launch_bounds__ is an attribute of the kernel whose value takes the address of a variable
/// of LaunchBounds, so that the variable exists and adds a record before main() begins. Which kernel it
/// belongs to follows from file and line.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace cpu_device {

struct LaunchBoundsRecord {
  uint64_t file = 0;  ///< see hash_of_path
  unsigned line = 0;
  unsigned threads = 0, blocks = 0;
};
inline std::vector<LaunchBoundsRecord>& launch_bounds_records() {
  static std::vector<LaunchBoundsRecord> records;
  return records;
}

/// Of the last two parts of a path, which may be relative or not.
constexpr uint64_t hash_of_path(std::string_view path) {
  const size_t file = path.rfind('/');
  const size_t folder = file == path.npos || file == 0 ? path.npos : path.rfind('/', file - 1);
  uint64_t hash = 14695981039346656037u;
  for (const char c : folder == path.npos ? path : path.substr(folder + 1)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return hash;
}

template <const int*>
inline constexpr int kAlignmentOfCode = 16;

/// The numbers in the parentheses; the third, blocks of a cluster, is of no use here.
template <uint64_t kFile, unsigned kLine, unsigned kThreads, unsigned kBlocks = 1, unsigned = 0>
struct LaunchBounds {
  static inline const int recorded =
      (launch_bounds_records().push_back({kFile, kLine, kThreads, kBlocks}), 0);
  static constexpr int kAlignment = kAlignmentOfCode<&recorded>;
};

}  // namespace cpu_device
