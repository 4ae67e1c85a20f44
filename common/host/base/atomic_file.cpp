/// @file
/// Writes a regular file whole or not at all, and a pipe or a device in place.
#include "common/host/base/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <streambuf>

namespace ladder {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  ///< as many as the kernel follows
constexpr mode_t kModeBits = 07777;

/// Hands bytes to a descriptor, and keeps the system's reason where that fails.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor) : descriptor_(descriptor) {
    setp(bytes_.data(), bytes_.data() + bytes_.size());
  }
  /// errno of what failed; 0 if nothing did
  int error() const { return error_; }

 protected:
  int_type overflow(int_type next) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(next, traits_type::eof())) sputc(traits_type::to_char_type(next));
    return traits_type::not_eof(next);
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (count <= epptr() - pptr()) return std::streambuf::xsputn(text, count);
    return sync() == 0 && hand_over(text, static_cast<size_t>(count)) ? count : 0;
  }
  int sync() override {
    const bool done = hand_over(pbase(), static_cast<size_t>(pptr() - pbase()));
    setp(bytes_.data(), bytes_.data() + bytes_.size());
    return done ? 0 : -1;
  }

 private:
  bool hand_over(const char* text, size_t count) {
    while (count > 0 && error_ == 0) {
      const ssize_t written = write(descriptor_, text, count);
      if (written >= 0) {
        text += written;
        count -= static_cast<size_t>(written);
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    return error_ == 0;
  }

  int descriptor_;
  int error_ = 0;
  std::array<char, 1 << 16> bytes_;
};

/// Where the bytes of a path go.
struct Place {
  fs::path file;        ///< what is replaced, at the end of all symbolic links
  bool replace = true;  ///< or written in place
  int open = -1;        ///< in place: this program's own descriptor of it, if there is one
  mode_t mode = 0;      ///< of the file that is replaced; 0: there is none
};

std::invalid_argument refusal(const std::string& argument, const std::string& path, const std::string& what) {
  return std::invalid_argument(argument + " '" + path + "': " + what);
}

std::runtime_error failure(const std::string& argument, const std::string& path, const char* what,
                           int error) {
  return std::runtime_error(argument + " '" + path + "': " + what + ": " +
                            (error ? std::strerror(error) : "its contents could not be made"));
}

/// This program's own stdout or stderr, if that is the file; else -1. Whoever replaced it would lose what was
/// printed there.
int open_descriptor_of(const struct stat& file) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open {};
    const bool same =
        fstat(descriptor, &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino;
    if (same && (fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY) return descriptor;
  }
  return -1;
}

/// What the symbolic link at `path` leads to, whether or not there is such a file; `path` if it is no link.
fs::path end_of_links(fs::path path) {
  std::error_code none;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(path, none)); ++i) {
    const fs::path target = fs::read_symlink(path, none);
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

fs::path temporary_beside(const fs::path& file) {
  // In the same directory, so that renaming never has to copy.
  return file.string() + ".part-" + std::to_string(getpid());
}

/// @throws std::invalid_argument for a path that cannot be written to
Place place_of(const std::string& argument, const std::string& path) {
  struct stat file {};
  const bool exists = !path.empty() && stat(path.c_str(), &file) == 0;
  if (path.empty() || (exists && S_ISDIR(file.st_mode)))
    throw refusal(argument, path, "must be the name of a file, not of a directory");
  // Links that lead in a circle, a name that is too long.
  if (!exists && errno != ENOENT && errno != ENOTDIR)
    throw refusal(argument, path, std::string("cannot be written: ") + std::strerror(errno));
  Place place;
  if (exists) place.open = open_descriptor_of(file);
  place.replace = !exists || (S_ISREG(file.st_mode) && place.open < 0);
  if (!place.replace) {
    place.file = path;
    if (place.open < 0 && access(path.c_str(), W_OK) != 0)
      throw refusal(argument, path, std::string("cannot be written: ") + std::strerror(errno));
    return place;
  }
  place.file = end_of_links(path);
  place.mode = exists ? file.st_mode & kModeBits : 0;
  const fs::path directory = place.file.has_parent_path() ? place.file.parent_path() : fs::path(".");
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored))
    throw refusal(argument, path, "the directory " + directory.string() + " does not exist");
  if (access(directory.c_str(), W_OK) != 0)
    throw refusal(argument, path, "cannot write to the directory " + directory.string());
  if (access(temporary_beside(place.file).c_str(), F_OK) != 0 && errno != ENOENT)
    throw refusal(argument, path, std::string("cannot be created: ") + std::strerror(errno));
  return place;
}

/// An open file, which is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return descriptor_; }
  /// Some file systems say only here that the disk is full. @returns errno, 0 if all is well
  int close() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    return ::close(descriptor) == 0 ? 0 : errno;
  }

 private:
  int descriptor_;
};

}  // namespace

void check_writable(const std::string& argument, const std::string& path) { place_of(argument, path); }

bool can_be_rewritten(const std::string& path) {
  struct stat file {};
  return stat(path.c_str(), &file) != 0 || (S_ISREG(file.st_mode) && open_descriptor_of(file) < 0);
}

void write_file_atomically(const std::string& argument, const std::string& path,
                           const std::function<void(std::ostream&)>& write) {
  const Place place = place_of(argument, path);
  const auto write_to = [&](int descriptor) {
    DescriptorBuffer buffer(descriptor);
    std::ostream stream(&buffer);
    write(stream);
    stream.flush();
    if (!stream) throw failure(argument, path, "cannot be written", buffer.error());
  };
  if (place.open >= 0) {
    (place.open == STDOUT_FILENO ? std::cout : std::cerr).flush();
    write_to(place.open);
    return;
  }
  const fs::path target = place.replace ? temporary_beside(place.file) : place.file;
  // A terminal that is written to does not become the one that this program obeys.
  const int flags = O_WRONLY | O_CLOEXEC | (place.replace ? O_CREAT | O_TRUNC | O_NOFOLLOW : O_NOCTTY);
  Descriptor file(open(target.c_str(), flags, 0666));
  if (file.get() < 0) throw failure(argument, path, "cannot be opened for writing", errno);
  const auto close = [&] {
    if (const int error = file.close()) throw failure(argument, path, "cannot be written", error);
  };
  if (!place.replace) {
    write_to(file.get());
    close();
    return;
  }
  try {
    if (place.mode && fchmod(file.get(), place.mode) != 0)
      throw failure(argument, path, "its permissions cannot be kept", errno);
    write_to(file.get());
    close();
    if (std::rename(target.c_str(), place.file.c_str()) != 0)
      throw failure(argument, path, "cannot be replaced", errno);
  } catch (...) {
    std::error_code ignored;
    fs::remove(target, ignored);
    throw;
  }
}

}  // namespace ladder
