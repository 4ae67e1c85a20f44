/// @file
/// An exercise.md: all of an exercise but its check. CONTRIBUTING.md shows one. And the stages of a capstone.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ladder {

/// What may stand between the marks of a solution, as a section of the file says it.
struct Answer {
  enum class Form {
    whole,              ///< ```cpp: the lines themselves
    change,             ///< ```diff: what turns the solution's lines into them
    change_of_starter,  ///< ```diff of the starter
  };
  std::string name;               ///< "starter", or of a wrong answer what follows "## Wrong: "
  std::vector<std::string> says;  ///< lines that begin with "> ": the check must say each of these
  Form form = Form::whole;
  std::string code;  ///< lines
};

/// A source around the lines between `// >>> yours` and `// <<<`.
struct MarkedText {
  std::string before, marked, after;
};

struct ExerciseFile {
  std::filesystem::path path;
  std::map<std::string, std::string> fields;  ///< "title: ..." and the like, between two lines "---"
  std::vector<std::string> hints;             ///< "## Hint", from a nudge to nearly the answer
  std::string contract;                       ///< "## Contract", of a stage of the capstone, in one line
  std::string solution;                       ///< "## Solution", a source with marks; a stage has none
  std::optional<Answer> starter;              ///< "## Starter"; a stage has none
  std::vector<Answer> wrong;

  /// @throws BadInput if there is no solution, or if its marks are missing
  MarkedText marked_solution() const;
  const std::string& field(const std::string& name) const;
  [[noreturn]] void complain(const std::string& complaint) const;
};

/// @throws BadInput naming the file, and the line where it is none of the above
ExerciseFile read_exercise_file(const std::filesystem::path& path);

/// @throws BadInput naming the file that is missing, or whose marks are
MarkedText split_at_marks(const std::filesystem::path& file);
MarkedText split_at_marks(const std::string& text, const std::string& name);

/// `text` with a diff applied: lines that begin with a blank or '-' must be there once, one after the other;
/// those with a blank or '+' take their place. A line `...` separates changes.
/// @throws std::invalid_argument naming the first line of the change that is not there once
std::string patched(const std::string& text, const std::string& diff);

/// The lines of an answer. @param solution the lines that are marked there
/// @throws BadInput naming the exercise and the answer whose change cannot be made
std::string lines_of(const ExerciseFile& exercise, const Answer& answer, const std::string& solution);

// --- The stages of a capstone: one marked source from which the reference of each is taken ----------------

/// The lines of `marked` that belong to a stage: those whose `#if STAGE >= 3`, `#if STAGE == 4 || STAGE ==
/// 5`,
/// `#else` and `#endif` say so. Other lines of the preprocessor are kept as they are.
/// @throws std::invalid_argument naming a line whose condition is no comparison of STAGE with a number
std::string stage_text(const std::string& marked, int stage);

/// What turns the lines of `before` into those of `after`, as `diff -u` shows it: a line each, which begins
/// with a blank, "-" or "+", with at most `around` unchanged lines around changes, and "..." between.
std::string line_diff(const std::string& before, const std::string& after, size_t around = 2);

}  // namespace ladder
