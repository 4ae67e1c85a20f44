/// @file
/// The plans that `ladder tune` found fastest, in a file of the user's, for lessons that choose a plan.
#pragma once
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/host/problem/lesson.hpp"
#include "common/host/problem/shape.hpp"

namespace ladder {

/// Where a plan was measured. On another GPU, with another driver or other kernels another plan may be
/// faster.
struct TunedOn {
  std::string gpu, driver;
  std::string build;  ///< see kernel_build()
  bool operator==(const TunedOn&) const = default;
};

/// The fastest plan for one shape.
struct TunedPlan {
  TunedOn on;
  std::string lesson;
  Shape shape;
  Settings settings;  ///< the plan alone: the knobs of the lesson that are "auto" by default
  bool operator==(const TunedPlan&) const = default;
};

/// What distinguishes these kernels of a lesson from those of other builds: a hash of their sources and
/// flags, and the toolkit.
std::string kernel_build(const std::string& lesson);

/// This device, and the kernels of this program.
TunedOn tuned_here(const std::string& lesson);

/// $XDG_CACHE_HOME/kernel-ladder/plans.json, else $HOME/.cache/kernel-ladder/plans.json. As the XDG Base
/// Directory Specification wants it, a path that is not absolute counts as none.
/// @throws std::runtime_error if both variables are missing
std::string tuned_plans_path();

/// What a file holds is no list of tuned plans.
struct DamagedPlans : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// All plans of a file, also those of other devices and builds; none if there is no such file.
/// @throws DamagedPlans naming the path and what is wrong
/// @throws std::invalid_argument the same, if it cannot be read
std::vector<TunedPlan> read_tuned_plans(const std::string& path);

/// Adds plans to a file, each in the place of the one for the same device, build, lesson and shape. A damaged
/// file is kept beside the new one, see damaged_plans_path(). Of programs that do so at the same time, one
/// may lose its plans; the file is whole. @throws std::runtime_error with the reason
void remember_plans(const std::string& path, const std::vector<TunedPlan>& plans);

/// Makes the folder of the file if there is none, and looks whether plans can be remembered there, as far as
/// can be said without writing. @throws DamagedPlans naming what is wrong; plans can be remembered all the
/// same @throws std::runtime_error with the reason
void prepare_tuned_plans(const std::string& path);

/// Where remember_plans() puts a damaged file.
std::string damaged_plans_path(const std::string& path);

/// Removes the plans of these shapes that were measured here; all plans and the file if there are no shapes.
/// @returns how many, without a number if the file was damaged
/// @throws std::invalid_argument for a damaged file that is to keep its other plans
/// @throws std::runtime_error with the reason
std::optional<size_t> forget_plans(const std::string& path, const std::string& lesson,
                                   const std::vector<Shape>& shapes);

/// Whether the environment variable LADDER_TUNED allows remembered plans.
/// @throws std::invalid_argument if it is set to anything but "yes" and "no"
bool tuned_plans_are_wanted();

/// From now on with_remembered_plan() finds nothing.
void ignore_tuned_plans();

/// `settings` with the plan that is remembered for this device, build and shape, if every knob of that plan
/// is "auto" in them; else nothing. The file is read once, at the first call: a damaged one is a warning on
/// stderr. Nothing is read where the environment variable LADDER_TUNED is "no". Costs no more than a look-up,
/// and may be called by several threads. Whether the lesson has such a plan is not checked.
/// @throws std::invalid_argument if LADDER_TUNED is neither "yes" nor "no"
std::optional<Settings> with_remembered_plan(const std::string& lesson, const Shape& shape,
                                             const Settings& settings);

}  // namespace ladder
