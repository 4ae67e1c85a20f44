/// @file
/// Launches kernels that this program was built with.
#pragma once
#include <algorithm>
#include <stdexcept>

#include "06_clusters_dsmem/any_shape/gemm.cuh"
#include "06_clusters_dsmem/any_shape/plan.hpp"
#include "common/cuda/launch.cuh"
#include "common/cuda/residency.hpp"
#include "common/cuda/tensor_map.hpp"
#include "common/cuda/tensor_map_encoder.hpp"
#include "common/host/problem/gemm.hpp"

namespace lesson06::any_shape {

/// What the host decides at run time.
struct Order {
  int group;      ///< tile rows that blocks visit together; see grouped_tile
  bool pdl;       ///< programmatic dependent launch; see LaunchConfig
  int spare_sms;  ///< multiprocessors that are left to other kernels
};

/// Rows of the box that loads the last rows of A: what is left, rounded up to 8; see TileSteps for the least.
inline int rows_at_end(const Plan& plan, int rows) {
  return std::max(8 * ladder::tiles_over(rows % (plan.tile_m / plan.cluster_n), 8), 8);
}

/// What clusters walk over: as many clusters as find room beside the spared SMs, or as there is work for.
inline Work work_of(const Plan& plan, const ladder::Gemm& p, int resident, const Order& order,
                    const Workspace& workspace) {
  resident = clusters_beside(order.spare_sms, plan.blocks(), resident);
  const Plan walked = plan.walked();
  const int rows = plan.swapped ? p.n : p.m, columns = plan.swapped ? p.m : p.n;
  const ladder::TileWalk tiles = {ladder::tiles_over(rows, walked.tile_m * walked.cluster_m),
                                  ladder::tiles_over(columns, walked.tile_n * walked.cluster_n), order.group};
  const int k_steps = ladder::tiles_over(p.k, kStepK);
  const Sharing shared =
      plan.stream_k && workspace.sums ? share_last_wave(tiles.tiles(), resident, k_steps) : Sharing();
  const int at_work = tiles.tiles() > resident ? resident : std::max(tiles.tiles(), shared.clusters());
  return {tiles, rows, columns, rows_at_end(plan, p.m), k_steps, shared, at_work};
}

/// C as three dimensions: the column in a group of `group` columns, the row, and the group. Only whole groups
/// are there, but one at least. A box of `box_rows` x 64 is cut off at the end of its group, where a box of
/// the matrix would go on.
inline CUtensorMap map_of_groups(const ladder::Gemm& p, int group, int box_rows) {
  static const ladder::TensorMapEncoder encode = ladder::tensor_map_encoder();
  const cuuint64_t extent[] = {cuuint64_t(group), cuuint64_t(p.m), cuuint64_t(std::max(1, p.n / group))};
  const cuuint64_t stride[] = {sizeof(__nv_bfloat16) * p.n, sizeof(__nv_bfloat16) * group};
  const cuuint32_t box[] = {64, cuuint32_t(box_rows), 1}, element_stride[] = {1, 1, 1};
  struct {  // as in make_tensor_map()
    CUtensorMap map;
  } aligned;
  if (encode(&aligned.map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, p.c, extent, stride, box, element_stride,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, ladder::l2_promotion(p.n),
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("TMA cannot describe C in groups of columns");
  return aligned.map;
}

/// A box is what a block loads or stores at a time.
inline Maps maps_of(const Plan& plan, const ladder::Gemm& p) {
  const auto map_of_rows_of_c = [&](int rows) { return ladder::make_tensor_map(p.c, p.m, p.n, rows, 64); };
  Maps maps{};
  maps.a = ladder::make_tensor_map(p.a, p.m, p.k, plan.tile_m / plan.cluster_n, 64);
  maps.a_end = ladder::make_tensor_map(p.a, p.m, p.k, rows_at_end(plan, p.m), 64);
  maps.b = ladder::make_tensor_map(p.b, p.k, p.n, kStepK / plan.cluster_m, 64);
  if (plan.swapped) {
    const int own = plan.tile_m / plan.cluster_k, staged = ring_of(plan).staged_n;
    maps.c = map_of_rows_of_c(staged);
    maps.c_end = map_of_rows_of_c(own - (own - 1) / staged * staged);
  } else {
    maps.c = map_of_rows_of_c(plan.tile_m);
    maps.c_end = map_of_groups(p, plan.tile_n / plan.cluster_k, plan.tile_m);
  }
  return maps;
}

/// The plan whose kernel has this shape.
template <class Shape>
constexpr Plan plan_of() {
  return Plan{Shape::kTile.m,   Shape::kTile.n,  Shape::kClusterM, Shape::kClusterN,
              Shape::kClusterK, Shape::kStreamK, Shape::kSwaps}
      .walked();
}

/// How a kernel of this plan is launched.
inline ladder::LaunchConfig config_of(const Plan& plan, const Work& work, int threads, size_t shared_bytes,
                                      const Order& order, cudaStream_t stream) {
  return {.name = "06_any_shape",
          .grid = dim3(work.clusters * plan.blocks()),
          .block = dim3(threads),
          .shared_bytes = shared_bytes,
          .cluster = dim3(plan.blocks()),
          .stream = stream,
          .pdl = order.pdl};
}

/// As many clusters as the GPU holds at once without the SMs that it spares, or as there is work for.
template <class Shape, class Epilogue>
void launch_gemm(const Gemm& p, const Order& order, const Ending<Epilogue>& ending, cudaStream_t stream) {
  constexpr Plan plan = plan_of<Shape>();
  const int resident =
      resident_clusters(gemm<Shape, Epilogue>, Shape::kThreads, sizeof(SharedStorage<Shape>), Shape::kBlocks);
  const typename Shape::Walk walk{work_of(plan, p, resident, order, ending.workspace)};
  ladder::launch(gemm<Shape, Epilogue>,
                 config_of(plan, walk, Shape::kThreads, sizeof(SharedStorage<Shape>), order, stream),
                 maps_of(plan, p), walk, ending);
}

}  // namespace lesson06::any_shape
