/// @file
/// The exercises that there are, and what a learner has done of them.
#include "common/exercise/exercises.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>

#include "common/host/base/atomic_file.hpp"
#include "common/host/base/json.hpp"
#include "common/host/base/text.hpp"
#include "common/host/program/program.hpp"

namespace ladder {
namespace fs = std::filesystem;
namespace {

Json read_json(const fs::path& file) {
  std::ifstream stream(file);
  try {
    return parse_json(stream);
  } catch (const Json::exception& error) {
    throw BadInput(file.string() + ": " + error.what());
  }
}

/// Whether the folder is called "03_double_buffer", "1_ring" or, as those of short exercises are, "a_parity".
bool is_numbered(const std::string& name) {
  const size_t end = name.find('_');
  if (end == std::string::npos || end == 0) return false;
  const auto first = static_cast<unsigned char>(name[0]);
  return std::isdigit(first) || (end == 1 && std::islower(first));
}

/// Folders in `parent`, by name: those with letters come first.
std::vector<fs::path> numbered_folders(const fs::path& parent) {
  std::vector<fs::path> folders;
  if (!fs::is_directory(parent)) return folders;
  for (const auto& entry : fs::directory_iterator(parent)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && is_numbered(name)) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  std::stable_partition(folders.begin(), folders.end(),
                        [](const fs::path& folder) { return std::isalpha(folder.filename().string()[0]); });
  return folders;
}

/// An exercise.json, with complaints that name it and the field.
class Description {
 public:
  explicit Description(fs::path file) : file_(std::move(file)), json_(read_json(file_)) {}

  std::string text(const std::string& field) const {
    const auto found = json_.find(field);
    if (found == json_.end()) complain(field, "is missing");
    if (!found->is_string() || found->get<std::string>().empty()) complain(field, "must be a text");
    return *found;
  }

  ExerciseKind kind() const {
    const std::string name = text("kind");
    for (const ExerciseKind kind : {ExerciseKind::write, ExerciseKind::find, ExerciseKind::predict})
      if (name == name_of(kind)) return kind;
    complain("kind", "must be write, find or predict, not '" + name + "'");
  }

  /// Of a stage of the capstone.
  std::string contract() const {
    const std::string words = text("contract");
    const auto blanks = std::count(words.begin(), words.end(), ' ');
    if (blanks + 1 > kMostWordsOfContract)
      complain("contract", "has " + std::to_string(blanks + 1) + " words; " +
                               std::to_string(kMostWordsOfContract) + " are the limit");
    return words;
  }

  /// The end of a sentence, whose full stop is not part of it.
  std::string trains() const {
    const std::string end = text("trains");
    if (std::isupper(static_cast<unsigned char>(end.front())) || end.back() == '.')
      complain("trains", "must complete 'You can now ...', without a capital and a full stop");
    return end;
  }

  std::string existing_file(const std::string& field, const fs::path& root) const {
    return existing(field, text(field), root);
  }

  /// None, where there is no such field.
  std::vector<std::string> existing_files(const std::string& field, const fs::path& root) const {
    const auto found = json_.find(field);
    if (found == json_.end()) return {};
    std::vector<std::string> names;
    if (!found->is_array()) complain(field, "must be a list");
    for (const Json& name : *found) {
      if (!name.is_string()) complain(field, "must be a list of texts");
      names.push_back(existing(field, name, root));
    }
    return names;
  }

 private:
  std::string existing(const std::string& field, const std::string& name, const fs::path& root) const {
    if (!fs::is_regular_file(root / name)) complain(field, "names '" + name + "', which is no file");
    return name;
  }

  [[noreturn]] void complain(const std::string& field, const std::string& complaint) const {
    throw BadInput(file_.string() + ": \"" + field + "\" " + complaint);
  }

