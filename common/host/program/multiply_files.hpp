/// @file
/// Multiplies the reader's own matrices through a lesson.
#pragma once
#include <string>

#include "common/host/problem/lesson.hpp"
#include "common/host/program/npy.hpp"

namespace ladder {

/// C = A · B, all .npy files.
struct FileNames {
  std::string a, b, c;
  std::string dtype = "f4";     ///< of C
  bool uint16_is_bf16 = false;  ///< in A and B

  bool given() const { return !a.empty() || !b.empty() || !c.empty(); }
  /// @throws std::invalid_argument if some of the three are given and others are not, dtype is unknown, or
  /// there are no files that uint16_is_bf16 could be about
  void check() const;
};

/// Reads A and B, rounds them to bf16, multiplies and writes C; says in one line on stdout what was done.
/// Inputs that are all finite are verified against fp64 first; NaN and infinity are passed through.
/// @returns false if the result was wrong: then nothing is written, and the complaint is on stderr
/// @throws std::invalid_argument naming the file and what is wrong with it, or the shape that the lesson
/// refuses
bool multiply_files(const Lesson& lesson, const Settings& settings, const FileNames& files, bool verify);

}  // namespace ladder
