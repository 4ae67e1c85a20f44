/// @file
/// Lesson 04 for the programs: its knobs, its rung, its limits.
#include <string>
#include <type_traits>

#include "04_warp_specialized/gemm.cuh"
#include "04_warp_specialized/variants/roles_without_tma.cuh"
#include "common/host/problem/requirements.hpp"

namespace lesson04 {
namespace {

/// The rows of A that a group of tiles shares should fit into the L2 cache of 50 MB: 16 tile rows are 34 MB
/// at k = 8192 and 67 MB at 16384, where blocks that have drifted apart fetch them from memory again.
int group_of(const Gemm& p, const ladder::Settings& settings) {
  constexpr int kLongK = 8192;
  if (settings.at("group") != "auto") return std::stoi(settings.at("group"));
  return p.k > kLongK ? 4 : 16;
}

bool has_tma(const ladder::Settings& settings) { return ladder::usable_loader(settings) == "tma"; }

/// Calls visit(slot_k), an integral constant, for the slot that is chosen.
template <class Visit>
void visit_slot_k(const ladder::Settings& settings, const Visit& visit) {
  const std::string& slot_k = settings.at("slot_k");
  if (slot_k == "192") visit(std::integral_constant<int, 192>());
  if (slot_k == "128") visit(std::integral_constant<int, 128>());
  if (slot_k == "64") visit(std::integral_constant<int, 64>());
}

void check(const Gemm& p, const ladder::Settings& settings) {
  if (has_tma(settings)) return ladder::require_tma(p, settings);
  ladder::require_chunks(p);
  visit_slot_k(settings, [&](auto slot_k) {
    ladder::require_shared_memory("--slot_k " + settings.at("slot_k"),
                                  sizeof(without_tma::SharedStorage<1, slot_k()>));
  });
}

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  const int group = group_of(p, settings);
  visit_slot_k(settings, [&](auto slot_k) {
    if (has_tma(settings))
      launch_gemm<slot_k()>(p, group, stream);
    else
      without_tma::launch_gemm<1, slot_k()>(p, group, stream);
  });
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "04_warp_specialized",
      .idea = "Every warp has one permanent job: load, compute or store.",
      .knobs = {ladder::roles_core_knob(),
                ladder::loader_knob(),
                {"slot_k", "columns of A, and rows of B, in a slot", {"128", "64", "192"}},
                {"group", "tile rows that blocks visit together", {"auto", "1", "4", "8", "16"}}},
      .rungs = {{"roles, one slot", {}}},
      .builds_on = {"02_tiled"},
      .minimum_architecture = ladder::kAmpere,
      .check = check,
      .launch = launch};
  return lesson;
}

}  // namespace lesson04
