/// @file
/// Regular expressions by std::regex.
#include "common/testing/patterns.hpp"

#include <map>
#include <regex>

namespace ladder::testing {
namespace {

/// Tests ask for few patterns, but of many lines.
const std::regex& compiled(const std::string& pattern) {
  static std::map<std::string, std::regex> known;
  const auto found = known.find(pattern);
  return found != known.end() ? found->second : known.emplace(pattern, pattern).first->second;
}

Match strings_of(const std::smatch& match) { return {match.begin(), match.end()}; }

}  // namespace

std::optional<Match> first_match(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, compiled(pattern)) ? std::optional(strings_of(match)) : std::nullopt;
}

std::optional<Match> whole_match(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_match(text, match, compiled(pattern)) ? std::optional(strings_of(match)) : std::nullopt;
}

std::vector<Match> all_matches(const std::string& text, const std::string& pattern) {
  std::vector<Match> found;
  for (std::sregex_iterator i(text.begin(), text.end(), compiled(pattern)), end; i != end; ++i)
    found.push_back(strings_of(*i));
  return found;
}

std::string replace_matches(const std::string& text, const std::string& pattern,
                            const std::string& replacement) {
  return std::regex_replace(text, compiled(pattern), replacement);
}

}  // namespace ladder::testing
