/// @file
/// Runs a kernel and records its timeline. On the CPU device every program can; on the GPU only a program
/// that was built for it, NN_name_traced, to which the plain program hands over.
#pragma once
#include <optional>

#include <string>

#include "common/cuda/device_buffer.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/timeline/timeline.hpp"

namespace ladder {

/// Matrices to record with: normal data, the same in both programs.
class TraceInputs {
 public:
  /// @throws OutOfDeviceMemory
  explicit TraceInputs(const Shape& shape);
  Gemm gemm() { return {a_.data(), b_.data(), c_.data(), shape_.m, shape_.n, shape_.k, bias_.data()}; }

 private:
  Shape shape_;
  DeviceBuffer<__nv_bfloat16> a_, b_, c_, bias_;
};

/// True if the kernels of this program record what they do.
bool can_record();

struct Recording {
  Timeline timeline;
  std::optional<double> launch_us;  ///< median time of the kernel while it records; nothing on the CPU device
  std::optional<double> clock_mhz = std::nullopt;  ///< right behind the recorded launch; likewise
};

/// Multiplies and waits, several times where that is timed, and returns what the last launch did.
/// @throws CudaError, cpu_device::Failure
Recording record(const Contender& contender, const Gemm& gemm);

/// Of the launch that ended last on the CPU device, whose spans were kept (Execution::record). Not in the GPU
/// build.
Timeline last_timeline();

/// Times the kernel of this program, which cannot record, and replaces the program by its neighbour that can,
/// with the same arguments and one more that says the time. Only in the GPU build.
/// @throws BadInput if there is no such neighbour
[[noreturn]] void hand_over_to_traced(const Contender& contender, const Shape& shape, char** argv);

}  // namespace ladder
