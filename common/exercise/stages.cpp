/// @file
/// The stages of a capstone.
#include "common/exercise/stages.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "common/host/base/text.hpp"

namespace ladder {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

bool compare(const std::string& line, int stage, const std::string& sign, int number) {
  if (sign == "==") return stage == number;
  if (sign == ">=") return stage >= number;
  if (sign == "<=") return stage <= number;
  throw std::invalid_argument("'" + line + "': a stage is compared by ==, >= or <=");
}

/// Of "#if STAGE >= 4 && STAGE <= 7".
bool holds(const std::string& line, int stage) {
  std::istringstream words(line.substr(line.find(' ')));
  bool result = false;
  for (std::string word, joined = "||"; !joined.empty();) {
    std::string sign;
    int number = 0;
    if (!(words >> word >> sign >> number) || word != "STAGE")
      throw std::invalid_argument("'" + line + "': must compare STAGE with a number");
    const bool one = compare(line, stage, sign, number);
    result = joined == "&&" ? result && one : result || one;
    joined.clear();
    words >> joined;
  }
  return result;
}

}  // namespace

std::string stage_text(const std::string& marked, int stage) {
  struct Condition {
    bool of_stage, holds;
  };
  std::vector<Condition> open;
  std::string text;
  for (const std::string& line : lines_of(marked)) {
    const bool shown =
        std::all_of(open.begin(), open.end(), [](const Condition& condition) { return condition.holds; });
    if (line.starts_with("#if")) {
      const bool of_stage = line.starts_with("#if STAGE");
      open.push_back({of_stage, !of_stage || holds(line, stage)});
      if (of_stage) continue;
    } else if (line.starts_with("#endif") && !open.empty()) {
      const bool of_stage = open.back().of_stage;
      open.pop_back();
      if (of_stage) continue;
    } else if (line.starts_with("#else") && !open.empty() && open.back().of_stage) {
      open.back().holds = !open.back().holds;
      continue;
    }
    const bool second_blank = line.empty() && text.size() > 1 && text.substr(text.size() - 2) == "\n\n";
    if (shown && !second_blank) text += line + "\n";
  }
  return text;
}

std::string line_diff(const std::string& before, const std::string& after, size_t around) {
  const std::vector<std::string> old_lines = lines_of(before), new_lines = lines_of(after);
  // common[i][j]: the longest common subsequence of old_lines[i ..] and new_lines[j ..].
  std::vector<std::vector<size_t>> common(old_lines.size() + 1, std::vector<size_t>(new_lines.size() + 1));
  for (size_t i = old_lines.size(); i-- > 0;)
    for (size_t j = new_lines.size(); j-- > 0;)
      common[i][j] = old_lines[i] == new_lines[j] ? common[i + 1][j + 1] + 1
                                                  : std::max(common[i + 1][j], common[i][j + 1]);
  std::vector<std::string> all;
  for (size_t i = 0, j = 0; i < old_lines.size() || j < new_lines.size();) {
    if (i < old_lines.size() && j < new_lines.size() && old_lines[i] == new_lines[j])
      all.push_back(" " + old_lines[i]), ++i, ++j;
    else if (j == new_lines.size() || (i < old_lines.size() && common[i + 1][j] >= common[i][j + 1]))
      all.push_back("-" + old_lines[i++]);
    else
      all.push_back("+" + new_lines[j++]);
  }
  std::string text;
  bool left_out = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto begin = all.begin() + (i < around ? 0 : i - around),
               end = all.begin() + std::min(all.size(), i + around + 1);
    const bool near_change = std::any_of(begin, end, [](const std::string& line) { return line[0] != ' '; });
    if (near_change) text += (left_out && !text.empty() ? "...\n" : "") + all[i] + "\n";
    left_out = !near_change;
  }
  return text;
}

}  // namespace ladder
