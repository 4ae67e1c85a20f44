/// @file
/// Writes a file whole or not at all.
#include "common/host/base/atomic_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace ladder {

namespace fs = std::filesystem;

void check_writable(const std::string& argument, const std::string& path) {
  std::error_code ignored;
  const fs::path directory = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (path.empty() || fs::is_directory(path, ignored))
    throw std::invalid_argument(argument + " '" + path + "': must be the name of a file, not of a directory");
  if (!fs::is_directory(directory, ignored))
    throw std::invalid_argument(argument + " '" + path + "': the directory " + directory.string() +
                                " does not exist");
  if (access(directory.c_str(), W_OK) != 0)
    throw std::invalid_argument(argument + " '" + path + "': cannot write to the directory " +
                                directory.string());
}

void write_file_atomically(const std::string& argument, const std::string& path,
                           const std::function<void(std::ostream&)>& write) {
  check_writable(argument, path);
  // In the same directory, so that renaming never has to copy.
  const std::string temporary = path + ".part-" + std::to_string(getpid());
  const auto fail = [&](const char* what) {
    const std::string reason = std::strerror(errno);
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw std::invalid_argument(argument + " '" + path + "': " + what + ": " + reason);
  };
  try {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    if (!file) fail("cannot be created");
    write(file);
    file.close();
    if (!file) fail("cannot be written");
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) fail("cannot be written");
}

}  // namespace ladder
