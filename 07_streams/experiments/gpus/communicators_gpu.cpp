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
  for (int rank = 0; rank < count; ++rank) {
    const OnDevice current(rank);
    NCCL_CHECK(ncclCommInitRankConfig(&ranks[rank], count, id, rank, &config));
  }
  NCCL_CHECK(ncclGroupEnd());
  return ranks;
}

}  // namespace lesson07
