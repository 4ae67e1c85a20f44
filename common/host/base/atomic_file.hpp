/// @file
/// Writes a file whole or not at all.
#pragma once
#include <functional>
#include <ostream>
#include <string>

namespace ladder {

/// Calls `write` with a stream onto a temporary file beside `path`, and renames that to `path` when all is
/// written.
/// @param argument what the reader called the path, for messages
/// @throws std::invalid_argument if the file cannot be created or written; then nothing is left behind
void write_file_atomically(const std::string& argument, const std::string& path,
                           const std::function<void(std::ostream&)>& write);

/// Tells before a long run whether its results could be written.
/// @throws std::invalid_argument if `path` is a directory or its directory does not exist
void check_writable(const std::string& argument, const std::string& path);

}  // namespace ladder
