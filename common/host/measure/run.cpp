/// @file
/// Which runs are the libraries', and which of them is the one to compare with.
#include "common/host/measure/run.hpp"

namespace ladder {

bool is_library(const Run& run) { return run.core == kLibraryCore; }

const Run* fastest_library(const std::vector<Run>& runs, const Shape& shape) {
  const Run* fastest = nullptr;
  for (const Run& run : runs)
    if (is_library(run) && run.shape == shape && run.tflops && (!fastest || *run.tflops > *fastest->tflops))
      fastest = &run;
  return fastest;
}

}  // namespace ladder
