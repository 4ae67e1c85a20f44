/// @file
/// Calls nlohmann's parser and writer.
#include "common/host/base/json.hpp"

#include <istream>
#include <iterator>

namespace ladder {

Json parse_json(const std::string& text) { return Json::parse(text); }

Json parse_json(std::istream& file) {
  return parse_json(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
}

std::string json_text(const Json& json, int indent) { return json.dump(indent); }

}  // namespace ladder
