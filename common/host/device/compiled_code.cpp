/// @file
/// Which kernels run, by what was compiled.
#include "common/host/device/compiled_code.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "common/host/base/text.hpp"

namespace ladder {
namespace {

std::string sm(int architecture) { return fmt::format("sm_{}", architecture); }

/// What nvcc makes of the architecture that suits the GPU best.
Code best_code_for(int capability) { return {capability, capability == kHopper}; }

std::string configure_for(int capability) {
  return fmt::format("; configure with -DCMAKE_CUDA_ARCHITECTURES={}{}-real", capability,
                     best_code_for(capability).specific ? "a" : "");
}

bool satisfies(const Code& code, const Requirement& requirement) {
  return code.architecture >= requirement.architecture &&
         std::any_of(requirement.cores.begin(), requirement.cores.end(),
                     [&](const std::string& core) { return has_core(code, core); });
}

std::string words_for(const Requirement& requirement) {
  const auto& cores = requirement.cores;
  const auto lists = [&](const char* core) {
    return std::find(cores.begin(), cores.end(), core) != cores.end();
  };
  // The oldest code that has one of the cores.
  const int oldest = lists("fma") ? kTuring : lists("mma_sync") ? kAmpere : kHopper;
  if (oldest == kHopper) return "code for sm_90a, which alone has wgmma";
  return fmt::format("code for {} or later", sm(std::max(requirement.architecture, oldest)));
}

}  // namespace

bool has_core(const Code& code, const std::string& core) {
  if (core == "wgmma") return code.architecture == kHopper && code.specific;
  if (core == "mma_sync") return code.architecture >= kAmpere;
  return core == "fma" && code.architecture >= kTuring;
}

std::string best_core(const Code& code) {
  for (const char* core : {"wgmma", "mma_sync"})
    if (has_core(code, core)) return core;
  return "fma";
}

std::string why_no_code(const Target& target) {
  if (target.capability < kTuring)
    return fmt::format(
        "{} ({}) is older than {}, the oldest that the lessons run on; configure with "
        "-DLADDER_DEVICE=cpu for the CPU device",
        target.gpu, sm(target.capability), sm(kTuring));
  if (target.code.architecture != 0) return "";
  return fmt::format("this build is for {}, and {} ({}) runs none of its code{}", target.architectures,
                     target.gpu, sm(target.capability), configure_for(target.capability));
}

std::string why_not(const Requirement& requirement, const Target& target) {
  if (satisfies(target.code, requirement)) return "";
  const bool another_build_would = satisfies(best_code_for(target.capability), requirement);
  return fmt::format("needs {}; this build is for {}, of which {} ({}) runs the code for {}{}{}",
                     words_for(requirement), target.architectures, target.gpu, sm(target.capability),
                     sm(target.code.architecture), target.code.specific ? "a" : "",
                     another_build_would ? configure_for(target.capability) : "");
}

std::string why_not_together(const std::vector<Target>& gpus) {
  for (const Target& gpu : gpus)
    if (gpu.gpu != gpus.front().gpu || gpu.capability != gpus.front().capability)
      return fmt::format(
          "the GPUs are of different kinds: {} ({}) and {} ({}); choose equal ones with "
          "CUDA_VISIBLE_DEVICES",
          gpus.front().gpu, sm(gpus.front().capability), gpu.gpu, sm(gpu.capability));
  return "";
}

}  // namespace ladder
