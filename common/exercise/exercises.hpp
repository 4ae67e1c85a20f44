/// @file
/// The exercises that there are, and what a learner has done of them.
#pragma once
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ladder {

enum class ExerciseKind {
  write,    ///< the marked lines are to be written
  find,     ///< they hold a mistake
  predict,  ///< they are numbers
  grow,     ///< a stage of the capstone: a whole file grows until it keeps the contract
};

/// "write", "find", "predict" or "grow".
std::string name_of(ExerciseKind kind);

/// What the stages of the capstone are called instead of by a lesson.
inline const std::string kCapstone = "capstone";
constexpr int kMostWordsOfContract = 80;
constexpr int kFirstAblated = 5;  ///< of its stages: `ladder ablate capstone` runs what was kept from here on

/// A folder NN_lesson/exercise/I_name with an exercise.md, a solution and a check (I is a letter where it is
/// short); or a stage of the capstone, NN_lesson/exercise/capstone/I_name.md. Stages share one file, which
/// begins empty and grows.
struct Exercise {
  std::string id;      ///< "03.1", "capstone.1"
  std::string lesson;  ///< "03_double_buffer", "capstone"
  std::string title;   ///< a sentence
  ExerciseKind kind;
  std::string trains;                          ///< completes "You can now ..."
  std::string page, header;                    ///< what to read, seen from the root of the source tree
  std::filesystem::path directory;             ///< absolute; of a stage there is none of that name
  std::vector<std::string> hints;              ///< from a nudge to nearly the answer
  std::vector<std::string> more_headers = {};  ///< of a stage: what else it cannot do without
  std::string contract = {};  ///< of a stage: what holds then, in at most kMostWordsOfContract words

  /// A lesson is called "03_double_buffer", "03" or "3".
  bool is_in_lesson(const std::string& name) const;
  /// The lesson and, after a point, the number, the folder or its name: "03.1", "3.1", "3.ring", "3.1_ring".
  bool is_called(const std::string& name) const;

  bool is_stage() const { return kind == ExerciseKind::grow; }
  int number() const;
  /// What the learner's file begins with: the solution with the starter between its marks. Of a stage,
  /// nothing.
  /// @throws BadInput naming the file that is missing, or what in it is
  std::string starter() const;
  /// The file that the learner edits, which git ignores.
  std::filesystem::path mine() const {
    return is_stage() ? directory.parent_path() / "my_gemm.cuh" : directory / "mine.cuh";
  }
  /// Of a stage that is done: the learner's file as it was then, for `ladder ablate capstone`.
  std::filesystem::path kept() const {
    return directory.parent_path() / ("my_gemm.stage_" + std::to_string(number()) + ".cuh");
  }
  /// Of a stage: the references of all stages, see exercise_file.hpp.
  std::filesystem::path stages() const { return directory.parent_path() / "stages.cuh"; }
};

/// All exercises of the source tree `root`, in the order in which they are meant to be done.
/// @throws BadInput naming the exercise.md that is wrong, and the field
std::vector<Exercise> find_exercises(const std::filesystem::path& root);

/// What the learner has done, by the ids of exercises; kept in a file.
struct LearnerState {
  std::set<std::string> done;
  std::map<std::string, int> hints_shown;
  std::map<std::string, int> attempts;  ///< of files that compiled, until one was right

  /// Nothing done, if there is no such file. @throws BadInput if it cannot be read
  static LearnerState load(const std::filesystem::path& file);
  void save(const std::filesystem::path& file) const;
};

}  // namespace ladder
