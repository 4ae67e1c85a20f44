/// @file
/// NCCL's calls with their errors; the same on both devices.
#include "07_streams/experiments/gpus/communicators.hpp"

#include <string>

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
  for (size_t rank = 0; rank < ranks_.size(); ++rank)
    NCCL_CHECK(ncclAllReduce(data.at(rank), data.at(rank), count, ncclBfloat16, ncclSum, ranks_[rank],
                             streams.at(rank)));
  NCCL_CHECK(ncclGroupEnd());
}

}  // namespace lesson07
