/// @file
/// The program `ladder learn`.
#include "common/exercise/learn.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

#include "common/exercise/compile_errors.hpp"
#include "common/exercise/exercise_file.hpp"
#include "common/host/base/arguments.hpp"
#include "common/host/base/subprocess.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/program/program.hpp"

namespace ladder {
namespace fs = std::filesystem;
namespace {

/// Waits at an mbarrier give up by themselves; a loop that never ends, or any other wait, has only this.
constexpr int kCheckLimitS = 10;
constexpr auto kWatchInterval = std::chrono::milliseconds(200);
constexpr size_t kColumns = 100;

/// Builds with CMake, which says nothing unless it fails.
/// @param mine the learner's file, which the program includes
bool build(const std::string& program, const fs::path& mine) {
  const fs::path log = fs::path(LADDER_BINARY_DIR) / "learn.log";
  const auto errors = errors_of_build(program, log, LADDER_SOURCE_DIR, mine);
  if (!errors) return true;
  for (const std::string& error : *errors) std::cout << error << "\n";
  std::cout << "not yet: it does not compile; all that the compiler says is in " << log.string() << std::endl;
  return false;
}

fs::path program_file(const std::string& program) { return fs::path(LADDER_BINARY_DIR) / "bin" / program; }

Attempt build_and_check(const Exercise& exercise) {
  const std::string program = "exercise_" + exercise.id;
  if (!build(program, exercise.mine())) return Attempt::does_not_compile;
  return passes(program_file(program), std::cout, kCheckLimitS) ? Attempt::right : Attempt::wrong;
}

/// Races are checked where the device can; elsewhere the clock counts.
bool build_and_climb(const Exercise& stage) {
  if (!build(kCapstone, stage.mine())) return false;
  std::vector<std::string> command = {program_file(kCapstone).string()};
  if (on_cpu_device()) command.push_back("--check-races");
  return run_subprocess(command).exit_code == kExitOk;
}

/// `text` in lines that begin at column `begin` and end at column kColumns at the latest; the first has been
/// begun already.
std::string wrapped(const std::string& text, size_t begin) {
  std::string result;
  size_t column = begin;
  for (const std::string& word : split(text, ' ')) {
    if (column > begin && column + 1 + word.size() > kColumns) {
      result += "\n" + std::string(begin, ' ');
      column = begin;
    }
    if (column > begin) result += " ", ++column;
    result += word;
    column += word.size();
  }
  return result;
}

/// What a learner does with the lines between the marks.
std::string task_of(ExerciseKind kind) {
  switch (kind) {
    case ExerciseKind::write:
      return "Write the lines between '>>> yours' and '<<<'.";
    case ExerciseKind::find:
      return "One mistake is planted between '>>> yours' and '<<<': find it with what the check says, and "
             "mend it.";
    case ExerciseKind::predict:
      return "Work out the numbers between '>>> yours' and '<<<'; the check says how far off they are.";
    case ExerciseKind::grow:
      return "Let the file grow until it keeps the contract; what the stage before has may go.";
  }
  return "";
}

/// Where a file of the learner's is kept when the exercise is begun again: of mine.cuh mine.1.cuh, or the
/// next that is free.
fs::path place_to_keep(const fs::path& file) {
  for (int i = 1;; ++i) {
    fs::path place = file;
    place.replace_extension("." + std::to_string(i) + ".cuh");
    if (!fs::exists(place)) return place;
  }
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The lines of `left` and `right` beside each other, where both fit into half of the columns; else below
/// each other.
std::string beside(const std::string& left_title, const std::string& left, const std::string& right_title,
                   const std::string& right) {
  constexpr size_t kHalf = (kColumns - 3) / 2;
  const auto lines_under = [](const std::string& title, const std::string& text) {
    std::vector<std::string> lines = split(text, '\n');
    lines.pop_back();  // text ends with a line's end
    lines.insert(lines.begin(), title);
    return lines;
  };
  const std::vector<std::string> lefts = lines_under(left_title, left),
                                 rights = lines_under(right_title, right);
  size_t widest = 0;
  for (const auto& lines : {lefts, rights})
    for (const std::string& line : lines) widest = std::max(widest, line.size());
  if (widest > kHalf) return join(lefts, "\n") + "\n\n" + join(rights, "\n") + "\n";
  std::string text;
  for (size_t i = 0; i < std::max(lefts.size(), rights.size()); ++i) {
    const std::string right_line = i < rights.size() ? " " + rights[i] : "";
    text += fmt::format("{:{}} |{}\n", i < lefts.size() ? lefts[i] : "", kHalf, right_line);
  }
  return text;
}

class Learning {
 public:
  Learning(const Workshop& workshop, std::ostream& out)
      : workshop_(workshop),
        out_(out),
        exercises_(find_exercises(workshop.root)),
        state_(LearnerState::load(workshop.state_file)) {}

  /// @param name of a lesson; empty: all
  void list(const std::string& name) const {
    const auto is_listed = [&](const Exercise& exercise) {
      return name.empty() || exercise.is_in_lesson(name);
    };
    if (std::none_of(exercises_.begin(), exercises_.end(), is_listed))
      throw std::invalid_argument("--list: '" + name + "' is no lesson");
    out_ << std::string(28, ' ') << "attempts  hints\n";
    std::string lesson;
    for (const Exercise& exercise : exercises_) {
      if (!is_listed(exercise)) continue;
      if (exercise.lesson != lesson) out_ << (lesson = exercise.lesson) << "  " << progress(lesson) << "\n";
      const auto number_in = [&](const std::map<std::string, int>& numbers) {
        const auto found = numbers.find(exercise.id);
        return found == numbers.end() ? "" : std::to_string(found->second);
      };
      const std::string row = fmt::format("  {:10}  {:7}  {:4} {:>8}  {:>5}  ", exercise.id,
                                          name_of(exercise.kind), is_done(exercise) ? "done" : "",
                                          number_in(state_.attempts), number_in(state_.hints_shown));
      out_ << row << wrapped(exercise.title, row.size()) << "\n";
    }
    out_ << "\n" << progress("") << " done. ";
    if (const Exercise* const next = first_open(""))
      out_ << "Next is " << next->id << ": " << command("next") << "\n";
    else
      out_ << command("next") << " says what you can do now.\n";
  }

  /// The exercise that is called so; for "next" and for a lesson the first that is not done, or null if all
  /// are.
  const Exercise* find(const std::string& name) const {
    if (name == "next") return first_open("");
    for (const Exercise& exercise : exercises_) {
      if (exercise.is_called(name)) return &exercise;
      if (exercise.is_in_lesson(name)) return first_open(exercise.lesson);
    }
    throw std::invalid_argument("'" + name + "': no such exercise or lesson; ladder learn lists them");
  }

  /// What to say where find() has found nothing to do.
  void say_all_done(const std::string& name) const {
    for (const Exercise& exercise : exercises_)
      if (exercise.is_in_lesson(name)) {
        out_ << exercise.lesson << "  " << progress(exercise.lesson)
             << " done. To see one again name it, for example " << exercise.id << ".\n";
        return;
      }
    close();
  }

  /// Makes the learner's file, if there is none, and says what to do with it.
  void open(const Exercise& exercise) const {
    if (!fs::exists(exercise.mine())) {
      const std::string starter = exercise.starter();
      std::ofstream(exercise.mine()) << starter;
    }
    out_ << exercise.id << "  " << wrapped(exercise.title, exercise.id.size() + 2) << "\nRead  "
         << exercise.page << "\n      " << exercise.header;
    for (const std::string& header : exercise.more_headers) out_ << "\n      " << header;
    out_ << "\nEdit  " << from_root(exercise.mine()) << "\n" << wrapped(task_of(exercise.kind), 0) << "\n\n";
    if (exercise.is_stage()) out_ << wrapped(exercise.contract, 0) << "\n\n";
  }

  /// What turns the starter into the learner's file; of a stage, what was kept of the stage before.
  void show_diff(const Exercise& exercise) const {
    if (!fs::exists(exercise.mine()))
      throw std::invalid_argument("--diff: " + exercise.id + " is not begun yet");
    const Begun begun = begun_with(exercise);
    const std::string diff = line_diff(begun.text, text_of(exercise.mine())),
                      mine = from_root(exercise.mine());
    if (diff.empty())
      out_ << mine << " is as " << begun.name << ".\n";
    else
      out_ << "From " << begun.name << " to " << mine << ":\n\n" << diff;
  }

  /// What turns the reference of the stage before into that of this one.
  void show(const Exercise& stage) const {
    if (!stage.is_stage())
      throw std::invalid_argument("--show: only stages of the capstone have it, not " + stage.id);
    const std::string marked = text_of(stage.stages());
    const std::string before = stage.number() == 1 ? "" : stage_text(marked, stage.number() - 1);
    out_ << "From " << (stage.number() == 1 ? "an empty file" : "the stage before") << " to " << stage.id
         << ":\n\n"
         << line_diff(before, stage_text(marked, stage.number()));
  }

  /// As if the exercise had never been begun, but for copies of the learner's files.
  void begin_again(const Exercise& exercise) {
    if (fs::exists(exercise.mine())) {
      if (text_of(exercise.mine()) == exercise.starter())
        fs::remove(exercise.mine());
      else
        put_aside(exercise.mine());
    }
    for (const Exercise& other : exercises_)  // all stages share the file
      if (other.id == exercise.id || (other.is_stage() && exercise.is_stage())) {
        state_.done.erase(other.id);
        state_.hints_shown.erase(other.id);
        state_.attempts.erase(other.id);
        if (other.is_stage() && fs::exists(other.kept())) put_aside(other.kept());
      }
    state_.save(workshop_.state_file);
  }

  bool check(const Exercise& exercise) {
    out_.flush();
    if (exercise.is_stage() && text_of(exercise.mine()).find_first_not_of(" \n\r\t") == std::string::npos) {
      out_ << "not yet: the file is empty\n";
      offer_hints(exercise);
      return false;
    }
    const Attempt attempt = workshop_.check(exercise);
    count(exercise, attempt);
    if (attempt == Attempt::right) {
      state_.done.insert(exercise.id);
      state_.save(workshop_.state_file);
      show_solution(exercise);
      out_ << wrapped("You can now " + exercise.trains + ".", 0) << "\n";
      if (exercise.is_stage()) keep(exercise);
      say_what_is_next(exercise);
      return true;
    }
    if (const Exercise* const later = later_stage_done(exercise); later && is_done(exercise)) {
      out_ << exercise.id << " stays done, as " << later->id << " is done, too.\n";
      return false;
    }
    if (state_.done.erase(exercise.id) > 0) {
      state_.save(workshop_.state_file);
      out_ << exercise.id << " was done, and no longer is.\n";
    }
    if (attempt == Attempt::wrong) offer_hints(exercise);
    out_.flush();
    return false;
  }

  /// Runs the kernel that the capstone has come to, beside that of lesson 05.
  bool climb() const {
    for (const Exercise& exercise : exercises_)
      if (exercise.is_stage() && fs::exists(exercise.mine())) {
        out_.flush();
        return workshop_.climb(exercise);
      }
    throw std::invalid_argument("--run: there is no kernel yet; ladder learn capstone begins one");
  }

  /// Checks whenever the learner saves the file, until it is right.
  void watch(const Exercise& exercise) {
    for (;;) {
      const auto seen = fs::last_write_time(exercise.mine());
      if (check(exercise)) return;
      out_ << "waiting for the file to change; Ctrl-C ends\n" << std::endl;
      while (!changed_since(exercise.mine(), seen)) std::this_thread::sleep_for(kWatchInterval);
    }
  }

  void next_hint(const Exercise& exercise) {
    const std::vector<std::string>& hints = exercise.hints;
    const size_t shown = hints_shown(exercise, hints.size());
    if (shown == hints.size()) {
      out_ << no_hint_left(exercise, hints.size()) << "\n";
      return;
    }
    state_.hints_shown[exercise.id] = static_cast<int>(shown + 1);
    state_.save(workshop_.state_file);
    show_hint(hints, shown);
    const size_t left = hints.size() - shown - 1;
    out_ << (left == 0 ? no_hint_left(exercise, hints.size()) : std::to_string(left) + " left.") << "\n";
  }

  void hints_again(const Exercise& exercise) const {
    const std::vector<std::string>& hints = exercise.hints;
    const size_t shown = hints_shown(exercise, hints.size());
    for (size_t i = 0; i < shown; ++i) show_hint(hints, i);
    if (shown < hints.size())
      out_ << hints.size() - shown << " left: " << hint_command(exercise) << "\n";
    else
      out_ << (hints.empty() ? no_hints(exercise) : "None left.") << "\n";
  }

 private:
  bool is_done(const Exercise& exercise) const { return state_.done.count(exercise.id) > 0; }

  /// What the learner's file was before the exercise.
  struct Begun {
    std::string name, text;
  };
  Begun begun_with(const Exercise& exercise) const {
    if (!exercise.is_stage()) return {"the starter", exercise.starter()};
    Begun begun{"an empty file", ""};
    for (const Exercise& other : exercises_)
      if (other.is_stage() && other.number() < exercise.number() && fs::exists(other.kept()))
        begun = {from_root(other.kept()), text_of(other.kept())};
    return begun;
  }

  /// A file as it was before the exercise is no attempt, and neither is one that does not compile.
  void count(const Exercise& exercise, Attempt attempt) {
    if (attempt == Attempt::does_not_compile || is_done(exercise)) return;
    if (text_of(exercise.mine()) == begun_with(exercise).text) return;
    ++state_.attempts[exercise.id];
    state_.save(workshop_.state_file);
  }

  void show_solution(const Exercise& exercise) const {
    if (exercise.is_stage()) {
      out_ << command(exercise.id + " --show") << " shows what the reference has in its place.\n";
      return;
    }
    const std::string solution =
        read_exercise_file(exercise.directory / "exercise.md").marked_solution().marked;
    std::string answer;
    try {
      answer = split_at_marks(exercise.mine()).marked;
    } catch (const BadInput&) {
      // the learner took the marks away
    }
    if (answer == solution) return;
    if (answer.empty()) {
      out_ << "One solution\n" << solution << "\n";
      return;
    }
    out_ << beside("Your answer", answer, "One solution", solution) << "\n";
  }

  /// Null if there is none, or if the exercise is no stage.
  const Exercise* later_stage_done(const Exercise& exercise) const {
    for (const Exercise& other : exercises_)
      if (exercise.is_stage() && other.is_stage() && other.number() > exercise.number() && is_done(other))
        return &other;
    return nullptr;
  }

  /// Copies the learner's file as it is after the stage. The copy is never replaced: the file may have grown
  /// since, and be right still.
  void keep(const Exercise& stage) const {
    const std::string kept = from_root(stage.kept());
    if (!fs::exists(stage.kept())) {
      fs::copy_file(stage.mine(), stage.kept());
      out_ << "Your file is kept as " << kept
           << (stage.number() >= kFirstAblated ? ",\nfor ladder ablate capstone.\n" : ".\n");
    } else if (text_of(stage.kept()) != text_of(stage.mine())) {
      out_ << kept << " stays as it was when the stage was done first.\n";
    }
  }

  void put_aside(const fs::path& file) const {
    const fs::path place = place_to_keep(file);
    fs::rename(file, place);
    out_ << "Your file is kept as " << from_root(place) << ".\n";
  }

  /// Of the lesson; of all lessons, if it is empty.
  const Exercise* first_open(const std::string& lesson) const {
    for (const Exercise& exercise : exercises_)
      if (!is_done(exercise) && (lesson.empty() || exercise.lesson == lesson)) return &exercise;
    return nullptr;
  }

  /// "2 of 6" exercises of the lesson are done; of all lessons, if it is empty.
  std::string progress(const std::string& lesson) const {
    size_t all = 0, done = 0;
    for (const Exercise& exercise : exercises_)
      if (lesson.empty() || exercise.lesson == lesson) ++all, done += is_done(exercise);
    return std::to_string(done) + " of " + std::to_string(all);
  }

  /// The lesson's next exercise comes before those that were left out in others.
  void say_what_is_next(const Exercise& done) const {
    const Exercise* next = first_open(done.lesson);
    if (done.is_stage() && !next)
      out_ << command("capstone --run") << " runs your kernel beside lesson 05;\n"
           << workshop_.ladder << " ablate capstone says what its parts are worth, with what was kept of\n"
           << "stages 5 to 7. " << workshop_.ladder << " check runs any other kernel of yours.\n";
    if (!next) next = first_open("");
    if (!next) {
      out_ << "\n";
      return close();
    }
    out_ << done.lesson << "  " << progress(done.lesson) << " done. Next is " << next->id << ": "
         << command(next->id) << "\n";
  }

  void close() const {
    out_ << "All " << exercises_.size() << " exercises are done. You can now\n";
    for (const Exercise& exercise : exercises_)
      out_ << "  " << exercise.id << "  " << wrapped(exercise.trains, 8) << "\n";
    out_
        << "What is left has no starter and no hints: the changes at the end of each lesson's README, and a\n"
           "kernel of your own, which "
        << workshop_.ladder << " check runs.\n";
  }

  size_t hints_shown(const Exercise& exercise, size_t hints) const {
    const auto shown = state_.hints_shown.find(exercise.id);
    return shown == state_.hints_shown.end() ? 0 : std::min(static_cast<size_t>(shown->second), hints);
  }

  std::string command(const std::string& words) const { return workshop_.ladder + " learn " + words; }

  std::string hint_command(const Exercise& exercise) const { return command(exercise.id + " --hint"); }

  static std::string no_hints(const Exercise& exercise) {
    return "There are no hints for " + exercise.id + ".";
  }

  std::string no_hint_left(const Exercise& exercise, size_t hints) const {
    if (hints == 0) return no_hints(exercise);
    return "No hint is left; " + hint_command(exercise) + "s shows them again.";
  }

  void show_hint(const std::vector<std::string>& hints, size_t i) const {
    out_ << "Hint " << i + 1 << " of " << hints.size() << "\n" << hints[i] << "\n\n";
  }

  void offer_hints(const Exercise& exercise) const {
    const size_t hints = exercise.hints.size(), left = hints - hints_shown(exercise, hints);
    if (left > 0)
      out_ << hint_command(exercise) << " gives a hint; " << left << " left.\n";
    else
      out_ << no_hint_left(exercise, hints) << "\n";
  }

  std::string from_root(const fs::path& file) const {
    return file.lexically_relative(workshop_.root).string();
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
  Arguments arguments("Leads through the exercises: lists them, checks what you wrote, gives hints",
                      "ladder learn");
  std::string name;
  bool hint = false, hints = false, watch = false, again = false, show = false, run_it = false, diff = false,
       list = false;
  arguments.add_option("exercise", name, "EXERCISE", "For example 03.1; none: list them all");
  arguments.add_flag("--list", list, "List exercises, of a lesson or all, with attempts and hints used");
  arguments.add_flag("--hint", hint, "Give one more hint, and do not check");
  arguments.add_flag("--hints", hints, "Show the hints again that were given");
  arguments.add_flag("--watch", watch, "Check again whenever you save your file, until it is right");
  arguments.add_flag("--again", again, "Begin with the starter again; your file is kept as mine.1.cuh");
  arguments.add_flag("--diff", diff, "Show what you changed in the starter");
  arguments.add_flag("--show", show, "Show what is left to write of a stage of the capstone");
  arguments.add_flag("--run", run_it, "Run the capstone's kernel beside lesson 05's, with races checked");
  arguments.set_footer(
      "03.1 may be called 3.1 or, by its folder, 3.ring; 04.a is a short one. 3 is the first of lesson 03 "
      "that is not done,\n"
      "next the first of all. capstone is the next stage of a kernel of your own, from an empty file to\n"
      "lesson 05.");
  if (!arguments.parse(argc, argv)) return kExitOk;
  if (name.empty() && (hint || hints || watch || again || show || run_it || diff))
    throw std::invalid_argument("name an exercise, for example: ladder learn next --hint");
  if (list + hint + hints + diff + show + run_it + (watch || again) > 1)
    throw std::invalid_argument(
        "--list, --hint, --hints, --diff, --show, --run and what checks (--watch, --again) exclude each "
        "other");

  Learning learning(workshop, out);
  if (list || name.empty()) {
    learning.list(name);
    return kExitOk;
  }
  if (run_it) {
    if (name != kCapstone) throw std::invalid_argument("--run: only ladder learn capstone has it");
    return learning.climb() ? kExitOk : kExitFailure;
  }
  const Exercise* const exercise = learning.find(name);
  if (!exercise) {
    learning.say_all_done(name);
    return kExitOk;
  }
  if (hint) {
    learning.next_hint(*exercise);
  } else if (hints) {
    learning.hints_again(*exercise);
  } else if (diff) {
    learning.show_diff(*exercise);
  } else if (show) {
    learning.show(*exercise);
  } else {
    if (again) learning.begin_again(*exercise);
    learning.open(*exercise);
    if (!watch) return learning.check(*exercise) ? kExitOk : kExitFailure;
    learning.watch(*exercise);
  }
  return kExitOk;
}

}  // namespace

Workshop this_workshop() {
  const fs::path root = LADDER_SOURCE_DIR;
  const fs::path program = fs::read_symlink("/proc/self/exe");
  return {root, root / ".learn.json", build_and_check, build_and_climb, fs::proximate(program).string()};
}

bool passes(const fs::path& program, std::ostream& out, int limit_s) {
  const SubprocessEnd end = run_subprocess({program.string()}, {.limit = std::chrono::seconds(limit_s)});
  if (end.stopped_at_limit)
    out << "not yet: it had not ended after " << limit_s
        << " s and was stopped; does a loop or a wait never end?" << std::endl;
  return !end.stopped_at_limit && end.exit_code == kExitOk;
}

int run_learn(const Workshop& workshop, std::ostream& out, int argc, char** argv) {
  return run_program("ladder learn", [&] { return learn(workshop, out, argc, argv); });
}

}  // namespace ladder
