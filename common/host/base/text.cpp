/// @file
/// Splitting, joining and parsing the words of a command line.
#include "common/host/base/text.hpp"

#include <fmt/core.h>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

namespace ladder {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts, const std::string& separator) {
  std::string result;
  for (size_t i = 0; i < parts.size(); ++i) result += (i ? separator : "") + parts[i];
  return result;
}

uint64_t parse_number(const std::string& argument, const std::string& text, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  // A number too large for 64 bits is an error of its own to from_chars, but breaks the same rule.
  if (error != std::errc() || stop != end || value < low || value > high)
    throw std::invalid_argument(
        fmt::format("{} '{}': must be a whole number from {} to {}", argument, text, low, high));
  return value;
}

std::string number_of(const std::string& name) { return name.substr(0, name.find('_')); }

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string wrapped(const std::string& text, size_t width, const std::string& new_line) {
  std::string result;
  size_t length = 0;  // of the last line
  for (const std::string& word : split(text, ' ')) {
    const bool fits = length == 0 || length + 1 + word.size() <= width;
    if (!result.empty()) result += fits ? " " : new_line;
    length = fits ? length + (length > 0) + word.size() : word.size();
    result += word;
  }
  return result;
}

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

}  // namespace ladder
