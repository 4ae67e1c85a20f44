/// @file
/// Parses the header of an .npy file.
#include "common/host/program/npy_header.hpp"

#include <cstdint>
#include <set>
#include <stdexcept>

#include "common/host/base/text.hpp"

namespace ladder {
namespace {

/// Reads the few kinds of Python literal that occur in a header, from left to right.
class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  /// True, and past it, if `token` comes next.
  bool accept(const std::string& token) {
    skip_blanks();
    if (text_.compare(position_, token.size(), token) != 0) return false;
    position_ += token.size();
    return true;
  }

  void expect(const std::string& token) {
    if (!accept(token)) throw std::invalid_argument("malformed header: expected " + token + " " + where());
  }

  std::string string() {
    skip_blanks();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, position_ + 1) : std::string::npos;
    if (end == std::string::npos)
      throw std::invalid_argument("malformed header: expected a string " + where());
    const std::string result = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return result;
  }

  bool boolean() {
    if (accept("True")) return true;
    if (accept("False")) return false;
    throw std::invalid_argument("malformed header: expected True or False " + where());
  }

  std::vector<uint64_t> tuple() {
    std::vector<uint64_t> numbers;
    expect("(");
    while (!accept(")")) {
      numbers.push_back(number(numbers.size()));
      if (accept(",")) continue;
      expect(")");
      break;
    }
    return numbers;
  }

  bool at_end() {
    skip_blanks();
    return position_ == text_.size();
  }

 private:
  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
  }

  /// @param axis for what is said of it
  uint64_t number(size_t axis) {
    skip_blanks();
    const size_t begin = position_;
    const bool is_negative = position_ < text_.size() && text_[position_] == '-';
    position_ += is_negative;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') ++position_;
    if (is_negative)
      throw std::invalid_argument("malformed header: axis " + std::to_string(axis) + " has the size " +
                                  text_.substr(begin, position_ - begin) + "; it must be 0 or more");
    return parse_number("malformed header: size", text_.substr(begin, position_ - begin), 0, UINT64_MAX);
  }

  std::string where() const { return "at character " + std::to_string(position_); }

  const std::string& text_;
  size_t position_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(const std::string& text) {
  NpyHeader header;
  std::set<std::string> seen;
  Parser parser(text);
  parser.expect("{");
  while (!parser.accept("}")) {
    const std::string key = parser.string();
    parser.expect(":");
    if (!seen.insert(key).second) throw std::invalid_argument("malformed header: '" + key + "' occurs twice");
    if (key == "descr") {
      header.descr = parser.string();
    } else if (key == "fortran_order") {
      header.fortran_order = parser.boolean();
    } else if (key == "shape") {
      header.shape = parser.tuple();
    } else {
      throw std::invalid_argument("malformed header: unknown key '" + key + "'");
    }
    if (parser.accept(",")) continue;
    parser.expect("}");
    break;
  }
  if (seen.size() != 3)
    throw std::invalid_argument("malformed header: descr, fortran_order or shape is missing");
  if (!parser.at_end()) throw std::invalid_argument("malformed header: text after the dictionary");
  return header;
}

}  // namespace ladder
