/// @file
/// JSON. nlohmann's parser and writer take seconds to compile, so only json.cpp does.
#pragma once
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>

namespace ladder {

/// The fields of an object stay in the order in which they were added.
using Json = nlohmann::ordered_json;

/// @throws Json::exception
Json parse_json(const std::string& text);
/// The same of a file from where it stands to its end.
Json parse_json(std::istream& file);

/// On one line; with `indent` each field has a line, and each level is indented by that many more blanks.
std::string json_text(const Json& json, int indent = -1);
/// An object as records are kept: a line for each field, and where a field is a list a line for each of its
/// elements, so that a run is a line. common/results/script.py writes the same.
std::string json_rows(const Json& document);

}  // namespace ladder
