/// @file
/// A matrix C that shows what a kernel did to it, and around it.
#include "common/host/verify/output_matrix.hpp"

#include <fmt/core.h>

#include "common/host/problem/bf16.hpp"

namespace ladder {

OutputMatrix::OutputMatrix(int m, int n) : count_(size_t(m) * n), buffer_(count_ + 2 * kCanary) { poison(); }

void OutputMatrix::poison() {
  static_assert(kPoisonBits == 0xffff, "memset can only repeat one byte");
  fill_on_device(data(), 0xff, count_ * sizeof(__nv_bfloat16));
  const std::vector<__nv_bfloat16> canary(kCanary, bf16_from_bits(kCanaryBits));
  for (__nv_bfloat16* place : {buffer_.data(), data() + count_})
    copy_to_device(place, canary.data(), kCanary * sizeof(canary[0]));
}

std::vector<__nv_bfloat16> OutputMatrix::download() const {
  return ladder::download(buffer_.data() + kCanary, count_);
}

std::string OutputMatrix::canary_complaint() const {
  const std::vector<__nv_bfloat16> before = ladder::download(buffer_.data(), kCanary);
  for (size_t i = kCanary; i-- > 0;)
    if (bf16_bits(before[i]) != kCanaryBits)
      return fmt::format("memory before C was overwritten, {} elements ahead of its first", kCanary - i);
  const std::vector<__nv_bfloat16> behind = ladder::download(buffer_.data() + kCanary + count_, kCanary);
  for (size_t i = 0; i < kCanary; ++i)
    if (bf16_bits(behind[i]) != kCanaryBits)
      return fmt::format("memory after C was overwritten, {} elements after its last", i + 1);
  return "";
}

}  // namespace ladder
