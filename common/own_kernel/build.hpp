/// @file
/// Makes the program own_kernel of the reader's files.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace ladder {

struct BuildRequest {
  std::vector<std::filesystem::path> files;  ///< absolute
  std::vector<std::string> include_folders;  ///< absolute
  std::vector<std::string> definitions;      ///< NAME or NAME=VALUE
};

/// Compiles the files and links the program. @returns what is wrong, a line each; nothing if it was built
std::vector<std::string> build_own_kernel(const BuildRequest&);
/// The files as they are compiled, without what other files bring.
/// @param errors gets what is wrong
std::string explain_build(const BuildRequest&, std::vector<std::string>& errors);
/// A file's bytes; empty if it cannot be read.
std::string text_of(const std::filesystem::path& file);
/// What compilers said last.
std::filesystem::path build_log();

}  // namespace ladder
