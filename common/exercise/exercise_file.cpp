/// @file
/// Reading an exercise.md, and the stages of a capstone.
#include "common/exercise/exercise_file.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "common/host/base/text.hpp"
#include "common/host/program/program.hpp"

namespace ladder {
namespace fs = std::filesystem;
namespace {

/// @throws BadInput if there is no such file
std::string read_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw BadInput(file.string() + ": no such file");
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Where the text after the only line that ends with `mark` begins.
size_t after_mark(const std::string& text, const std::string& mark, const std::string& name) {
  const size_t place = text.find(mark);
  if (place == std::string::npos || place != text.rfind(mark))
    throw BadInput(name + ": must have one line '" + mark.substr(0, mark.size() - 1) + "'");
  return place + mark.size();
}

std::string without_blank_ends(std::string text) {
  text.erase(0, text.find_first_not_of('\n'));
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

const std::string kSections = "'## Hint', '## Contract', '## Solution', '## Starter' or '## Wrong: a_name'";

/// Reads line by line: first the fields, then sections.
class ExerciseReader {
 public:
  explicit ExerciseReader(const fs::path& path) : stream_(read_text(path)) { file_.path = path; }

  ExerciseFile read() {
    if (!next() || line_ != "---") complain("must begin with a line '---'");
    while (next() && line_ != "---") read_field();
    if (line_ != "---") complain("must have a second line '---'");
    next();
    while (!at_end_) {
      if (line_.starts_with("## "))
        read_section(line_.substr(3));
      else if (line_.empty())
        next();
      else
        complain("must be a section: " + kSections);
    }
    return std::move(file_);
  }

 private:
  bool next() {
    at_end_ = !std::getline(stream_, line_);
    if (!at_end_) ++number_;
    return !at_end_;
  }

  void read_field() {
    const size_t colon = line_.find(": ");
    if (colon == std::string::npos || colon + 2 == line_.size()) complain("must be 'field: text'");
    if (!file_.fields.emplace(line_.substr(0, colon), line_.substr(colon + 2)).second)
      complain("has the field for the second time");
  }

  void read_section(const std::string& heading) {
    const std::string wrong = "Wrong: ";
    if (heading == "Hint") return file_.hints.push_back(read_prose());
    if (heading == "Contract") {
      file_.contract = one_line(read_prose());
    } else if (heading == "Solution") {
      if (!file_.solution.empty()) complain("is the second solution");
      file_.solution = read_solution();
    } else if (heading == "Starter") {
      if (file_.starter) complain("is the second starter");
      file_.starter = read_answer("starter");
    } else if (heading.starts_with(wrong)) {
      file_.wrong.push_back(read_answer(heading.substr(wrong.size())));
    } else {
      complain("must be " + kSections);
    }
  }

  std::string read_prose() {
    std::string text;
    while (next() && !line_.starts_with("## ")) text += line_ + "\n";
    return without_blank_ends(text);
  }

  std::string read_solution() {
    while (next() && line_.empty()) {
    }
    if (line_ != "```cpp") complain("must be ```cpp");
    const std::string code = read_block();
    while (next() && line_.empty()) {
    }
    return code;
  }

  /// The lines up to the end of a block of code.
  std::string read_block() {
    std::string code;
    while (next() && line_ != "```") code += line_ + "\n";
    if (at_end_) complain("must be a line '```'");
    return code;
  }

  Answer read_answer(const std::string& name) {
    Answer answer;
    answer.name = name;
    const int heading = number_;
    bool has_code = false;
    while (next() && !line_.starts_with("## ")) {
      if (line_.starts_with("> ")) answer.says.push_back(line_.substr(2));
      if (!line_.starts_with("```")) continue;
      if (has_code) complain("is the second code of " + name);
      has_code = true;
      answer.form = read_form();
      answer.code = read_block();
    }
    if (!has_code || answer.says.empty()) {
      number_ = heading;
      complain(name + (has_code ? " needs a line '> ...': what the check says of it" : " has no code"));
    }
    return answer;
  }

  Answer::Form read_form() const {
    if (line_ == "```cpp") return Answer::Form::whole;
    if (line_ == "```diff") return Answer::Form::change;
    if (line_ == "```diff of the starter") return Answer::Form::change_of_starter;
    complain("must be ```cpp, ```diff or ```diff of the starter");
  }

  [[noreturn]] void complain(const std::string& complaint) const {
    file_.complain(fmt::format("line {} {}", number_, complaint));
  }

  std::istringstream stream_;
  ExerciseFile file_;
  std::string line_;
  int number_ = 0;
  bool at_end_ = false;
};

using Lines = std::vector<std::string>;

Lines text_lines(const std::string& text) {
  Lines lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

/// Puts `to` in place of `from`, which must be in `text` once.
void replace_lines(Lines& text, const Lines& from, const Lines& to) {
  if (from.empty()) throw std::invalid_argument("a change needs a line that is there already");
  const auto place = std::search(text.begin(), text.end(), from.begin(), from.end());
  if (place == text.end() || std::search(place + 1, text.end(), from.begin(), from.end()) != text.end())
    throw std::invalid_argument("the change that begins with '" + from.front() + "' must fit exactly once");
  text.insert(text.erase(place, place + static_cast<ptrdiff_t>(from.size())), to.begin(), to.end());
}

}  // namespace

void ExerciseFile::complain(const std::string& complaint) const {
  throw BadInput(path.string() + ": " + complaint);
}

const std::string& ExerciseFile::field(const std::string& name) const {
  const auto found = fields.find(name);
  if (found == fields.end()) complain("\"" + name + "\" is missing");
  return found->second;
}

ExerciseFile read_exercise_file(const fs::path& path) { return ExerciseReader(path).read(); }

MarkedText ExerciseFile::marked_solution() const {
  if (solution.empty()) complain("has no section '## Solution'");
  return split_at_marks(solution, path.string() + ": the solution");
}

MarkedText split_at_marks(const fs::path& file) { return split_at_marks(read_text(file), file.string()); }

MarkedText split_at_marks(const std::string& text, const std::string& name) {
  const size_t begin = after_mark(text, "// >>> yours\n", name), mark = after_mark(text, "// <<<\n", name);
  const size_t end = text.rfind('\n', mark - 2) + 1;  // where the line of the second mark begins
  if (begin > end) throw BadInput(name + ": '// <<<' must come after '// >>> yours'");
  return {text.substr(0, begin), text.substr(begin, end - begin), text.substr(end)};
}

std::string patched(const std::string& text, const std::string& diff) {
  Lines lines = text_lines(text), from, to;
  for (const std::string& line : text_lines(diff + "...\n")) {
    if (line == "...") {
      replace_lines(lines, from, to);
      from.clear(), to.clear();
      continue;
    }
    const char sign = line.empty() ? ' ' : line[0];
    if (sign != ' ' && sign != '-' && sign != '+')
      throw std::invalid_argument("'" + line + "' must begin with a blank, '-' or '+'");
    const std::string code = line.empty() ? "" : line.substr(1);
    if (sign != '+') from.push_back(code);
    if (sign != '-') to.push_back(code);
  }
  return join(lines, "\n") + "\n";
}

std::string lines_of(const ExerciseFile& exercise, const Answer& answer, const std::string& solution) {
  if (answer.form == Answer::Form::whole) return answer.code;
  try {
    if (answer.form == Answer::Form::change) return patched(solution, answer.code);
    if (&answer == &*exercise.starter) exercise.complain("the starter cannot be a diff of the starter");
    return patched(lines_of(exercise, *exercise.starter, solution), answer.code);
  } catch (const std::invalid_argument& error) {
    exercise.complain(answer.name + ": " + error.what());
  }
}

// --- The stages of a capstone ------------------------------------------------------------------------------

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
