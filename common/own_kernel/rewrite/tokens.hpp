/// @file
/// The tokens of a preprocessed source, with the file and line that each comes from.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ladder {

struct Token {
  enum class Kind { word, number, string, character, sign, directive, end };

  Kind kind = Kind::sign;
  std::string_view text;  ///< one character of a sign, the whole line of a directive, as of a pragma
  size_t begin = 0;       ///< in the source
  unsigned line = 0;
  unsigned file = 0;    ///< in Tokens::files
  bool is_own = false;  ///< of a file that is rewritten

  size_t end() const { return begin + text.size(); }
  /// Is it this word or sign?
  bool is(std::string_view other) const { return text == other && kind != Kind::string; }
};

struct Tokens {
  std::vector<std::string> files;
  std::vector<Token> tokens;  ///< the last is of kind end
};

/// @param source with line markers, as g++ -E writes them; it must outlive the tokens
/// @param is_own says whether a file's tokens are rewritten, by its path and whether it is a system header
Tokens read_tokens(std::string_view source, const std::function<bool(const std::string&, bool)>& is_own);

}  // namespace ladder
