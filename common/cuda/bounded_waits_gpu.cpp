/// @file
/// The memory that waits which give up report to.
#include <cstring>
#include <vector>

#include "common/cuda/bounded_waits.hpp"
#include "common/cuda/error.hpp"

namespace ladder {
namespace {

std::vector<waits::SetReport>& bounded_sources() {
  static std::vector<waits::SetReport> sources;
  return sources;
}

/// Pinned memory, which the GPU can write and which is still there after a trap. Never freed: errors may be
/// described until the program ends.
waits::Report& report() {
  static waits::Report* const report = [] {
    void* memory = nullptr;
    CUDA_CHECK(cudaHostAlloc(&memory, sizeof(waits::Report), cudaHostAllocMapped | cudaHostAllocPortable));
    std::memset(memory, 0, sizeof(waits::Report));
    return static_cast<waits::Report*>(memory);
  }();
  return *report;
}

}  // namespace

bool waits::add_bounded_source(SetReport set) {
  bounded_sources().push_back(set);
  return true;
}

void prepare_bounded_waits() {
  static const bool prepared = [] {
    if (bounded_sources().empty()) return true;  // and nothing that a stream which is captured forbids
    for (const waits::SetReport set : bounded_sources()) CUDA_CHECK(set(&report()));
    // As in copy_to_device(): the pointer may still be on its way, and launches may be in any stream.
    CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
    why_kernels_stopped = [] { return describe_stuck_waits(report()); };
    return true;
  }();
  static_cast<void>(prepared);
}

}  // namespace ladder
