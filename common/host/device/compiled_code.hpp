/// @file
/// What was compiled decides what runs. A GPU runs machine code for its own architecture, or PTX that the
/// driver compiles; either has only the instructions of the architecture that nvcc compiled it for. The rules
/// are here, as functions that need no GPU.
#pragma once
#include <string>
#include <vector>

namespace ladder {

/// The architectures that the lessons know: the oldest of all, of mma.sync with bf16 and cp.async, and of TMA
/// and clusters.
constexpr int kTuring = 75, kAmpere = 80, kHopper = 90;

/// What the kernels that a GPU runs were compiled for.
struct Code {
  int architecture = 0;   ///< major * 10 + minor, as in `__CUDA_ARCH__`; 0: no code that this GPU runs
  bool specific = false;  ///< compiled for sm_90a, whose `a` brings wgmma and setmaxnreg

  bool operator==(const Code&) const = default;
};

/// A GPU, a build, and what they make together.
struct Target {
  std::string gpu;            ///< "NVIDIA H200"
  int capability = 0;         ///< of the GPU: major * 10 + minor
  std::string architectures;  ///< of the build, as CMAKE_CUDA_ARCHITECTURES says: "80-real;90a-real"
  Code code;
};

/// What a kernel needs: an architecture at least, and one of these cores.
struct Requirement {
  int architecture = kTuring;
  std::vector<std::string> cores = {"fma"};
};

/// Is the core wgmma, mma_sync or fma in the code?
bool has_core(const Code& code, const std::string& core);

/// The best core in the code; "fma" where there is no code.
std::string best_core(const Code& code);

/// Why no kernel of the build runs on the GPU, in one sentence that names both; "" if kernels run.
std::string why_no_code(const Target& target);

/// Why a kernel with that requirement does not run, as the end of a sentence that begins with its name:
/// "needs ...". It says how to configure where another build would do. "" if it runs.
std::string why_not(const Requirement& requirement, const Target& target);

/// Why GPUs cannot share one problem: they are of different kinds; "" if they can.
/// @param gpus of each the name and the compute capability
std::string why_not_together(const std::vector<Target>& gpus);

/// What the code that the driver has loaded was compiled for, of the current GPU; architecture 0 if the
/// program holds nothing that this GPU runs. Only in the GPU build.
/// @throws CudaError for any other failure
Code loaded_code();

}  // namespace ladder
