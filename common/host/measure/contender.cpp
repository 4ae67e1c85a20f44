/// @file
/// Whatever multiplies matrices and is compared with others.
#include "common/host/measure/contender.hpp"

#include <iostream>
#include <utility>

#include "common/cuda/error.hpp"
#include "common/host/device/device.hpp"

namespace ladder {
namespace {

/// A lesson without the knob `core` has no tensor cores yet.
std::string core_of(const Lesson& lesson, const Settings& settings) {
  if (lesson.core) return lesson.core(settings);
  const auto core = settings.find("core");
  return core == settings.end() ? "fma" : resolve_core(core->second);
}

}  // namespace

Contender contender_of(const Lesson& lesson, const std::string& label, const Settings& chosen) {
  Contender contender;
  contender.lesson = lesson.name;
  contender.label = label;
  contender.settings = lesson.settings(chosen);
  contender.core = core_of(lesson, contender.settings);
  // Settings that cannot run here are refused by the launch.
  contender.launch = [by_settings = lesson.launch, settings = contender.settings, launch = Launcher()](
                         const Gemm& gemm, cudaStream_t stream) mutable {
    if (!launch) launch = by_settings.launcher_of(settings);
    launch(gemm, stream);
  };
  if (lesson.epilogue) contender.epilogue = lesson.epilogue(contender.settings);
  if (lesson.resources)
    contender.resources = [resources = lesson.resources, settings = contender.settings] {
      return resources(settings);
    };
  if (lesson.global_bytes)
    contender.global_bytes = [bytes = lesson.global_bytes, settings = contender.settings](const Gemm& gemm) {
      return bytes(gemm, settings);
    };
  if (lesson.choice)
    contender.choice = [choice = lesson.choice, settings = contender.settings](const Shape& shape) {
      return choice(shape, settings);
    };
  return contender;
}

std::vector<Contender> alternatives_to(const Lesson& lesson, const std::string& label,
                                       const Settings& chosen) {
  std::vector<Contender> contenders;
  if (!lesson.alternatives) return contenders;
  for (const Alternative& alternative : lesson.alternatives(lesson.settings(chosen))) {
    Contender contender = contender_of(lesson, label + ", " + alternative.label, chosen);
    contender.settings["instead"] = alternative.label;  // so that results do not mistake it for the lesson
    contender.prepare = alternative.prepare;
    contender.launch = alternative.launch;
    contender.epilogue = alternative.epilogue;
    contender.resources = {};
    contender.global_bytes = alternative.global_bytes;
    contenders.push_back(contender);
  }
  return contenders;
}

void add_library(std::vector<Contender>& contenders, Contender library, const Shape& shape) {
  if (library.candidates.empty()) {
    std::cerr << "warning: " << library.label << ": no algorithm for " << shape.name() << "; left out"
              << std::endl;
    return;
  }
  library.launch = library.candidates.front();
  contenders.push_back(std::move(library));
}

void multiply_and_wait(const Contender& contender, const Gemm& gemm) {
  if (contender.prepare) contender.prepare(gemm);
  contender.launch(gemm, nullptr);
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace ladder
