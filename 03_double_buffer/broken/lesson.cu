/// @file
/// Lesson 03 for the lab: a few of its kernels, so that a broken copy is compiled quickly.
#include <stdexcept>
#include <string>

#include "03_double_buffer/gemm.cuh"
#include "03_double_buffer/steps/2_past_l1.cuh"
#include "03_double_buffer/variants/ways_to_copy.cuh"
#include "common/device/cores.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson03 {
namespace {
using ladder::Settings;

template <class Pipe>
void launch_with(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  const std::string& slots = settings.at("slots");
  if (slots == "1") return copies::launch_gemm<1, Pipe, Core>(p, stream);
  if (slots == "3") return copies::launch_gemm<3, Pipe, Core>(p, stream);
  throw std::logic_error("no kernel with " + slots + " slots");
}

void check(const Gemm& p, const Settings&) { ladder::require_chunks(p); }

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  check(p, settings);
  const std::string& copy = settings.at("copy");
  if (copy == "primitives" && settings.at("slots") == "3") return launch_gemm<3, false>(p, stream);
  if (copy == "primitives") return past_l1::launch_gemm<false>(p, stream);
  if (copy == "memcpy_async") return launch_with<copies::MemcpyAsync<16>>(p, settings, stream);
  if (copy == "block") return launch_with<copies::BlockPipeline>(p, settings, stream);
  if (copy == "cg") return launch_with<copies::CooperativeGroups>(p, settings, stream);
  if (copy == "registers")
    return launch_with<copies::ThroughRegisters<TileA, TileB, copies::kThreads<Core>>>(p, settings, stream);
  throw std::logic_error("no kernel with --copy " + copy);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "03_double_buffer",
      .idea = "Lesson 03, for the lab.",
      .knobs = {ladder::wgmma_knob(),
                {"slots", "tiles of A and B that shared memory holds", {"3", "1"}},
                {"copy",
                 "how a tile gets to shared memory",
                 {"primitives", "memcpy_async", "block", "cg", "registers"}}},
      .rungs = {{"lab", {}}},
      .minimum_architecture = ladder::kHopper,
      .check = check,
      .launch = launch,
      .cpu_check = {131, 136, 264},
      .cpu_check_few = {40, 136, 24}};
  return lesson;
}

}  // namespace lesson03
