/// @file
/// __syncwarp, shuffles and votes.
#include "common/cpu_device/kernel/synchronisation/engine_warp.hpp"

#include <algorithm>
#include <bit>

#include "common/cpu_device/kernel/reports/names.hpp"

namespace cpu_device {
namespace {

unsigned first_thread(const Warp& warp) {
  return warp.block->ids.rank_in_cluster * warp.block->ids.threads + warp.index * kWarpLanes;
}

/// The lane whose value `lane` receives; its own where the source lies outside of its segment.
int source_lane(Shuffle kind, int lane, int argument, int width) {
  const int first = lane / width * width;
  int source = lane;
  switch (kind) {
    case Shuffle::index:
      return first + (argument & (width - 1));
    case Shuffle::up:
      source = lane - argument;
      break;
    case Shuffle::down:
      source = lane + argument;
      break;
    case Shuffle::exclusive_or:
      source = lane ^ argument;
      break;
  }
  return source >= first && source < first + width ? source : lane;
}

uint32_t combine(Reduction kind, uint32_t a, uint32_t b) {
  switch (kind) {
    case Reduction::add:
      return a + b;
    case Reduction::min:
      return std::min(a, b);
    case Reduction::max:
      return std::max(a, b);
    case Reduction::min_signed:
      return static_cast<int32_t>(a) < static_cast<int32_t>(b) ? a : b;
    case Reduction::max_signed:
      return static_cast<int32_t>(a) < static_cast<int32_t>(b) ? b : a;
    case Reduction::bit_and:
      return a & b;
    case Reduction::bit_or:
      return a | b;
    case Reduction::bit_xor:
      break;
  }
  return a ^ b;
}

constexpr const char* kWarpBarrier = "__syncwarp";

/// The lanes have met: what each has done comes before what any of them does next.
void join(Cluster& cluster, Warp& warp, uint32_t lanes) {
  if (RaceChecker* races = cluster.races()) {
    unsigned numbers[kWarpLanes], count = 0;
    for_each_lane(warp, lanes, [&](Thread& lane) { numbers[count++] = lane.number; });
    races->barrier(numbers, count);
  }
  if (lanes != warp.present) return;
  if (VirtualClock* clock = cluster.clock()) {
    clock->barrier(first_thread(warp), static_cast<unsigned>(__builtin_popcount(lanes)), nullptr);
  }
  cluster.converged(warp);
}

}  // namespace

void warp_barrier(uint32_t mask, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  execute_together(thread, mask, Meeting::masked, kWarpBarrier, where,
                   [&](Warp& warp, uint32_t lanes) { join(thread.cluster, warp, lanes); });
  thread.synchronised = true;
}

// Shuffles and votes exchange values; they do not order memory accesses.

static const char* name_of(Shuffle kind) {
  switch (kind) {
    case Shuffle::up:
      return "__shfl_up_sync";
    case Shuffle::down:
      return "__shfl_down_sync";
    case Shuffle::exclusive_or:
      return "__shfl_xor_sync";
    default:
      return "__shfl_sync";
  }
}

uint64_t shuffle(Shuffle kind, uint32_t mask, uint64_t value, int argument, int width, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  if (width < 1 || width > 32 || (width & (width - 1))) {
    thread.cluster.fail(
        thread, print("%s with a width of %d, which is no power of two up to 32", name_of(kind), width),
        where);
  }
  thread.slots[0] = value;
  thread.slots[1] = static_cast<uint64_t>(static_cast<int64_t>(argument));
  execute_together(thread, mask, Meeting::masked, name_of(kind), where, [&](Warp& warp, uint32_t lanes) {
    for_each_lane(warp, lanes, [&](Thread& lane) {
      const int source =
          source_lane(kind, static_cast<int>(lane.lane), static_cast<int>(lane.slots[1]), width);
      if (!(lanes >> source & 1)) {
        const bool has_exited = (warp.present & ~warp.live) >> source & 1;
        thread.cluster.record_failure(&lane,
                                      has_exited
                                          ? print("%s reads lane %d, which has exited", name_of(kind), source)
                                          : print("%s reads lane %d, which does not take part (mask 0x%08x)",
                                                  name_of(kind), source, lanes),
                                      where);
        return;
      }
      lane.slots[2] = warp.lanes[source]->slots[0];
    });
  });
  return thread.slots[2];
}

uint32_t ballot(uint32_t mask, bool predicate, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  thread.slots[0] = predicate;
  execute_together(thread, mask, Meeting::masked, "__ballot_sync", where, [](Warp& warp, uint32_t lanes) {
    uint32_t votes = 0;
    for_each_lane(warp, lanes,
                  [&](Thread& lane) { votes |= static_cast<uint32_t>(lane.slots[0]) << lane.lane; });
    for_each_lane(warp, lanes, [&](Thread& lane) { lane.slots[2] = votes; });
  });
  return static_cast<uint32_t>(thread.slots[2]);
}

uint32_t match_any(uint32_t mask, uint64_t value, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  thread.slots[0] = value;
  execute_together(thread, mask, Meeting::masked, "__match_any_sync", where, [](Warp& warp, uint32_t lanes) {
    for_each_lane(warp, lanes, [&](Thread& lane) {
      uint32_t equal = 0;
      for_each_lane(warp, lanes, [&](Thread& other) {
        if (other.slots[0] == lane.slots[0]) equal |= 1u << other.lane;
      });
      lane.slots[2] = equal;
    });
  });
  return static_cast<uint32_t>(thread.slots[2]);
}

uint32_t reduce(Reduction kind, uint32_t mask, uint32_t value, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  constexpr const char* kNames[] = {"__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync",
                                    "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync",
                                    "__reduce_or_sync",  "__reduce_xor_sync"};
  Thread& thread = this_thread(where);
  thread.slots[0] = value;
  const char* const name = kNames[static_cast<int>(kind)];
  execute_together(thread, mask, Meeting::masked, name, where, [&](Warp& warp, uint32_t lanes) {
    uint32_t result = value;
    for_each_lane(warp, lanes, [&](Thread& lane) {
      if (&lane != &thread) result = combine(kind, result, static_cast<uint32_t>(lane.slots[0]));
    });
    for_each_lane(warp, lanes, [&](Thread& lane) { lane.slots[2] = result; });
  });
  return static_cast<uint32_t>(thread.slots[2]);
}

uint32_t live_lanes() { return this_thread({}).warp->live; }

unsigned elected_lane(uint32_t lanes) {
  const bool is_first = this_thread({}).cluster.options().schedule.order == Order::round_robin;
  return static_cast<unsigned>(is_first ? std::countr_zero(lanes) : std::bit_width(lanes) - 1);
}

bool is_elected() {
  const Thread& thread = this_thread({});
  // Also those that have exited: they may have been the elected ones.
  const unsigned count = std::min(kWarpLanes, thread.block->ids.threads - thread.warp->index * kWarpLanes);
  return thread.lane == elected_lane(~0u >> (kWarpLanes - count));
}

/// CUDA promises no lane that another comes along. Here those do that can: they wait until nobody else can
/// run.
uint32_t active_mask(Location where) {
  Thread& thread = this_thread(where);
  std::vector<Gathering>& gatherings = thread.warp->gatherings;
  const auto is_here = [&](const Gathering& gathering) { return gathering.where == where; };
  const uint32_t self = 1u << thread.lane;
  thread.slots[3] = 0;
  const auto open = std::find_if(gatherings.begin(), gatherings.end(), is_here);
  if (open == gatherings.end()) {
    gatherings.push_back({where, self});
  } else {
    open->mask |= self;
  }
  poll("__activemask", where);
  // The first to go on says for all who came.
  if (const auto mine = std::find_if(gatherings.begin(), gatherings.end(), is_here);
      !thread.slots[3] && mine != gatherings.end()) {
    for_each_lane(*thread.warp, mine->mask, [&](Thread& lane) { lane.slots[3] = mine->mask; });
    gatherings.erase(mine);
    thread.cluster.count_progress();
  }
  return static_cast<uint32_t>(thread.slots[3]);
}

/// Lanes that have exited no longer take part in __syncwarp, shuffles and votes, which are for "all
/// non-exited threads named in mask": lanes that wait there go on without the one that exits.
void complete_collectives_without(Cluster& cluster, Thread& exited) {
  auto& collectives = exited.warp->collectives;
  for (size_t i = 0; i < collectives.size();) {
    Collective& open = collectives[i];
    if (open.mask >> exited.lane & 1) {
      if (open.aligned)
        cluster.fail(exited,
                     std::string("the thread exits while other lanes of its warp wait for it in ") +
                         open.what + " at " + to_string(open.where),
                     {});
      open.mask &= ~(1u << exited.lane);
      if (open.arrived == open.mask) {
        const Collective complete = open;
        collectives.erase(collectives.begin() + static_cast<std::ptrdiff_t>(i));
        cluster.count_progress();
        complete.operation(complete.of, *exited.warp, complete.mask);
        cluster.leave_if_failed();
        for_each_lane(*exited.warp, complete.mask, [&](Thread& lane) { cluster.wake(lane); });
        continue;
      }
    }
    ++i;
  }
}

void poll(const char* what, Location where, const long long* found) {
  Thread& thread = this_thread(where);
  const uint64_t argument = found ? static_cast<uint64_t>(*found) + 1 : 0;
  thread.cluster.yield_poll(thread, {WaitKind::poll, nullptr, argument, what, where});
}

void trap(Location where) { report_misuse("__trap()", where); }

void report_misuse(const char* rule, Location where) {
  Thread& thread = this_thread(where);
  thread.cluster.fail(thread, rule, where);
}

}  // namespace cpu_device