  fs::path file_;
  Json json_;
};

std::string without_zeros(const std::string& number) {
  return number.substr(std::min(number.find_first_not_of('0'), number.size()));
}

/// @throws BadInput if there is no such file
std::string read_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw BadInput(file.string() + ": no such file");
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Where the text after the only line that ends with `mark` begins.
size_t after_mark(const std::string& text, const std::string& mark, const fs::path& file) {
  const size_t place = text.find(mark);
  if (place == std::string::npos || place != text.rfind(mark))
    throw BadInput(file.string() + ": must have one line '" + mark.substr(0, mark.size() - 1) + "'");
  return place + mark.size();
}

Exercise read_exercise(const fs::path& root, const std::string& lesson, const fs::path& directory) {
  const Description description(directory / "exercise.json");
  const bool is_stage = lesson == kCapstone;
  return {.id = number_of(lesson) + "." + number_of(directory.filename()),
          .lesson = lesson,
          .title = description.text("title"),
          .kind = is_stage ? ExerciseKind::grow : description.kind(),
          .trains = description.trains(),
          .page = description.existing_file("page", root),
          .header = description.existing_file("header", root),
          .directory = directory,
          .more_headers = description.existing_files("more_headers", root),
          .contract = is_stage ? description.contract() : ""};
}

}  // namespace

std::string name_of(ExerciseKind kind) {
  switch (kind) {
    case ExerciseKind::write:
      return "write";
    case ExerciseKind::find:
      return "find";
    case ExerciseKind::predict:
      return "predict";
    case ExerciseKind::grow:
      return "grow";
  }
  return "";
}

bool Exercise::is_in_lesson(const std::string& name) const {
  return name == lesson || without_zeros(name) == without_zeros(number_of(lesson));
}

bool Exercise::is_called(const std::string& name) const {
  const size_t point = name.find('.');
  if (point == std::string::npos || !is_in_lesson(name.substr(0, point))) return false;
  const std::string part = name.substr(point + 1), folder = directory.filename();
  return part == folder || without_zeros(part) == number_of(folder) ||
         part == folder.substr(folder.find('_') + 1);
}

std::string Exercise::starter() const {
  if (is_stage()) return "";
  const fs::path file = directory / "solution.cuh";
  const std::string solution = read_text(file);
  const size_t begin = after_mark(solution, "// >>> yours\n", file),
               mark = after_mark(solution, "// <<<\n", file);
  const size_t end = solution.rfind('\n', mark - 2) + 1;  // where the line of the second mark begins
  if (begin > end) throw BadInput(file.string() + ": '// <<<' must come after '// >>> yours'");
  return solution.substr(0, begin) + read_text(directory / "starter.inc") + solution.substr(end);
}

int Exercise::number() const { return std::stoi(number_of(directory.filename())); }

std::vector<Exercise> find_exercises(const fs::path& root) {
  std::vector<Exercise> exercises;
  for (const fs::path& lesson : numbered_folders(root)) {
    for (const fs::path& directory : numbered_folders(lesson / "exercise"))
      exercises.push_back(read_exercise(root, lesson.filename(), directory));
    for (const fs::path& directory : numbered_folders(lesson / "exercise" / kCapstone))
      exercises.push_back(read_exercise(root, kCapstone, directory));
  }
  return exercises;
}

std::vector<std::string> hints_of(const Exercise& exercise) {
  std::vector<std::string> hints;
  std::ifstream file(exercise.directory / "hints.md");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("## ", 0) == 0)
      hints.emplace_back();
    else if (!hints.empty() && !(hints.back().empty() && line.empty()))
      hints.back() += line + "\n";
  for (std::string& hint : hints) hint.erase(hint.find_last_not_of('\n') + 1);
  return hints;
}

LearnerState LearnerState::load(const fs::path& file) {
  LearnerState state;
  if (!fs::exists(file)) return state;
  const Json json = read_json(file);
  try {
    json.at("done").get_to(state.done);
    json.at("hints_shown").get_to(state.hints_shown);
  } catch (const Json::exception& error) {
    throw BadInput(file.string() + ": " + error.what());
  }
  return state;
}

void LearnerState::save(const fs::path& file) const {
  const Json json = {{"done", done}, {"hints_shown", hints_shown}};
  write_file_atomically("what is done", file.string(),
                        [&](std::ostream& out) { out << json_text(json, 2) << "\n"; });
}

}  // namespace ladder
