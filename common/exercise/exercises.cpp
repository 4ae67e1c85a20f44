/// @file
/// The exercises that there are, and what a learner has done of them.
#include "common/exercise/exercises.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/host/base/atomic_file.hpp"
#include "common/host/base/text.hpp"
#include "common/host/program/program.hpp"

namespace ladder {
namespace fs = std::filesystem;
namespace {

nlohmann::json read_json(const fs::path& file) {
  std::ifstream stream(file);
  try {
    return nlohmann::json::parse(stream);
  } catch (const nlohmann::json::exception& error) {
    throw BadInput(file.string() + ": " + error.what());
  }
}

/// Folders in `parent`, by name. "03_double_buffer" and "1_ring" begin with their number.
std::vector<fs::path> numbered_folders(const fs::path& parent) {
  std::vector<fs::path> folders;
  if (!fs::is_directory(parent)) return folders;
  for (const auto& entry : fs::directory_iterator(parent)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.find('_') != std::string::npos && name[0] >= '0' && name[0] <= '9')
      folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

std::vector<Exercise> find_exercises(const fs::path& root) {
  std::vector<Exercise> exercises;
  for (const fs::path& lesson : numbered_folders(root))
    for (const fs::path& directory : numbered_folders(lesson / "exercise")) {
      const fs::path description = directory / "exercise.json";
      const nlohmann::json json = read_json(description);
      if (!json.contains("title")) throw BadInput(description.string() + ": has no title");
      exercises.push_back({number_of(lesson.filename()) + "." + number_of(directory.filename()),
                           lesson.filename().string(), json.at("title").get<std::string>(), directory});
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
  return hints;
}

LearnerState LearnerState::load(const fs::path& file) {
  LearnerState state;
  if (!fs::exists(file)) return state;
  const nlohmann::json json = read_json(file);
  try {
    json.at("done").get_to(state.done);
    json.at("hints_shown").get_to(state.hints_shown);
  } catch (const nlohmann::json::exception& error) {
    throw BadInput(file.string() + ": " + error.what());
  }
  return state;
}

void LearnerState::save(const fs::path& file) const {
  const nlohmann::json json = {{"done", done}, {"hints_shown", hints_shown}};
  write_file_atomically("what is done", file.string(),
                        [&](std::ostream& out) { out << json.dump(2) << "\n"; });
}

}  // namespace ladder
