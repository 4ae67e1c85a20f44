/// @file
/// Writes a regular file whole or not at all, and a pipe or a device in place.
#pragma once
#include <functional>
#include <ostream>
#include <string>

namespace ladder {

/// Calls `write` with a stream onto a temporary file beside `path`, and renames that to `path` when all is
/// written. Of a symbolic link its target is replaced; the link stays. What is no regular file (a pipe, a
/// device, /dev/stdout) cannot be replaced: it is written to where it is.
/// @param argument what the reader called the path, for messages
/// @throws std::invalid_argument as check_writable() does
/// @throws std::runtime_error with the system's reason if writing fails, for example on a full disk; then
/// a file that was there stays, and nothing else is left behind
void write_file_atomically(const std::string& argument, const std::string& path,
                           const std::function<void(std::ostream&)>& write);

/// Tells before a long run whether its results could be written.
/// @throws std::invalid_argument if `path` is a directory, its directory does not exist, or the reader may
/// not write there
void check_writable(const std::string& argument, const std::string& path);

/// Can a second version take the place of the first? Not in a pipe or a device, which keep both.
bool can_be_rewritten(const std::string& path);

}  // namespace ladder
