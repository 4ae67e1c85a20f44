/// @file
/// Whatever multiplies matrices and is compared with others.
#include "common/host/contender.hpp"

#include "common/host/device.hpp"
#include "common/host/error.hpp"

namespace ladder {

Contender contender_of(const Lesson& lesson, const std::string& label, const Settings& chosen) {
  Contender contender;
  contender.lesson = lesson.name;
  contender.label = label;
  contender.settings = lesson.settings(chosen);
  // A lesson without that knob has no tensor cores yet.
  const auto core = contender.settings.find("core");
  contender.core = core == contender.settings.end() ? "fma" : resolve_core(core->second);
  contender.launch = [launch = lesson.launch, settings = contender.settings](
                         const Gemm& gemm, cudaStream_t stream) { launch(gemm, settings, stream); };
  return contender;
}

void multiply_and_wait(const Contender& contender, const Gemm& gemm) {
  if (contender.prepare) contender.prepare(gemm);
  contender.launch(gemm, nullptr);
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace ladder
