/// @file
/// NCCL's calls with their errors; the same on both devices.
#include "07_streams/experiments/gpus/communicators.hpp"

#include <string>
#include <utility>

#include "common/cuda/error.hpp"
#include "common/cuda/host_signal.hpp"

namespace lesson07 {

NcclError::NcclError(ncclResult_t code, const char* call)
    : std::runtime_error(std::string(call) + " failed: " + ncclGetErrorString(code) +
                         "; NCCL_DEBUG=WARN in the environment says more") {}

Communicators::~Communicators() {
  for (const ncclComm_t rank : ranks_) ncclCommDestroy(rank);
}

void Communicators::all_reduce(const std::vector<__nv_bfloat16*>& data, size_t count,
                               const std::vector<cudaStream_t>& streams) const {
  // Without a group, the first rank's call would wait for that of the second, which the same thread makes.
  NCCL_CHECK(ncclGroupStart());
  ncclResult_t result = ncclSuccess;
  for (size_t rank = 0; rank < ranks_.size() && result == ncclSuccess; ++rank)
    result = ncclAllReduce(data[rank], data[rank], count, ncclBfloat16, ncclSum, ranks_[rank], streams[rank]);
  // Also after an error: a group that stays open takes in what the thread calls next.
  const ncclResult_t ended = ncclGroupEnd();
  check_nccl(result, "ncclAllReduce");
  check_nccl(ended, "ncclGroupEnd");
}

void Communicators::wait(const std::vector<cudaStream_t>& streams, std::chrono::milliseconds limit) {
  const auto begin = std::chrono::steady_clock::now();
  const auto check_ranks = [&] {
    for (const ncclComm_t rank : ranks_) {
      ncclResult_t failed = ncclSuccess;
      NCCL_CHECK(ncclCommGetAsyncError(rank, &failed));
      check_nccl(failed, "an all-reduce");
    }
    if (std::chrono::steady_clock::now() - begin > limit)
      throw ladder::HostWaitTimedOut("the host has waited " + std::to_string(limit.count()) +
                                     " ms for products and all-reduces");
  };
  try {
    for (const cudaStream_t stream : streams) {
      cudaError_t state = cudaErrorNotReady;
      while ((state = cudaStreamQuery(stream)) == cudaErrorNotReady) check_ranks();
      CUDA_CHECK(state);
    }
  } catch (...) {
    // A rank waits for the others without a limit, and so would all that frees what it uses.
    for (const ncclComm_t rank : std::exchange(ranks_, {})) ncclCommAbort(rank);
    throw;
  }
}

}  // namespace lesson07
