/// @file
/// A matrix C that shows what a kernel did to it, and around it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/cuda/device_buffer.hpp"
#include "common/host/problem/gemm.hpp"

namespace ladder {

/// What a fresh C holds: a NaN that no arithmetic produces, so an element that is never written is
/// recognised.
constexpr uint16_t kPoisonBits = 0xffff;
/// What lies before and behind C: another such NaN.
constexpr uint16_t kCanaryBits = 0x7fa5;

/// C [m, n] in device memory between two canaries, 4096 bytes each.
class OutputMatrix {
 public:
  OutputMatrix(int m, int n);

  /// Renews the poison and both canaries.
  void poison();
  __nv_bfloat16* data() { return buffer_.data() + kCanary; }
  const __nv_bfloat16* data() const { return buffer_.data() + kCanary; }
  std::vector<__nv_bfloat16> download() const;
  /// Empty, or which element outside of C was overwritten.
  std::string canary_complaint() const;

 private:
  static constexpr size_t kCanary = 2048;  // elements; keeps C aligned to 4096 bytes
  size_t count_;
  DeviceBuffer<__nv_bfloat16> buffer_;
};

}  // namespace ladder
