/// @file
/// The exercises that there are, and what a learner has done of them.
#include "common/exercise/exercises.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>

#include "common/exercise/exercise_file.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/json.hpp"
#include "common/host/base/text.hpp"
#include "common/host/program/program.hpp"

namespace ladder {
namespace fs = std::filesystem;
namespace {

/// Whether the folder is called "03_double_buffer", "1_ring" or, as those of short exercises are, "a_parity".
bool is_numbered(const std::string& name) {
  const size_t end = name.find('_');
  if (end == std::string::npos || end == 0) return false;
  const auto first = static_cast<unsigned char>(name[0]);
  return std::isdigit(first) || (end == 1 && std::islower(first));
}

/// What is called so in `parent`, by name: what has a letter comes first. @param suffix "" of folders, ".md"
/// of files
std::vector<fs::path> numbered(const fs::path& parent, const std::string& suffix) {
  std::vector<fs::path> found;
  if (!fs::is_directory(parent)) return found;
  for (const auto& entry : fs::directory_iterator(parent)) {
    const fs::path& path = entry.path();
    if (entry.is_directory() == suffix.empty() && path.extension() == suffix && is_numbered(path.filename()))
      found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  std::stable_partition(found.begin(), found.end(),
                        [](const fs::path& path) { return std::isalpha(path.filename().string()[0]); });
  return found;
}

/// The fields of an exercise.md, with complaints that name it and the field.
class Description {
 public:
  explicit Description(const ExerciseFile& file) : file_(file) {}

  ExerciseKind kind() const {
    const std::string& name = file_.field("kind");
    for (const ExerciseKind kind : {ExerciseKind::write, ExerciseKind::find, ExerciseKind::predict})
      if (name == name_of(kind)) return kind;
    complain("kind", "must be write, find or predict, not '" + name + "'");
  }

  /// Of a stage of the capstone.
  std::string contract() const {
    if (file_.contract.empty()) file_.complain("has no section '## Contract'");
    const auto blanks = std::count(file_.contract.begin(), file_.contract.end(), ' ');
    if (blanks + 1 > kMostWordsOfContract)
      file_.complain("the contract has " + std::to_string(blanks + 1) + " words; " +
                     std::to_string(kMostWordsOfContract) + " are the limit");
    return file_.contract;
  }

  /// The end of a sentence, whose full stop is not part of it.
  std::string trains() const {
    const std::string& end = file_.field("trains");
    if (std::isupper(static_cast<unsigned char>(end.front())) || end.back() == '.')
      complain("trains", "must complete 'You can now ...', without a capital and a full stop");
    return end;
  }

  std::string existing_file(const std::string& field, const fs::path& root) const {
    return existing(field, file_.field(field), root);
  }

  /// None, where there is no such field; else their names, with blanks between.
  std::vector<std::string> existing_files(const std::string& field, const fs::path& root) const {
    if (file_.fields.count(field) == 0) return {};
    std::vector<std::string> names = split(file_.field(field), ' ');
    for (const std::string& name : names) existing(field, name, root);
    return names;
  }

 private:
  std::string existing(const std::string& field, const std::string& name, const fs::path& root) const {
    if (!fs::is_regular_file(root / name)) complain(field, "names '" + name + "', which is no file");
    return name;
  }

  [[noreturn]] void complain(const std::string& field, const std::string& complaint) const {
    file_.complain("\"" + field + "\" " + complaint);
  }

  const ExerciseFile& file_;
};

std::string without_zeros(const std::string& number) {
  return number.substr(std::min(number.find_first_not_of('0'), number.size()));
}

/// @param directory of a stage: where it would have one
Exercise read_exercise(const fs::path& root, const std::string& lesson, const fs::path& directory) {
  const bool is_stage = lesson == kCapstone;
  const ExerciseFile file =
      read_exercise_file(is_stage ? fs::path(directory).concat(".md") : directory / "exercise.md");
  const Description description(file);
  return {.id = number_of(lesson) + "." + number_of(directory.filename()),
          .lesson = lesson,
          .title = file.field("title"),
          .kind = is_stage ? ExerciseKind::grow : description.kind(),
          .trains = description.trains(),
          .page = description.existing_file("page", root),
          .header = description.existing_file("header", root),
          .directory = directory,
          .hints = file.hints,
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
  const ExerciseFile file = read_exercise_file(directory / "exercise.md");
  if (!file.starter) file.complain("has no section '## Starter'");
  const MarkedText solution = file.marked_solution();
  return solution.before + lines_of(file, *file.starter, solution.marked) + solution.after;
}

int Exercise::number() const { return std::stoi(number_of(directory.filename())); }

std::vector<Exercise> find_exercises(const fs::path& root) {
  std::vector<Exercise> exercises;
  for (const fs::path& lesson : numbered(root, "")) {
    for (const fs::path& directory : numbered(lesson / "exercise", ""))
      exercises.push_back(read_exercise(root, lesson.filename(), directory));
    for (fs::path stage : numbered(lesson / "exercise" / kCapstone, ".md"))
      exercises.push_back(read_exercise(root, kCapstone, stage.replace_extension()));
  }
  return exercises;
}

LearnerState LearnerState::load(const fs::path& file) {
  LearnerState state;
  if (!fs::exists(file)) return state;
  try {
    std::ifstream stream(file);
    const Json json = parse_json(stream);
    json.at("done").get_to(state.done);
    json.at("hints_shown").get_to(state.hints_shown);
    if (json.contains("attempts")) json.at("attempts").get_to(state.attempts);  // older files have none
  } catch (const Json::exception& error) {
    throw BadInput(file.string() + ": " + error.what());
  }
  return state;
}

void LearnerState::save(const fs::path& file) const {
  const Json json = {{"done", done}, {"hints_shown", hints_shown}, {"attempts", attempts}};
  write_file_atomically("what is done", file.string(),
                        [&](std::ostream& out) { out << json_text(json, 2) << "\n"; });
}

}  // namespace ladder
