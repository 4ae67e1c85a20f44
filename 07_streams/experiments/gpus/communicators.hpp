/// @file
/// NCCL for a process that drives all GPUs.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace lesson07 {

/// An NCCL call failed.
struct NcclError : std::runtime_error {
  NcclError(ncclResult_t code, const char* call);
};

/// @throws NcclError unless `code` is ncclSuccess
inline void check_nccl(ncclResult_t code, const char* call) {
  if (code != ncclSuccess) throw NcclError(code, call);
}
/// check_nccl() for a call of NCCL.
#define NCCL_CHECK(call) ::lesson07::check_nccl((call), #call)

/// One rank on each of the devices 0 to count - 1.
/// @param most_blocks of NCCL's kernels on each device, hence of the SMs that they take; 0: as NCCL chooses
/// @throws NcclError
std::vector<ncclComm_t> make_communicators(int count, int most_blocks);

/// The ranks, destroyed with this object.
class Communicators {
 public:
  Communicators(int count, int most_blocks) : ranks_(make_communicators(count, most_blocks)) {}
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// Enqueues that data[rank], `count` elements on device `rank`, become the sum over all ranks, on
  /// streams[rank].
  /// @throws NcclError; then nothing is enqueued
  void all_reduce(const std::vector<__nv_bfloat16*>& data, size_t count,
                  const std::vector<cudaStream_t>& streams) const;

  /// Waits until the streams are done, and asks the ranks meanwhile whether they have failed.
  /// @throws NcclError of a rank that has failed; ladder::HostWaitTimedOut after `limit`; CudaError. Then the
  /// ranks are gone, and streams that waited for them end.
  void wait(const std::vector<cudaStream_t>& streams, std::chrono::milliseconds limit);

 private:
  std::vector<ncclComm_t> ranks_;
};

}  // namespace lesson07
