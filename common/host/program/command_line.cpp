/// @file
/// The part of the command line that the lessons' programs and `ladder` have in common.
#include "common/host/program/command_line.hpp"

#include <stdexcept>

#include "common/host/base/arguments.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/tuned_plans.hpp"
#include "common/host/program/program.hpp"

namespace ladder {
namespace {

/// All elements of lists like {"1,2", "3"}.
std::vector<std::string> elements(const std::vector<std::string>& lists) {
  std::vector<std::string> all;
  for (const std::string& list : lists)
    for (const std::string& element : split(list, ',')) all.push_back(element);
  return all;
}

Inputs parse_inputs(const std::string& text) {
  for (const Inputs inputs : {Inputs::cold, Inputs::hot, Inputs::zeros})
    if (text == name_of(inputs)) return inputs;
  throw std::invalid_argument("--inputs " + text + ": must be cold, hot or zeros");
}

}  // namespace

void CommonOptions::add_to(Arguments& arguments) {
  arguments.add_option("--size", size_texts_, "N",
                       "Multiply N x N matrices; a list (1024,4096) gives several problems");
  arguments.add_option("--shape", shape_texts_, "MxNxK",
                       "C is M x N, A has K columns; or the name of a shape in a real model");
  arguments.add_flag(
      "--no-verify", [this] { comparison.verify = false; }, "Do not compare the results with fp64");
  arguments.add_option("--data-seed", data_seed_, "SEED", "Chooses other input data");
  add_timing_options(arguments);
  arguments.add_option("--json", json_path, "PATH", "Write the results to this file");
  arguments.add_option("--a", files.a, "A.npy", "Multiply matrices of your own: A, an .npy file");
  arguments.add_option("--b", files.b, "B.npy", "B, also an .npy file");
  arguments.add_option("-o,--output", files.c, "C.npy", "Where their product goes");
  arguments.add_option("--dtype", files.dtype, "TYPE", "Type of its elements: " + join(npy_dtypes(), ", "));
  arguments.add_flag("--bf16-as-uint16", files.uint16_is_bf16,
                     "Take elements of A and B that their files call uint16 as the bits of bf16");
  execution_.add_to(arguments);
}

void CommonOptions::add_timing_options(Arguments& arguments) {
  if (on_cpu_device()) {
    for (const char* const name : {"--no-library", "--rounds", "--sample-ms", "--inputs", "--energy"})
      arguments.refuse(name, kOnlyTimedOnGpu);
    return;
  }
  arguments.add_flag(
      "--no-library", [this] { with_library = false; },
      "Do not run cuBLAS beside it, for profilers and sanitizers");
  arguments.add_option("--rounds", rounds_, "R", "Samples of each measurement");
  arguments.add_option("--sample-ms", sample_ms_, "MS",
                       "How long a sample is, and how long the GPU runs the same untimed before it");
  arguments.add_option(
      "--inputs", inputs_, "CHOICE",
      "Where timed launches find A and B: cold, in global memory (default), or hot, in the L2 "
      "cache if they fit; zeros, to see what bits cost that do not switch");
  arguments.add_flag(
      "--energy", [this] { comparison.energy = true; },
      "Measure joules a launch, which takes 1.3 s more for each kernel and size");
}

void CommonOptions::check() {
  for (const std::string& text : size_texts_)
    for (const Shape& shape : parse_sizes("--size", text)) shapes.push_back(shape);
  for (const std::string& text : shape_texts_)
    for (const Shape& shape : parse_shapes("--shape", text)) shapes.push_back(shape);
  if (!rounds_.empty()) comparison.rounds = static_cast<int>(parse_number("--rounds", rounds_, 1, 10000));
  if (!data_seed_.empty()) comparison.data_seed = parse_number("--data-seed", data_seed_, 0, UINT32_MAX);
  if (!sample_ms_.empty())
    comparison.sample_ms = static_cast<int>(parse_number("--sample-ms", sample_ms_, 1, 10000));
  if (!inputs_.empty()) comparison.inputs = parse_inputs(inputs_);
  comparison.execution = execution_.parsed();
  tuned_plans_are_wanted();
  if (!json_path.empty()) check_writable("--json", json_path);
  files.check();
  if (files.given() && (!shapes.empty() || !json_path.empty()))
    throw std::invalid_argument("--a " + files.a + ": cannot be combined with --size, --shape or --json");
}

void KnobOptions::add_to(Arguments& arguments, const Lesson& lesson) {
  for (const Knob& knob : lesson.knobs)
    arguments.add_option(
        "--" + knob.name, texts_[knob.name], "CHOICE",
        knob.help + ": " + join(knob.choices, ", ") + " (default " + knob.choices.front() + ")");
}

std::vector<Settings> KnobOptions::combinations(const Lesson& lesson) const {
  std::vector<Settings> result(1);
  for (const Knob& knob : lesson.knobs) {
    const std::vector<std::string> values = elements(texts_.at(knob.name));
    if (values.empty()) continue;
    std::vector<Settings> longer;
    for (const Settings& settings : result)
      for (const std::string& value : values) {
        longer.push_back(settings);
        longer.back()[knob.name] = value;
        lesson.settings(longer.back());
      }
    result = std::move(longer);
  }
  return result;
}

std::string why_not_runnable(const Lesson& lesson) {
  const std::string reason = why_not(lesson.requirement(), this_target());
  return reason.empty() ? "" : lesson.name + " " + reason;
}

void check_lesson(const Lesson& lesson, const Settings& settings, const Shape& shape) {
  try {
    lesson.check({nullptr, nullptr, nullptr, shape.m, shape.n, shape.k}, lesson.settings(settings));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(lesson.name + " cannot run " + shape.name() + ": " + error.what());
  }
}

}  // namespace ladder
