/// @file
/// The exercises that there are, and what a learner has done of them.
#pragma once
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ladder {

/// A folder NN_lesson/exercise/I_name with a starter, a solution and a check.
struct Exercise {
  std::string id;                   ///< "03.1"
  std::string lesson;               ///< "03_double_buffer"
  std::string title;                ///< a sentence
  std::filesystem::path directory;  ///< absolute

  std::filesystem::path starter() const { return directory / "starter.cuh"; }
  /// The file that the learner edits: a copy of the starter that git ignores.
  std::filesystem::path mine() const { return directory / "mine.cuh"; }
};

/// All exercises of the source tree `root`, in the order in which they are meant to be done.
/// @throws BadInput where an exercise.json cannot be read
std::vector<Exercise> find_exercises(const std::filesystem::path& root);

/// The hints of an exercise, from a nudge to nearly the answer: the sections of its hints.md.
std::vector<std::string> hints_of(const Exercise& exercise);

/// What the learner has done, by the ids of exercises; kept in a file.
struct LearnerState {
  std::set<std::string> done;
  std::map<std::string, int> hints_shown;

  /// Nothing done, if there is no such file. @throws BadInput if it cannot be read
  static LearnerState load(const std::filesystem::path& file);
  void save(const std::filesystem::path& file) const;
};

}  // namespace ladder
