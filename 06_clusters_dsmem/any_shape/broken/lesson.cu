/// @file
/// Lesson 06 for the lab: a few of its kernels, so that a broken copy is compiled quickly.
#include <stdexcept>
#include <vector>

#include "06_clusters_dsmem/any_shape/launch.cuh"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/cuda/residency.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson06::any_shape {
namespace {

/// Flips the sign of each element.
__global__ void negate(uint16_t* values, size_t count) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    values[i] ^= 0x8000;
}

/// Kernels before this one in the stream that write A: twice the other sign, so that A is what it was. Who
/// reads A too early reads it with the wrong sign.
void write_a_anew(const Gemm& p, cudaStream_t stream) {
  auto* a = reinterpret_cast<uint16_t*>(const_cast<__nv_bfloat16*>(p.a));
  for (int i = 0; i < 2; ++i)
    ladder::launch(negate, {.name = "negate", .grid = dim3(2), .block = dim3(256), .stream = stream}, a,
                   size_t(p.m) * p.k);
}

/// For stream-K: as much as the kernels here need. Never freed: the driver may have shut down by then.
Workspace workspace() {
  struct Memory {
    ladder::DeviceBuffer<float4> sums;
    ladder::DeviceBuffer<unsigned> arrived;
  };
  static Memory& memory = *new Memory([] {
    using Shared = Shape<64, 128, 1, 1, 1, true>;
    const size_t blocks = ladder::resident_clusters(gemm<Shared, ladder::Identity>, Shared::kThreads,
                                                    sizeof(SharedStorage<Shared>), Shared::kBlocks);
    // Fewer than 2 tiles for each block are split, into fewer partial sums than tiles and blocks together.
    return Memory{ladder::DeviceBuffer<float4>(3 * blocks * Shared::kTile.m * Shared::kTile.n / 4),
                  ladder::DeviceBuffer(std::vector<unsigned>(2 * blocks))};
  }());
  return {memory.sums.data(), memory.arrived.data()};
}

/// The kernel that `settings` choose.
template <class Visit>
void visit_shape(const ladder::Settings& settings, const Visit& visit) {
  const std::string kernel = settings.at("tile") + " " + settings.at("cluster_m") + "x" +
                             settings.at("cluster_n") + "x" + settings.at("cluster_k") +
                             (settings.at("stream_k") == "on" ? ", stream-K" : "") +
                             (settings.at("swap") == "on" ? ", swapped" : "");
  if (kernel == "64x128 1x1x1") return visit(Shape<64, 128, 1, 1, 1>());
  if (kernel == "64x128 1x1x1, stream-K") return visit(Shape<64, 128, 1, 1, 1, true>());
  if (kernel == "64x128 2x1x1") return visit(Shape<64, 128, 2, 1, 1>());
  if (kernel == "64x128 2x2x1") return visit(Shape<64, 128, 2, 2, 1>());
  if (kernel == "64x128 1x1x2") return visit(Shape<64, 128, 1, 1, 2>());
  if (kernel == "128x256 2x1x1") return visit(Shape<128, 256, 2, 1, 1>());
  if (kernel == "72x64 1x1x1, swapped") return visit(Shape<72, 64, 1, 1, 1, false, true>());
  throw std::invalid_argument(
      "--tile " + kernel +
      ": the lab has 64x128 1x1x1, with stream-K and without, 2x1x1, 2x2x1, 1x1x2 and "
      "128x256 2x1x1, and 72x64 1x1x1, swapped");
}

void check(const Gemm& p, const ladder::Settings& settings) {
  ladder::require_tma(p, settings);
  visit_shape(settings, [&]<class S>(S) { ladder::require_k_steps(p, S::kTile.k, S::kClusterK); });
}

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  const Order order{std::stoi(settings.at("group")), settings.at("pdl") == "on", /*spare_sms=*/0};
  const Ending<ladder::Identity> ending{.workspace =
                                            settings.at("stream_k") == "on" ? workspace() : Workspace()};
  if (order.pdl) write_a_anew(p, stream);
  visit_shape(settings, [&]<class S>(S) { launch_gemm<S>(p, order, ending, stream); });
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "06_any_shape",
      .idea = "Lesson 06, for the lab.",
      .knobs = {ladder::wgmma_knob(),
                {"tile", "of C, in one block", {"64x128", "128x256", "72x64"}},
                {"cluster_m", "blocks that receive the same tiles of B", {"2", "1"}},
                {"cluster_n", "blocks that receive the same tiles of A", {"1", "2"}},
                {"cluster_k", "blocks that split K", {"1", "2"}},
                {"stream_k",
                 "whether clusters split the tiles that would not "
                 "fill a wave along K",
                 {"off", "on"}},
                {"swap", "whether wgmma's operands are swapped", {"off", "on"}},
                {"pdl",
                 "programmatic dependent launch, behind kernels "
                 "that write A",
                 {"off", "on"}},
                ladder::group_knob()},
      .rungs = {{"lab", {}}},
      .minimum_architecture = ladder::kHopper,
      .check = check,
      .launch = launch,
      .cpu_check = {323, 72, 1000}};
  return lesson;
}

}  // namespace lesson06::any_shape
