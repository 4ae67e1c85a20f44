/// @file
/// What a learner needs to see of a compiler's log.
#pragma once
#include <filesystem>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace ladder {

/// The first errors, a line each: "mine.cuh:12: error: ...". Those in the learner's file come alone; if there
/// are none, those of other files, with paths seen from `root`; if there are none either, the log's end.
/// An error in a template that the learner's file instantiates is an error of the line that does so.
/// @param log of g++, clang or nvcc, and the linker
/// @param mine the learner's file, below `root`
std::vector<std::string> first_errors(std::istream& log, const std::filesystem::path& root,
                                      const std::filesystem::path& mine);

/// Builds a program of this build directory with CMake, which says nothing unless it fails.
/// @param log a file for all that the compiler says
/// @returns the first errors, if there are any
std::optional<std::vector<std::string>> errors_of_build(const std::string& program,
                                                        const std::filesystem::path& log,
                                                        const std::filesystem::path& root,
                                                        const std::filesystem::path& mine);

}  // namespace ladder
