/// @file
/// Which tile and which cluster a problem gets: the tile that fills whole waves, and what its steps cost.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "06_clusters_dsmem/any_shape/ring.hpp"
#include "06_clusters_dsmem/any_shape/sharing.hpp"
#include "common/host/problem/shape.hpp"

namespace lesson06::any_shape {

/// A kernel: what Shape has as template parameters.
struct Plan {
  int tile_m = 0, tile_n = 0;  ///< of C
  int cluster_m = 1;           ///< blocks that receive the same tiles of B
  int cluster_n = 1;           ///< blocks that receive the same tiles of A
  int cluster_k = 1;           ///< blocks that split K
  bool stream_k = false;       ///< clusters split the tiles that would not fill a wave along K
  bool swapped = false;        ///< wgmma's operands are: a tile has rows in eights and whole 64 columns

  constexpr int blocks() const { return cluster_m * cluster_n * cluster_k; }
  /// What is of C here, of C transposed where the operands are swapped; and back.
  constexpr Plan transposed() const {
    return {tile_n, tile_m, cluster_n, cluster_m, cluster_k, stream_k, swapped};
  }
  /// As the kernel's walk sees it, whose tiles have 64 rows or a multiple, and columns in eights.
  constexpr Plan walked() const { return swapped ? transposed() : *this; }
  /// "136x128, cluster 2x1x1, stream-K, swapped": rows and columns of C; blocks along M, N and K, where there
  /// are several.
  std::string name() const;
  std::string tile() const;
  bool operator==(const Plan&) const = default;
};

constexpr int kMaxBlocks = 8;  ///< of a cluster, on every GPU that has clusters

/// Columns of a walked tile with so many rows, at most: sums are kept in the registers of an SM.
constexpr int widest_tile(int tile_m) { return tile_m == 256 ? 128 : tile_m == 192 ? 192 : 256; }

/// How its kernel divides shared memory.
constexpr Ring ring_of(const Plan& plan) {
  const Plan walked = plan.walked();
  return ring_of(plan.swapped, walked.tile_m, walked.tile_n, plan.cluster_k);
}

/// Whether there can be such a kernel, as Shape asserts.
bool is_possible(const Plan& plan);

/// How many clusters to launch of the `resident_clusters` that the GPU holds, where `spare_sms`
/// multiprocessors are left to other kernels; at least one. A block of these kernels fills a multiprocessor.
constexpr int clusters_beside(int spare_sms, int blocks, int resident_clusters) {
  const int spared = (spare_sms + blocks - 1) / blocks;
  return resident_clusters > spared ? resident_clusters - spared : 1;
}

/// Why no tile is shared, as the end of a sentence.
std::string why_none_is_shared(int tiles, int clusters, int k_steps);

/// What a plan must know of a GPU.
struct Gpu {
  int resident[kMaxBlocks + 1] = {};  ///< clusters of so many blocks that it holds at one time
  double memory_bytes_per_us = 0;     ///< at most
};

/// What is fixed of a plan, by knobs; the rest is open.
struct Fixed {
  std::optional<int> tile_m = {}, tile_n = {}, cluster_m = {}, cluster_n = {}, cluster_k = {};
  std::optional<bool> stream_k = {}, swapped = {};
};

/// The plans that fill a whole number of waves, for each height of a tile: the narrowest tile, in eights,
/// with which so many waves cover C. Also those with tiles of 64, 128, 192 and 256 columns. With swapped
/// operands the same of C transposed; where the knob leaves it open, only tiles that others cannot have,
/// whose rows are no multiple of 64.
std::vector<Plan> plans_by_waves(const ladder::Shape& shape, const Gpu& gpu, const Fixed& fixed);

/// What a plan is expected to cost.
struct Estimate {
  Plan plan;
  int resident_clusters = 0;
  int clusters = 0;   ///< of work: tiles of C, cluster_m times cluster_n of them at a time
  double waves = 0;   ///< rounds in which the GPU computes them; a fraction with stream-K
  int k_steps = 0;    ///< of 64, of one block for one tile
  int partials = 1;   ///< sums of a tile by different clusters; 1 where none is shared
  double useful = 0;  ///< part of what the tensor cores can do in these waves that is asked for
  double us = 0;      ///< of one launch
};

/// An estimate for each plan that can run the shape on the GPU, the cheapest first; equally cheap ones in the
/// order of the list. A plan with stream-K that shares no tile is left out if one for whole tiles can run.
/// @param spare_sms multiprocessors left to other kernels
std::vector<Estimate> estimates(const ladder::Shape& shape, const std::vector<Plan>& plans, const Gpu& gpu,
                                int spare_sms = 0);

/// The order in which to try them: of a tile the third and further plans come after all others. They are
/// likely to be as far off as the first two, so that other tiles tell more.
std::vector<Estimate> varied(const std::vector<Estimate>& estimates);

/// The first estimates as a table, under a line that says why the first plan is chosen.
std::string explanation(const ladder::Shape& shape, const std::vector<Estimate>& estimates);

}  // namespace lesson06::any_shape
