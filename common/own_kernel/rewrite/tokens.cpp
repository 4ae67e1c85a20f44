/// @file
/// The tokens of a preprocessed source.
#include "common/own_kernel/rewrite/tokens.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace ladder {
namespace {

bool begins_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c & 0x80;
}
bool is_word(char c) { return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)); }

class Reader {
 public:
  Reader(std::string_view source, const std::function<bool(const std::string&, bool)>& is_own)
      : source_(source), is_own_(is_own) {
    result_.files.emplace_back();
  }

  Tokens read() {
    result_.tokens.reserve(source_.size() / 4);
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\n') {
        ++at_, ++line_, begins_line_ = true;
      } else if (std::isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else if (c == '#' && begins_line_) {
        read_directive();
      } else {
        begins_line_ = false;
        read_token();
      }
    }
    add(Token::Kind::end, at_);
    return std::move(result_);
  }

 private:
  void add(Token::Kind kind, size_t end) {
    result_.tokens.push_back({kind, source_.substr(at_, end - at_), at_, line_, file_, owns_});
    line_ += static_cast<unsigned>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                              source_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    at_ = end;
  }

  void read_directive() {
    const size_t end = std::min(source_.find('\n', at_), source_.size());
    std::string_view text = source_.substr(at_ + 1, end - at_ - 1);
    const size_t number = text.find_first_not_of(' ');
    if (number == text.npos || !std::isdigit(static_cast<unsigned char>(text[number]))) {
      if (source_.compare(at_, 7, "#pragma") == 0) return add(Token::Kind::directive, end);
      at_ = end;
      return;
    }
    line_ =
        static_cast<unsigned>(std::strtoul(text.data() + number, nullptr, 10)) - 1;  // the line that follows
    const size_t open = text.find('"'), close = text.rfind('"');
    if (open != text.npos && close > open) {
      const std::string name(text.substr(open + 1, close - open - 1));
      const bool is_system = text.find('3', close) != text.npos;
      if (name != result_.files[file_]) {
        const auto found = std::find(result_.files.begin(), result_.files.end(), name);
        file_ = static_cast<unsigned>(found - result_.files.begin());
        if (found == result_.files.end()) result_.files.push_back(name);
        owns_ = is_own_(name, is_system);
      }
    }
    at_ = end;
  }

  void read_token() {
    const char c = source_[at_];
    size_t end = at_ + 1;
    if (begins_word(c)) {
      while (end < source_.size() && is_word(source_[end])) ++end;
      const char next = end < source_.size() ? source_[end] : ' ';
      if ((next == '"' || next == '\'') && is_prefix(source_.substr(at_, end - at_)))
        return read_quoted(end, source_[end - 1] == 'R');
      return add(Token::Kind::word, end);
    }
    if (std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '.' && end < source_.size() && std::isdigit(static_cast<unsigned char>(source_[end])))) {
      while (
          end < source_.size() &&
          (is_word(source_[end]) || source_[end] == '.' || source_[end] == '\'' ||
           ((source_[end] == '+' || source_[end] == '-') &&
            std::string_view("eEpP").find(source_[end - 1]) != std::string_view::npos && is_exponent(end))))
        ++end;
      return add(Token::Kind::number, end);
    }
    if (c == '"' || c == '\'') return read_quoted(at_, false);
    add(Token::Kind::sign, end);
  }

  /// "0xe+1" is a sum.
  bool is_exponent(size_t sign) const {
    const bool is_hex = source_.substr(at_, 2) == "0x" || source_.substr(at_, 2) == "0X";
    return !is_hex || source_[sign - 1] == 'p' || source_[sign - 1] == 'P';
  }

  static bool is_prefix(std::string_view text) {
    return text == "u8" || text == "u" || text == "U" || text == "L" || text == "R" || text == "u8R" ||
           text == "uR" || text == "UR" || text == "LR";
  }

  void read_quoted(size_t quote, bool is_raw) {
    size_t end = quote + 1;
    if (is_raw) {
      const size_t open = source_.find('(', quote);
      const std::string close = ")" + std::string(source_.substr(quote + 1, open - quote - 1)) + "\"";
      end = std::min(source_.find(close, open), source_.size() - close.size()) + close.size();
    } else {
      while (end < source_.size() && source_[end] != source_[quote] && source_[end] != '\n')
        end += source_[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, source_.size());
    }
    const bool has_suffix = source_.substr(end, 2) != "__";  // `extern "C"__global__` has none
    while (has_suffix && end < source_.size() && is_word(source_[end])) ++end;
    add(source_[quote] == '"' ? Token::Kind::string : Token::Kind::character, end);
  }

  const std::string_view source_;
  const std::function<bool(const std::string&, bool)>& is_own_;
  Tokens result_;
  size_t at_ = 0;
  unsigned line_ = 1, file_ = 0;
  bool owns_ = false, begins_line_ = true;
};

}  // namespace

Tokens read_tokens(std::string_view source, const std::function<bool(const std::string&, bool)>& is_own) {
  return Reader(source, is_own).read();
}

}  // namespace ladder
