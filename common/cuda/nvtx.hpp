/// @file
/// Named ranges of the host's work for Nsight Systems. A shadow of this header does nothing on the CPU
/// device.
#pragma once
#include <nvtx3/nvToolsExt.h>

#include <string>

namespace ladder {

/// Its lifetime is a range of the calling thread in a profiler's timeline. Without a profiler it costs
/// nanoseconds.
class NvtxRange {
 public:
  explicit NvtxRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~NvtxRange() { nvtxRangePop(); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace ladder
