/// @file
/// Compiled kernels in files of the user's.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <system_error>

#include "06_clusters_dsmem/any_shape/on_demand.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/text.hpp"
#include "common/host/problem/tuned_plans.hpp"

namespace lesson06::any_shape {
namespace {

namespace fs = std::filesystem;

/// Tells whole files from damaged ones (FNV-1a). Who may write here is the user alone, so it need not resist.
uint64_t checksum(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

std::string head_of(const std::string& key, const std::string& bytes) {
  return fmt::format("kernel ladder, {}, {} bytes, {:016x}\n", key, bytes.size(), checksum(bytes));
}

/// Why what others may have written is not to be run: of a file or a folder that is there.
std::string why_not_trusted(const struct stat& found, mode_t kind) {
  if ((found.st_mode & S_IFMT) != kind) return kind == S_IFDIR ? "is no folder" : "is no regular file";
  if (found.st_uid != geteuid()) return "belongs to another user";
  if (found.st_mode & (S_IWGRP | S_IWOTH)) return "others may write it";
  return "";
}

/// The same of the folder of a file, and of the folder above it.
std::string why_no_folder(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  for (const fs::path& one : {folder.parent_path(), folder}) {
    struct stat found {};
    if (lstat(one.c_str(), &found) != 0) return one.string() + ": " + std::strerror(errno);
    if (const std::string why = why_not_trusted(found, S_IFDIR); !why.empty())
      return one.string() + " " + why;
  }
  return "";
}

}  // namespace

std::string kernel_cache() { return fs::path(ladder::tuned_plans_path()).parent_path() / "kernels"; }

std::optional<std::string> read_cached(const std::string& path, const std::string& key) {
  const auto ignored = [&](const std::string& why) {
    std::cerr << "06_any_shape: warning: " << path << " is not used: " << why << std::endl;
    return std::nullopt;
  };
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? std::nullopt : ignored(std::strerror(errno));
  std::string why = why_no_folder(path), text;
  struct stat found {};
  if (why.empty() && fstat(file, &found) != 0) why = std::strerror(errno);
  if (why.empty()) why = why_not_trusted(found, S_IFREG);
  if (why.empty()) {
    text.resize(static_cast<size_t>(found.st_size));
    const ssize_t count = read(file, text.data(), text.size());
    if (count != static_cast<ssize_t>(text.size())) why = "it cannot be read whole";
  }
  close(file);
  if (!why.empty()) return ignored(why);
  const size_t end = text.find('\n');
  const std::string bytes = end == std::string::npos ? "" : text.substr(end + 1);
  if (bytes.empty() || text.substr(0, end + 1) != head_of(key, bytes)) return ignored("it is damaged");
  return bytes;
}

std::string write_cached(const std::string& path, const std::string& key, const std::string& bytes) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (!error && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return folder.string() + ": " + std::strerror(errno);
  if (const std::string why = why_no_folder(path); !why.empty()) return why;
  try {
    ladder::write_file_atomically("the kernel cache", path,
                                  [&](std::ostream& out) { out << head_of(key, bytes) << bytes; });
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write, error);
  } catch (const std::exception& failure) {
    return ladder::one_line(failure.what());
  }
  return "";
}

}  // namespace lesson06::any_shape
