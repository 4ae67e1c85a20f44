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

std::string json_rows(const Json& document) {
  std::string text = "{";
  for (const auto& [name, value] : document.items()) {
    text += (text == "{" ? "\n" : ",\n") + Json(name).dump() + ":";
    if (!value.is_array() || value.empty()) {
      text += value.dump();
      continue;
    }
    const char* before = "[\n";
    for (const Json& row : value) {
      text += before + row.dump();
      before = ",\n";
    }
    text += "\n]";
  }
  return text + "\n}\n";
}

}  // namespace ladder
