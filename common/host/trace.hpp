/// @file
/// `--trace`: runs a kernel and records its timeline. On the CPU device every program can; on the GPU only a
/// program that was built for it, NN_name_traced, to which the plain program hands over.
#pragma once
#include <optional>

#include <string>

#include "common/host/comparison.hpp"
#include "common/host/contender.hpp"
#include "common/host/device_buffer.hpp"
#include "common/host/timeline.hpp"

namespace ladder {

/// What the command line says about it.
struct TraceRequest {
  std::string path;                   ///< empty: no trace
  std::optional<size_t> blocks;       ///< how many are kept; nothing: all that are recorded
  std::optional<double> untraced_us;  ///< what the plain program measured
};

/// Verifies the contender, records a launch, writes the file and prints a table.
/// @param argv of the program, for the one that it may hand over to
/// @returns kExitOk, or kExitFailure after a line on stderr if the result was wrong
int trace_contender(const Contender& contender, const Shape& shape, const ComparisonOptions& options,
                    const TraceRequest& request, char** argv);

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
  std::optional<double> sm_clock_mhz = std::nullopt;  ///< right behind the recorded launch; likewise
};

/// Multiplies and waits, several times where that is timed, and returns what the last launch did.
/// @throws CudaError, cpu_device::Failure
Recording record(const Contender& contender, const Gemm& gemm);

/// Times the kernel of this program, which cannot record, and replaces the program by its neighbour that can,
/// with the same arguments and one more that says the time. Only in the GPU build.
/// @throws BadInput if there is no such neighbour
[[noreturn]] void hand_over_to_traced(const Contender& contender, const Shape& shape, char** argv);

}  // namespace ladder
