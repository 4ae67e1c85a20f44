/// @file
/// What a lesson tells the shared module about itself: its knobs, the rungs it adds to the ladder, and how to
/// launch it.
#pragma once
#include <cuda_runtime.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/cuda/resources.hpp"
#include "common/host/device/compiled_code.hpp"
#include "common/host/problem/gemm.hpp"
#include "common/host/problem/shape.hpp"

namespace ladder {

/// A choice that the reader may make on the command line, for example `--slots 3`. `choices` lists every
/// allowed value; the first is the default. A list on the command line (`--slots 2,3,4`) becomes one table
/// row for each value.
struct Knob {
  std::string name;
  std::string help;
  std::vector<std::string> choices;
};

/// One value for each knob, by the knob's name.
using Settings = std::map<std::string, std::string>;

/// "slots=3 core=fma"; "defaults" if empty.
std::string describe(const Settings& settings);

/// One row of the climb: a kernel, and the one idea that tells it from the row that it builds on.
struct Rung {
  std::string label;                ///< shown in the table, for example "TMA, one slot"
  Settings settings;                ///< what differs from the defaults
  std::string id = {};              ///< "04.1"; empty: the lesson's number
  std::string source = "gemm.cuh";  ///< the kernel, below the lesson's folder
  std::string cause = {};           ///< the idea, in a few words
  std::string core = {};            ///< a rung of builds whose best core is this; empty: of all
};

/// What a lesson makes of each sum of products before it rounds, for the verifier.
struct ReferenceEpilogue {
  /// `other` is the bias of the column; of lessons with two B the sum with the second.
  /// Empty: C is the sum, and there is no other.
  std::function<double(double sum, double other)> apply;
  /// The result for small integers is known bit for bit. If not, only the error on normal data is judged.
  bool exact = true;
  int roundings = 1;  ///< to bf16, on the way to a result
};

/// Launches one kernel, whose settings are known, on the stream and returns.
using Launcher = std::function<void(const Gemm&, cudaStream_t)>;

/// How a lesson launches what its settings choose. Settings are words: launcher_of() reads them, once, so
/// that a launch that is timed does not.
class LaunchBySettings {
 public:
  LaunchBySettings() = default;
  /// @param launcher_of (const Settings&): a Launcher; throws std::invalid_argument for settings that cannot
  /// run
  template <class F>
  requires std::is_invocable_r_v<Launcher, F&, const Settings&> LaunchBySettings(F launcher_of)
      : launcher_of_(std::move(launcher_of)) {}
  /// @param launch (const Gemm&, const Settings&, cudaStream_t): reads the settings in each launch
  template <class F>
  requires std::is_invocable_v<F&, const Gemm&, const Settings&, cudaStream_t> LaunchBySettings(F launch) {
    launcher_of_ = [each = std::make_shared<F>(std::move(launch))](const Settings& settings) -> Launcher {
      return [each, settings](const Gemm& gemm, cudaStream_t stream) { (*each)(gemm, settings, stream); };
    };
  }

  /// Reads the settings once; what it returns only launches.
  Launcher launcher_of(const Settings& settings) const { return launcher_of_(settings); }
  void operator()(const Gemm& gemm, const Settings& settings, cudaStream_t stream) const {
    launcher_of_(settings)(gemm, stream);
  }

 private:
  std::function<Launcher(const Settings&)> launcher_of_;
};

/// Another way to what a lesson computes, timed beside it.
struct Alternative {
  std::string label;  ///< for example "separate kernels"
  Launcher launch;
  ReferenceEpilogue epilogue;
  std::function<double(const Gemm&)> global_bytes;  ///< see Lesson::global_bytes
  std::function<void(const Gemm&)> prepare = {};    ///< see Contender::prepare
};

/// The kernel that a lesson takes for a shape, which its knobs may leave to the lesson.
struct TakenKernel {
  std::string id;       ///< its rung: "05.2"; empty: of no rung, and of no choice
  std::string command;  ///< that runs it for each shape: "05_ws_double_buffer --step pieces"
  Launcher launch;      ///< of it, for each shape
};

/// A lesson as the programs see it; `lesson.cu` of each directory defines one.
struct Lesson {
  std::string name;  ///< its directory, for example "03_double_buffer"
  std::string idea;  ///< one sentence
  std::vector<Knob> knobs;
  std::vector<Rung> rungs;  ///< each builds on the one before it
  /// The lesson, by its name, on whose last rung the first of these builds; none for the first lesson.
  std::vector<std::string> builds_on = {};
  int minimum_architecture = kTuring;  ///< that its kernels are compiled for, see Code::architecture
  int b_matrices = 1;                  ///< see Shape::b_matrices; at most 2
  std::string program = {};            ///< its name, where that is not the lesson's

  /// Throws std::invalid_argument, naming the argument, its value and the rule, for what the kernel cannot
  /// run.
  std::function<void(const Gemm&, const Settings&)> check;
  /// Throws what `check` throws, and ladder::CudaError.
  LaunchBySettings launch;

  // What follows is empty where a lesson has nothing to say.
  /// What multiplies: "wgmma", "mma_sync" or "fma". If empty, what the knob `core` stands for, or "fma"
  /// without that knob.
  std::function<std::string(const Settings&)> core = {};
  std::function<Resources(const Settings&)> resources = {};
  std::function<ReferenceEpilogue(const Settings&)> epilogue = {};
  /// Bytes between global memory and the GPU, if every operand is read once and every result written once.
  std::function<double(const Gemm&, const Settings&)> global_bytes = {};
  std::function<std::vector<Alternative>(const Settings&)> alternatives = {};
  /// What the lesson decides for a shape where a knob leaves it the choice, in a few words; and why, in a
  /// table of at most 100 columns.
  std::function<std::string(const Shape&, const Settings&)> choice = {}, explain = {};
  /// All settings that can run the shape, the one that the lesson expects to be fastest first, where knobs
  /// that say which plan to run are "auto". `ladder tune` measures them.
  std::function<std::vector<Settings>(const Shape&, const Settings&)> candidates = {};
  /// What a reader of the table has to know of a row, in a line or a few; empty if nothing.
  std::function<std::string(const Shape&, const Settings&)> remark = {};
  /// So that check_unasked() runs each kernel that a row of the table runs, also where small shapes take
  /// another.
  std::function<TakenKernel(const Shape&, const Settings&)> taken = {};
  /// What its program runs on the CPU device besides what the reader chooses, if it names all that and more:
  /// small problems there may leave out what the lesson is about. Settings that a shape forbids are left out.
  std::vector<Settings> cpu_rows = {};
  Shape cpu_shape = {256, 256, 256};  ///< that its program multiplies there where no shape is given
  /// What check_unasked() multiplies: more tiles than the device runs blocks at a time, and more K steps than
  /// a ring has slots. Five steps are an odd number, so a tile begins neither at the slot nor at the parity
  /// of the tile before.
  Shape cpu_check = {131, 520, 264};
  /// And by one block: fewer rows than a warpgroup has, one K step, and more tiles than a ring has slots.
  Shape cpu_check_few = {40, 1288, 24};

  /// The architecture, and the cores that the knob `core` offers.
  Requirement requirement() const;

  const std::string& program_name() const { return program.empty() ? name : program; }

  /// @throws std::invalid_argument if there is no such knob
  const std::string& default_of(const std::string& knob) const;

  /// Every knob at its default, overridden by `chosen`.
  /// @throws std::invalid_argument for an unknown knob or value.
  Settings settings(const Settings& chosen = {}) const;
};

}  // namespace ladder
