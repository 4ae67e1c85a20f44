/// @file
/// Regular expressions. A source that instantiates std::regex takes seconds to compile, so only patterns.cpp
/// does.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace ladder::testing {

/// What an ECMAScript pattern found: all of it first, then its groups; "" where a group took no part.
using Match = std::vector<std::string>;

/// The first place that matches, if there is one.
std::optional<Match> first_match(const std::string& text, const std::string& pattern);

/// Whether the text from its begin to its end matches.
std::optional<Match> whole_match(const std::string& text, const std::string& pattern);

/// All places that match, in their order.
std::vector<Match> all_matches(const std::string& text, const std::string& pattern);

/// The text with each place that matches replaced; in the replacement, $1 is the first group.
std::string replace_matches(const std::string& text, const std::string& pattern,
                            const std::string& replacement);

}  // namespace ladder::testing
