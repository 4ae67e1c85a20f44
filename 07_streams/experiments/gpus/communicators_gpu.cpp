/// @file
/// NCCL's communicators on GPUs.
#include "07_streams/experiments/devices.hpp"
#include "07_streams/experiments/gpus/communicators.hpp"

namespace lesson07 {

std::vector<ncclComm_t> make_communicators(int count, int most_blocks) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (most_blocks > 0) {
    config.minCTAs = 1;
    config.maxCTAs = most_blocks;
    // No clusters: the SMs that other kernels leave are scattered over the GPU, and a cluster needs
    // neighbours.
    config.cgaClusterSize = 0;
  }
  ncclUniqueId id;
  NCCL_CHECK(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> ranks(count);
  NCCL_CHECK(ncclGroupStart());
  ncclResult_t result = ncclSuccess;
  for (int rank = 0; rank < count && result == ncclSuccess; ++rank) {
    const OnDevice current(rank);
    result = ncclCommInitRankConfig(&ranks[rank], count, id, rank, &config);
  }
  const ncclResult_t ended = ncclGroupEnd();  // also after an error, as in all_reduce()
  check_nccl(result, "ncclCommInitRankConfig");
  check_nccl(ended, "ncclGroupEnd");
  return ranks;
}

}  // namespace lesson07
