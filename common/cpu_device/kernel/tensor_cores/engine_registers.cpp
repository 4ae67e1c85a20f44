/// @file
/// setmaxnreg: the warpgroups of a block pass registers to each other.
///
/// The block owns what its launch gave it: every thread the same, as many as fit into an SM that holds as
/// many blocks as __launch_bounds__ says. `dec` gives registers back, `inc` waits for them. Counts are
/// registers of a thread; a warp is the unit in which they move.
#include "common/cpu_device/kernel/engine_registers.hpp"

#include <algorithm>

#include "common/cpu_device/kernel/from_source/kernel_declaration.hpp"
#include "common/cpu_device/kernel/reports/launch_shape.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/synchronisation/engine_warp.hpp"

namespace cpu_device {
namespace {

constexpr unsigned kRegistersOfSm = 65536, kMaxRegisters = 255;
constexpr unsigned kMin = 24, kMax = 256, kStep = 8;  ///< that setmaxnreg takes

Warpgroup& warpgroup_of(const Warp& warp) { return warp.block->warpgroups[warp.index / kWarpgroupWarps]; }

/// Would an inc to `count` fit if all other warpgroups had as few registers as possible?
bool can_ever_be_granted(const Block& block, unsigned count) {
  const auto warps = static_cast<unsigned>(block.warps.size());
  const unsigned all = warps * registers_at_launch(block.ids.threads, block.blocks_on_sm);
  return kWarpgroupWarps * count + (warps - kWarpgroupWarps) * kMin <= all;
}

/// At the first setmaxnreg of a block, as finding out what the source says takes long.
void find_registers(Block& block, const KernelLaunch& kernel) {
  if (block.blocks_on_sm) return;
  block.blocks_on_sm = blocks_in_launch_bounds(kernel.function, block.ids.threads);
  for (Warp& warp : block.warps) warp.registers = registers_at_launch(block.ids.threads, block.blocks_on_sm);
}

void check_change(Thread& thread, unsigned count, bool increase, Location where) {
  Cluster& cluster = thread.cluster;
  const Block& block = *thread.block;
  const Warp& warp = *thread.warp;
  const char* what = increase ? "setmaxnreg.inc" : "setmaxnreg.dec";
  if (count < kMin || count > kMax || count % kStep) {
    cluster.fail(thread, print("%s %u: it takes multiples of 8 from 24 to 256", what, count), where);
  }
  if ((warp.index / kWarpgroupWarps + 1) * kWarpgroupThreads > block.ids.threads) {
    cluster.fail(thread,
                 with_few_threads(cluster.kernel(),
                                  print("%s: the warpgroup of this thread has fewer than 128 threads", what)),
                 where);
  }
  if (increase ? count < warp.registers : count > warp.registers) {
    cluster.fail(thread,
                 with_few_threads(cluster.kernel(),
                                  print("%s %u: the thread has %u registers", what, count, warp.registers)),
                 where);
  }
  if (increase && !can_ever_be_granted(block, count)) {
    std::string rule =
        print("setmaxnreg.inc %u can never be granted: the launch gave %u registers to each of %u threads",
              count, registers_at_launch(block.ids.threads, block.blocks_on_sm), block.ids.threads);
    if (block.blocks_on_sm > 1) {
      rule += print(", because __launch_bounds__ leaves room for %u blocks on an SM", block.blocks_on_sm);
    }
    cluster.fail(thread, rule, where);
  }
}

/// All warps of a warpgroup must execute the same sequence of changes.
void join_change_of_warpgroup(Cluster& cluster, const Thread& thread, Warp& warp, unsigned count,
                              Location where) {
  std::vector<RegisterChange>& changes = warpgroup_of(warp).register_changes;
  const unsigned number = warp.register_changes++;
  if (number == changes.size()) changes.push_back({count, where});
  const Block& block = *warp.block;
  const unsigned first = warp.index / kWarpgroupWarps * kWarpgroupWarps;
  for (unsigned w = first; w < first + kWarpgroupWarps; ++w) {
    if (block.warps[w].live || block.warps[w].register_changes > number) continue;
    cluster.record_failure(&thread, print("setmaxnreg: warp %u of the warpgroup has exited without it", w),
                           where);
  }
  if (changes[number].count != count) {
    cluster.record_failure(
        &thread,
        print("setmaxnreg: the warps of one warpgroup ask for %u and for %u registers; the "
              "others did at ",
              count, changes[number].count) +
            to_string(changes[number].where),
        where);
  }
}

void grant_what_is_free(Cluster& cluster, Block& block) {
  for (Warp& warp : block.warps) {
    if (warp.wanted_registers <= warp.registers) continue;
    const unsigned more = warp.wanted_registers - warp.registers;
    if (more > block.free_registers) continue;
    block.free_registers -= more;
    warp.registers = warp.wanted_registers;
    cluster.count_progress();
  }
  auto& waiting = block.waiting_for_registers;
  const auto is_granted = [](const Thread* thread) {
    return thread->warp->registers >= thread->warp->wanted_registers;
  };
  for (Thread* thread : waiting) {
    if (is_granted(thread)) cluster.wake(*thread);
  }
  waiting.erase(std::remove_if(waiting.begin(), waiting.end(), is_granted), waiting.end());
}

}  // namespace

unsigned registers_at_launch(unsigned threads, unsigned blocks_on_sm) {
  return std::min(kRegistersOfSm / (threads * blocks_on_sm) / kStep * kStep, kMaxRegisters);
}

void set_max_registers(unsigned count, bool increase, Location where) {
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  find_registers(*thread.block, cluster.kernel());
  check_change(thread, count, increase, where);
  execute_together(thread, ~0u, Meeting::aligned, increase ? "setmaxnreg.inc" : "setmaxnreg.dec", where,
                   [&](Warp& warp, uint32_t) {
                     join_change_of_warpgroup(cluster, thread, warp, count, where);
                     warp.wanted_registers = count;
                     if (!increase) {
                       warp.block->free_registers += warp.registers - count;
                       warp.registers = count;
                     }
                     grant_what_is_free(cluster, *warp.block);
                   });
  cluster.leave_if_failed();
  if (thread.warp->registers >= count) return;
  thread.block->waiting_for_registers.push_back(&thread);
  cluster.park(thread, {WaitKind::registers, nullptr, count, "setmaxnreg.inc", where});
}

std::vector<unsigned> registers_asked_for(const Block& block) {
  std::vector<unsigned> registers;
  for (size_t w = 0; w < block.warps.size(); w += kWarpgroupWarps)
    registers.push_back(block.warps[w].wanted_registers);
  return registers;
}

void check_register_changes(Thread& thread) {
  const std::vector<RegisterChange>& changes = warpgroup_of(*thread.warp).register_changes;
  if (thread.warp->register_changes >= changes.size()) return;
  thread.cluster.fail(
      thread,
      "the thread exits without the setmaxnreg that other warps of its warpgroup executed at " +
          to_string(changes[thread.warp->register_changes].where),
      {});
}

}  // namespace cpu_device
