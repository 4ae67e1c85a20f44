/// @file
/// `ladder learn`: leads a learner through the exercises. See `ladder learn --help`.
#pragma once
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

#include "common/exercise/exercises.hpp"

namespace ladder {

/// What became of it.
enum class Attempt { right, wrong, does_not_compile };

/// Where a learner works.
struct Workshop {
  std::filesystem::path root;        ///< the source tree with the lessons
  std::filesystem::path state_file;  ///< what is done
  /// Builds the check of an exercise with the learner's file, and runs it; both print.
  std::function<Attempt(const Exercise&)> check;
  /// Builds the climb with the learner's kernel, of any stage, and runs it; returns whether all rows are
  /// right.
  std::function<bool(const Exercise&)> climb = {};
  std::string ladder = "ladder";  ///< what to type in a shell to run this program, from where it was run
};

/// The source tree and the build directory that this program was made in.
Workshop this_workshop();

/// Runs the check of an exercise, which prints what it thinks. After `limit_s` seconds it is stopped, which
/// one line on `out` says: on a GPU a kernel may hang.
/// @returns whether it ended by itself, with success
bool passes(const std::filesystem::path& program, std::ostream& out, int limit_s);

/// All that `ladder learn` does; argv[0] is the word "learn".
/// @returns the exit code: 0; 1 where a check fails; 2 for bad input, after one line on stderr
int run_learn(const Workshop& workshop, std::ostream& out, int argc, char** argv);

}  // namespace ladder
