/// @file
/// Splitting, joining and parsing the words of a command line.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ladder {

constexpr int kTerminalColumns = 100;  ///< that output fits into, where words allow it

/// The parts of `text` between the separators; "a,,b" has an empty one in the middle, "" is one empty part.
std::vector<std::string> split(const std::string& text, char separator);

/// The inverse of split.
std::string join(const std::vector<std::string>& parts, const std::string& separator);

/// A decimal number in [low, high], without sign, blanks or anything behind it.
/// @throws std::invalid_argument naming `argument`, the text and the rule.
uint64_t parse_number(const std::string& argument, const std::string& text, uint64_t low, uint64_t high);

/// "03" of "03_double_buffer".
std::string number_of(const std::string& name);

/// `value` with the given number of digits behind the point.
std::string fixed(double value, int digits);

/// `text` in lines of at most `width` characters, where words allow it, with `new_line` between them.
std::string wrapped(const std::string& text, size_t width, const std::string& new_line);

/// `text` with line breaks turned into blanks: one message, one line.
std::string one_line(std::string text);

}  // namespace ladder
