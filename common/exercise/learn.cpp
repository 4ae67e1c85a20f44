/// @file
/// The program `ladder learn`.
#include "common/exercise/learn.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <thread>

#include "common/host/base/subprocess.hpp"
#include "common/host/program/command_line.hpp"
#include "common/host/program/program.hpp"

namespace ladder {
namespace fs = std::filesystem;
namespace {

/// Waits at an mbarrier give up by themselves; a loop that never ends, or any other wait, has only this.
constexpr int kCheckLimitS = 60;
constexpr char kAllDone[] = "All exercises are done. Each lesson's README has more at its end.\n";
constexpr auto kWatchInterval = std::chrono::milliseconds(200);

/// Builds with CMake, which says nothing unless it fails, then runs.
bool build_and_run(const Exercise& exercise) {
  const fs::path build = LADDER_BINARY_DIR, log = build / "learn.log";
  const std::string program = "exercise_" + exercise.id;
  const SubprocessEnd built = run_subprocess({LADDER_CMAKE, "--build", build.string(), "--target", program},
                                             {.output = log, .errors_too = true});
  if (built.exit_code != kExitOk) {
    std::cout << std::ifstream(log).rdbuf() << "not yet: it does not compile" << std::endl;
    return false;
  }
  return passes(build / "bin" / program, std::cout, kCheckLimitS);
}

class Learning {
 public:
  Learning(const Workshop& workshop, std::ostream& out)
      : workshop_(workshop),
        out_(out),
        exercises_(find_exercises(workshop.root)),
        state_(LearnerState::load(workshop.state_file)) {}

  void list() const {
    std::string lesson;
    for (const Exercise& exercise : exercises_) {
      if (exercise.lesson != lesson) out_ << (lesson = exercise.lesson) << "\n";
      out_ << "  " << exercise.id << "  " << (is_done(exercise) ? "done" : "    ") << "  " << exercise.title
           << "\n";
    }
    out_ << "\n";
    say_what_is_next();
  }

  /// The exercise that is called so; for "next" the first that is not done, or null if all are.
  const Exercise* find(const std::string& name) const {
    if (name == "next") return next_exercise();
    for (const Exercise& exercise : exercises_)
      if (exercise.id == name) return &exercise;
    std::string known;
    for (const Exercise& exercise : exercises_) known += (known.empty() ? "" : ", ") + exercise.id;
    throw std::invalid_argument("'" + name + "': no such exercise; there are " + known + " and next");
  }

  void start(const Exercise& exercise, bool again) const {
    if (fs::exists(exercise.mine()) && !again) return;
    fs::copy_file(exercise.starter(), exercise.mine(), fs::copy_options::overwrite_existing);
    out_ << "Lesson: " << exercise.lesson << "/README.md\nEdit "
         << fs::relative(exercise.mine(), workshop_.root).string()
         << ", between the lines '>>> yours' and '<<<'.\n";
  }

  bool check(const Exercise& exercise) {
    out_ << exercise.id << " " << exercise.title << std::endl;
    if (!workshop_.check(exercise)) {
      out_ << "ladder learn " << exercise.id << " --hint gives a hint." << std::endl;
      return false;
    }
    state_.done.insert(exercise.id);
    state_.save(workshop_.state_file);
    say_what_is_next();
    return true;
  }

  /// Checks whenever the learner saves the file, until it is right.
  void watch(const Exercise& exercise) {
    for (;;) {
      const auto seen = fs::last_write_time(exercise.mine());
      if (check(exercise)) return;
      out_ << "waiting for the file to change; Ctrl-C ends" << std::endl;
      while (!changed_since(exercise.mine(), seen)) std::this_thread::sleep_for(kWatchInterval);
    }
  }

  /// All hints that were asked for before, and one more.
  void hint(const Exercise& exercise) {
    const std::vector<std::string> hints = hints_of(exercise);
    int& shown = state_.hints_shown[exercise.id];
    shown = std::min(shown + 1, static_cast<int>(hints.size()));
    for (int i = 0; i < shown; ++i)
      out_ << "Hint " << i + 1 << " of " << hints.size() << "\n" << hints[static_cast<size_t>(i)] << "\n";
    if (hints.empty()) out_ << "There are no hints for " << exercise.id << ".\n";
    state_.save(workshop_.state_file);
  }

 private:
  bool is_done(const Exercise& exercise) const { return state_.done.count(exercise.id) > 0; }

  void say_what_is_next() const {
    if (const Exercise* const next = next_exercise())
      out_ << "Next is " << next->id << ": ladder learn next\n";
    else
      out_ << kAllDone;
  }

  const Exercise* next_exercise() const {
    for (const Exercise& exercise : exercises_)
      if (!is_done(exercise)) return &exercise;
    return nullptr;
  }

  /// Editors may put a new file in place of the old one: for a moment there is none.
  static bool changed_since(const fs::path& file, fs::file_time_type seen) {
    std::error_code missing;
    const auto now = fs::last_write_time(file, missing);
    return !missing && now != seen;
  }

  const Workshop& workshop_;
  std::ostream& out_;
  std::vector<Exercise> exercises_;
  LearnerState state_;
};

int learn(const Workshop& workshop, std::ostream& out, int argc, char** argv) {
  CLI::App app("Leads through the exercises: lists them, checks what you wrote, gives hints", "ladder learn");
  std::string name;
  bool hint = false, watch = false, again = false;
  app.add_option("exercise", name, "For example 03.1, or next; none: list them all")->type_name("EXERCISE");
  app.add_flag("--hint", hint, "Give one more hint, and do not check");
  app.add_flag("--watch", watch, "Check again whenever you save your file, until it is right");
  app.add_flag("--again", again, "Throw your file away and begin with the starter");
  if (!parse_arguments(app, argc, argv)) return kExitOk;
  if (name.empty() && (hint || watch || again))
    throw std::invalid_argument("name an exercise, for example: ladder learn next --hint");

  Learning learning(workshop, out);
  if (name.empty()) {
    learning.list();
    return kExitOk;
  }
  const Exercise* const exercise = learning.find(name);
  if (!exercise) {
    out << kAllDone;
    return kExitOk;
  }
  if (hint) {
    learning.hint(*exercise);
    return kExitOk;
  }
  learning.start(*exercise, again);
  if (!watch) return learning.check(*exercise) ? kExitOk : kExitFailure;
  learning.watch(*exercise);
  return kExitOk;
}

}  // namespace

Workshop this_workshop() {
  const fs::path root = LADDER_SOURCE_DIR;
  return {root, root / ".learn.json", build_and_run};
}

bool passes(const fs::path& program, std::ostream& out, int limit_s) {
  const SubprocessEnd end = run_subprocess({program.string()}, {.limit = std::chrono::seconds(limit_s)});
  if (end.stopped_at_limit)
    out << "not yet: it had not ended after " << limit_s << " s and was stopped; does a thread wait for ever?"
        << std::endl;
  return !end.stopped_at_limit && end.exit_code == kExitOk;
}

int run_learn(const Workshop& workshop, std::ostream& out, int argc, char** argv) {
  return run_program("ladder learn", [&] { return learn(workshop, out, argc, argv); });
}

}  // namespace ladder
