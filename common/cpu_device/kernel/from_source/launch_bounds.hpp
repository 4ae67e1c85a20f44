/// @file
/// What kernels say in __launch_bounds__ and __cluster_dims__, which compilers for the host forget.
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

/// Of a path, which may be relative: of what is behind its last "../".
constexpr uint64_t hash_of_path(std::string_view path) {
  constexpr std::string_view kUp = "../";
  const size_t up = path.rfind(kUp);
  uint64_t hash = 14695981039346656037u;
  for (const char c : up == path.npos ? path : path.substr(up + kUp.size())) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return hash;
}
/// How much of an absolute path the path with that hash is: the length of the end that they have in common, 0
/// if they are different files. A program of the lab may hold a file and its broken copy, deeper in the tree:
/// then the longer one is meant.
constexpr size_t common_end(std::string_view path, uint64_t hash) {
  for (size_t begin = 0; begin < path.size(); ++begin) {
    if (begin > 0 && path[begin - 1] != '/') continue;
    if (hash_of_path(path.substr(begin)) == hash) return path.size() - begin;
  }
  return 0;
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

struct ClusterDimsRecord {
  uint64_t file = 0;
  unsigned line = 0;
  unsigned x = 1, y = 1, z = 1;
};
inline std::vector<ClusterDimsRecord>& cluster_dims_records() {
  static std::vector<ClusterDimsRecord> records;
  return records;
}

template <uint64_t kFile, unsigned kLine, unsigned kX = 1, unsigned kY = 1, unsigned kZ = 1>
struct ClusterDims {
  static inline const int recorded = (cluster_dims_records().push_back({kFile, kLine, kX, kY, kZ}), 0);
  static constexpr int kAlignment = kAlignmentOfCode<&recorded>;
};

}  // namespace cpu_device
