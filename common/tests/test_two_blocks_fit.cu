/// @file
/// Kernels that say "While one block loads, another one may compute": two of their blocks fit on a
/// multiprocessor.
#include <catch2/catch_test_macros.hpp>

#include "02_tiled/gemm.cuh"
#include "02_tiled/steps/1_shared_tile.cuh"
#include "02_tiled/steps/2_register_tile.cuh"
#include "02_tiled/steps/3_chunks.cuh"
#include "02_tiled/steps/4_tensor_cores.cuh"
#include "02_tiled/steps/5_loads_in_flight.cuh"
#include "03_double_buffer/gemm.cuh"
#include "03_double_buffer/steps/1_async_copy.cuh"
#include "03_double_buffer/steps/2_past_l1.cuh"
#include "04_warp_specialized/gemm.cuh"
#include "04_warp_specialized/steps/1_tma.cuh"
#include "04_warp_specialized/steps/2_roles.cuh"
#include "04_warp_specialized/steps/3_tma_store.cuh"
#include "04_warp_specialized/steps/4_walk.cuh"
#include "05_ws_double_buffer/steps/1_ring.cuh"
#include "05_ws_double_buffer/steps/2_pieces.cuh"
#include "common/cuda/error.hpp"
#include "common/cuda/residency.hpp"
#include "common/host/problem/lesson.hpp"
#include "common/testing/gemm_checks.hpp"

namespace {

template <class Storage, class Kernel>
int blocks_per_multiprocessor(Kernel* kernel, int threads) {
#ifndef LADDER_CPU_DEVICE
  ladder::detail::allow_shared_bytes(reinterpret_cast<const void*>(kernel), sizeof(Storage));
#endif
  int blocks = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, sizeof(Storage)));
  return blocks;
}

/// The CPU device knows threads and shared memory, but no registers.
template <class Storage, class Kernel>
void check(Kernel* kernel, int threads) {
  CHECK(blocks_per_multiprocessor<Storage>(kernel, threads) >= 2);
}

}  // namespace

TEST_CASE("Two blocks of a kernel that counts on a second one fit on a multiprocessor") {
  ladder::Lesson all;
  all.minimum_architecture = ladder::kHopper;
  ladder::testing::skip_unless_runnable(all, "wgmma");
  {
    using namespace lesson02;
    check<shared_tile::SharedStorage>(shared_tile::gemm, shared_tile::kTile.m * shared_tile::kTile.n);
    check<register_tile::SharedStorage>(register_tile::gemm, register_tile::kThreads);
    check<chunks::SharedStorage>(chunks::gemm, chunks::kThreads);
    check<tensor_cores::SharedStorage>(tensor_cores::gemm, tensor_cores::kThreads);
    check<loads_in_flight::SharedStorage>(loads_in_flight::gemm, loads_in_flight::kThreads);
    check<SharedStorage>(gemm, kThreads);
  }
  {
    using namespace lesson03;
    check<async_copy::SharedStorage>(async_copy::gemm, async_copy::kThreads);
    check<past_l1::SharedStorage>(past_l1::gemm<true>, past_l1::kThreads);
    check<past_l1::SharedStorage>(past_l1::gemm<false>, past_l1::kThreads);
    check<SharedStorage<3>>(gemm<3, true>, kThreads);
    check<SharedStorage<3>>(gemm<3, false>, kThreads);
  }
  {
    using namespace lesson04;
    check<tma::SharedStorage>(tma::gemm, tma::kThreads);
    check<roles::SharedStorage>(roles::gemm, roles::kThreads);
    check<tma_store::SharedStorage>(tma_store::gemm, tma_store::kThreads);
    check<walk::SharedStorage>(walk::gemm, walk::kThreads);
    check<SharedStorage>(gemm, kThreads);
  }
  {
    using namespace lesson05;
    check<ring::SharedStorage<2>>(ring::gemm<2>, ring::kThreads);
    check<pieces::SharedStorage<2>>(pieces::gemm<2>, pieces::kThreads);
  }
}
