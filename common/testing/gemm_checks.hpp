/// @file
/// What the tests of all lessons share. They run on both devices: on the GPU once, on the CPU device by many
/// schedules.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "common/host/problem/lesson.hpp"
#include "common/host/problem/shape.hpp"

namespace ladder::testing {

/// Skips the test case with one line where the lesson cannot run: no GPU in a GPU build, or one that is too
/// old. `core` is a choice of the knob of that name, if the test needs one: "wgmma" skips all but Hopper.
void skip_unless_runnable(const Lesson& lesson, const std::string& core = "");

/// The loaders of lessons 04 and 05 that run here with the core mma_sync: "cp_async", and "tma" where there
/// is TMA.
std::vector<std::string> loaders_without_wgmma();

/// Calls `test` by each of the CPU device's fixed schedules and by random ones; on the GPU, once. How many,
/// and on which of them races are checked, is said in breadth.hpp; the environment variable LADDER_TEST_SEEDS
/// overrides how many are random. A schedule that fails is named in the message, and the test goes on with
/// the next.
/// @param random_seeds at most so many are random
void for_each_schedule(const std::function<void()>& test, int random_seeds = 4);

/// The same with races checked on the two schedules that differ most, and on one of the others, which is
/// another one each time in this process. With Breadth::more on all others. Of the mistakes that the lab
/// plants, the two show all that any fixed schedule shows without a look for races.
void for_three_schedules(const std::function<void()>& test, int random_seeds = 4);

/// The same on the two schedules that differ most, and with Breadth::more on all others.
void for_two_schedules(const std::function<void()>& test);

/// The same on one of these two, on the other the next time; with Breadth::more on all others. For what no
/// schedule moves.
void for_schedules_by_turns(const std::function<void()>& test);

/// Runs the lesson and fails the test unless the result is right twice (see Verifier: small integers bit for
/// bit, normal data against fp64, C poisoned before, canaries around it). The message ends with a command
/// line that repeats the run. The lesson's alternatives for these settings must be right, too. A rule of the
/// CPU device that is broken fails the test too.
void check_gemm(const Lesson& lesson, const Shape& shape, const Settings& settings = {});

/// check_gemm by for_three_schedules; normal data by the first alone, and by none in the tests that take
/// long.
void check_gemm_on_three_schedules(const Lesson& lesson, const Shape& shape, const Settings& settings = {},
                                   int random_seeds = 4);

/// check_gemm by for_schedules_by_turns. For kernels that only differ in numbers from one that is tried on
/// more, and for edges, which no schedule moves.
void check_gemm_by_turns(const Lesson& lesson, const Shape& shape, const Settings& settings = {});

/// Checks a ring of `slots` at its trip_counts: a ring that is just full, and one that is just more than
/// full, on three schedules, since these are what schedules tell apart; the others by turns.
/// @param shape_of the problem of so many iterations
void check_ring(const Lesson& lesson, int slots, const std::function<Shape(int)>& shape_of,
                const Settings& settings, int random_seeds = 1);

/// Fails the test unless both lesson.check and lesson.launch refuse the shape with std::invalid_argument, and
/// what it says contains each of `words`: the argument, its value, the rule.
void expect_refused(const Lesson& lesson, const Shape& shape, const Settings& settings,
                    const std::vector<std::string>& words);

/// The numbers of iterations at which a ring of `slots` goes wrong, if it does: 1, slots-1, slots, slots+1
/// and 3*slots+1; ascending, without repetition, at least 1.
std::vector<int> trip_counts(int slots);

/// "03_double_buffer --shape 129x136x72 --slots 3 --schedule random:17".
std::string replay_command(const Lesson& lesson, const Shape& shape, const Settings& settings);

}  // namespace ladder::testing
