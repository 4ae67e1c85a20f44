/// @file
/// Shadow of common/cuda/nvtx.hpp: the CPU device has no profiler that would show ranges.
#pragma once
#include <string>

namespace ladder {

class NvtxRange {
 public:
  explicit NvtxRange(const std::string&) {}
  ~NvtxRange() {}  // so that an unused one is no warning
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace ladder
