/// @file
/// Operations that the lanes of a warp execute together.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"

namespace cpu_device {

/// What kind of meeting a warp-wide operation is.
enum class Meeting {
  aligned,  ///< all 32 lanes execute the same instruction (.aligned: ldmatrix, mma)
  masked    ///< the lanes of a mask meet, wherever they are in the program (shuffles, votes, __syncwarp)
};

/// Calls `function(lane's thread)` for every lane of the mask.
template <class Function>
void for_each_lane(Warp& warp, uint32_t mask, Function&& function) {
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (mask >> lane & 1) function(*warp.lanes[lane]);
  }
}

/// The lane arrives; the last one executes `operation(warp, mask)` for all of them and lets the others go on.
template <class Operation>
void execute_together(Thread& thread, uint32_t mask, Meeting meeting, const char* what, Location where,
                      Operation&& operation) {
  Cluster& cluster = thread.cluster;
  Warp& warp = *thread.warp;
  cluster.jitter(thread);
  const uint32_t self = 1u << thread.lane;
  if (meeting == Meeting::aligned && warp.live != warp.present) {
    cluster.fail(thread, std::string(what) + ": lanes of the warp have exited", where);
  }
  mask &= warp.live;
  if (!(mask & self)) {
    cluster.fail(thread, std::string(what) + ": the lane is not in the mask that it passes", where);
  }

  size_t position = 0;
  // Other lanes may have gone on to a meeting of another mask; that is no divergence yet.
  while (position < warp.collectives.size() && warp.collectives[position].mask != mask) ++position;
  const bool is_first = position == warp.collectives.size();
  if (!is_first) {
    const Collective& open = warp.collectives[position];
    const bool is_same = open.what == what || std::strcmp(open.what, what) == 0;
    if (!is_same || (meeting == Meeting::aligned && !(open.where == where))) {
      cluster.fail(
          thread,
          print("warp divergence: this lane executes %s (mask 0x%08x), others wait in %s (mask 0x%08x) at ",
                what, mask, open.what, open.mask) +
              to_string(open.where),
          where);
    }
  }
  if (meeting == Meeting::aligned) execute_aligned(thread, what, where);
  if (is_first) {
    if (mask == self) return operation(warp, mask);
    using Stored = std::remove_reference_t<Operation>;
    const auto execute = [](const void* of, Warp& at, uint32_t lanes) {
      (*static_cast<const Stored*>(of))(at, lanes);
    };
    warp.collectives.push_back({what, mask, self, meeting == Meeting::aligned, where, execute, &operation});
    cluster.park(thread, {WaitKind::warp, &warp, mask, what, where});
    return;
  }

  Collective& open = warp.collectives[position];
  open.arrived |= self;
  if (open.arrived != mask) {
    cluster.park(thread, {WaitKind::warp, &warp, mask, what, where});
    return;
  }
  warp.collectives.erase(warp.collectives.begin() + static_cast<std::ptrdiff_t>(position));
  cluster.count_progress();
  operation(warp, mask);
  cluster.leave_if_failed();
  for_each_lane(warp, mask & ~self, [&](Thread& other) { cluster.wake(other); });
}

}  // namespace cpu_device
