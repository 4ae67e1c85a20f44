/// @file
/// Implementation of the virtual clock.
#include "common/cpu_device/observe/clock.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace cpu_device {
namespace {

constexpr unsigned kSubCores = 4;

template <class Interval>
double total_length(const std::vector<Interval>& merged) {
  return std::accumulate(merged.begin(), merged.end(), 0.0,
                         [](double sum, const Interval& i) { return sum + (i.end - i.begin); });
}

/// Length of the intersection; both are sorted and disjoint.
template <class Interval>
double overlap_length(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  double sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max(0.0, std::min(a[i].end, b[j].end) - std::max(a[i].begin, b[j].begin));
    a[i].end < b[j].end ? ++i : ++j;
  }
  return sum;
}

}  // namespace

// --- resources -----------------------------------------------------------------------------------------

size_t VirtualClock::Resource::first_free(size_t slot) {
  if (slot >= used_.size()) {
    const size_t old = used_.size();
    used_.resize(slot + 1 + slot / 2, 0);
    onwards_.resize(used_.size());
    for (size_t i = old; i < onwards_.size(); ++i) onwards_[i] = static_cast<uint32_t>(i);
  }
  size_t free = slot;
  while (free < used_.size() && onwards_[free] != free) free = onwards_[free];
  while (onwards_[slot] != slot && onwards_[slot] != free) {
    slot = std::exchange(onwards_[slot], static_cast<uint32_t>(free));
  }
  return free < used_.size() ? free : first_free(free);
}

double VirtualClock::Resource::reserve(double earliest, double cycles) {
  constexpr double kFull = kSlotCycles - 1e-3;
  double end = earliest;
  for (size_t slot = static_cast<size_t>(earliest / kSlotCycles); cycles > 1e-9; ++slot) {
    slot = first_free(slot);
    const double slot_begin = static_cast<double>(slot) * kSlotCycles;
    const double slot_end = slot_begin + kSlotCycles;
    const double begin = std::max(earliest, slot_begin);
    // Of a slot only the amount is known that is taken, not where: a lane that runs ahead leaves it full of
    // holes, which others fill. That errs by less than a slot.
    const double taken = std::min({cycles, kSlotCycles - used_[slot], slot_end - begin});
    used_[slot] += static_cast<float>(taken);
    end = std::max(begin + taken, slot_begin + used_[slot]);
    cycles -= taken;
    if (used_[slot] >= kFull) onwards_[slot] = static_cast<uint32_t>(slot + 1);
  }
  return end;
}

// --- the cluster ---------------------------------------------------------------------------------------

void VirtualClock::begin(unsigned blocks, unsigned threads_per_block, bool trace) {
  threads_per_block_ = threads_per_block;
  warps_per_block_ = (threads_per_block + kWarpLanes - 1) / kWarpLanes;
  trace_ = trace;
  threads_.assign(blocks * threads_per_block, {});
  sms_.assign(blocks, {});
  tracks_.assign(blocks * warps_per_block_, {});
}

double VirtualClock::now(unsigned thread) const { return threads_[thread].now; }

// --- global memory -------------------------------------------------------------------------------------

double VirtualClock::transfer(unsigned thread, double bytes) {
  const double begin = threads_[thread].now;
  const double end =
      sm_of(thread).memory.reserve(begin, bytes / model_.memory_bytes_per_cycle) + model_.memory_latency;
  track_of(thread).copy.add(begin, end);
  return end;
}

void VirtualClock::load_global(unsigned thread, double bytes) {
  Thread& t = threads_[thread];
  t.loaded = std::max(t.loaded, transfer(thread, bytes));
  t.now += model_.issue_cycles;
}

void VirtualClock::store_global(unsigned thread, double bytes) {
  use_loads(thread);
  Thread& t = threads_[thread];
  // Nobody waits for a store, but it takes its share of the bandwidth.
  sm_of(thread).memory.reserve(t.now, bytes / model_.memory_bytes_per_cycle);
  t.now += model_.issue_cycles;
}

void VirtualClock::use_loads(unsigned thread) {
  threads_[thread].now = std::max(threads_[thread].now, threads_[thread].loaded);
}

double VirtualClock::copy_async(unsigned thread, double bytes) {
  const double end = transfer(thread, bytes);
  threads_[thread].now += model_.issue_cycles;
  return end;
}

StoreTime VirtualClock::store_async(unsigned thread, double bytes) {
  Thread& t = threads_[thread];
  const double read = sm_of(thread).memory.reserve(t.now, bytes / model_.memory_bytes_per_cycle);
  const StoreTime time{read, read + model_.memory_latency};
  if (trace_) track_of(thread).store.add(t.now, time.written);
  t.now += model_.issue_cycles;
  return time;
}

// --- other blocks of the cluster ----------------------------------------------------------------------

double VirtualClock::send_to_block(unsigned thread, double bytes) {
  use_loads(thread);
  Thread& t = threads_[thread];
  const double sent = sm_of(thread).network.reserve(t.now, bytes / model_.cluster_bytes_per_cycle);
  t.now += model_.issue_cycles;
  return sent + model_.cluster_latency;
}

void VirtualClock::load_from_block(unsigned thread, double bytes) {
  Thread& t = threads_[thread];
  const double served = sm_of(thread).network.reserve(t.now, bytes / model_.cluster_bytes_per_cycle);
  t.loaded = std::max(t.loaded, served + model_.cluster_latency);
  t.now += model_.issue_cycles;
}

// --- waiting -------------------------------------------------------------------------------------------

void VirtualClock::barrier(unsigned first, unsigned count, const char* what) {
  meet([first](unsigned i) { return first + i; }, count, what);
}

void VirtualClock::barrier_of(const unsigned* threads, unsigned count, const char* what) {
  meet([threads](unsigned i) { return threads[i]; }, count, what);
}

template <class ThreadAt>
void VirtualClock::meet(ThreadAt thread_at, unsigned count, const char* what) {
  double latest = 0;
  for (unsigned i = 0; i < count; ++i) {
    use_loads(thread_at(i));
    latest = std::max(latest, threads_[thread_at(i)].now);
  }
  if (what) latest += model_.barrier_cycles;
  for (unsigned i = 0; i < count; ++i) {
    if (what) {
      wait_until(thread_at(i), latest, what);
    } else {
      threads_[thread_at(i)].now = latest;
    }
  }
}

void VirtualClock::wait_until(unsigned thread, double time, const std::string& what) {
  use_loads(thread);
  Thread& t = threads_[thread];
  if (time <= t.now) return;
  if (trace_) {
    auto& waits = track_of(thread).waits;
    // The lanes of a warp wait for the same thing one after the other.
    if (!waits.empty() && waits.back().what == what && waits.back().end == time) {
      waits.back().begin = std::min(waits.back().begin, t.now);
    } else {
      waits.push_back({what, t.now, time});
    }
  }
  t.now = time;
}

// --- math ----------------------------------------------------------------------------------------------

void VirtualClock::mma_sync(unsigned thread, double flops) {
  const unsigned rank = thread % threads_per_block_;
  const unsigned first = thread - rank % kWarpLanes;
  const unsigned count = std::min(kWarpLanes, threads_per_block_ - (rank - rank % kWarpLanes));
  barrier(first, count, nullptr);
  const double begin = threads_[thread].now;
  const double end = sm_of(thread).tensor[warp_of(thread) % kSubCores].reserve(
      begin, flops / model_.mma_sync_flops_per_cycle);
  for (unsigned i = first; i < first + count; ++i) threads_[i].now = end;
  track_of(thread).math.add(begin, end);
}

double VirtualClock::issue_wgmma(unsigned thread) {
  use_loads(thread);
  return threads_[thread].now;
}

double VirtualClock::wgmma(unsigned first_thread, double issued, double flops) {
  double end = issued;
  for (Resource& tensor : sm_of(first_thread).tensor) {  // a quarter for each, all four at once
    end = std::max(end, tensor.reserve(issued, flops / model_.tensor_flops_per_cycle));
  }
  track_of(first_thread).math.add(issued, end);
  return end;
}

void VirtualClock::fma(unsigned thread, double flops) {
  use_loads(thread);
  Thread& t = threads_[thread];
  const double begin = t.now;
  // A lane uses a 32nd of its sub-core's width, for as long as the whole warp takes.
  Resource& cuda = sm_of(thread).cuda[warp_of(thread) % kSubCores];
  const double alone = flops * kWarpLanes / model_.fma_flops_per_cycle;
  t.now = std::max(begin + alone, cuda.reserve(begin, flops / model_.fma_flops_per_cycle));
  track_of(thread).math.add(begin, t.now);
}

void VirtualClock::load_shared(unsigned thread, double bytes) {
  Thread& t = threads_[thread];
  const double served = sm_of(thread).shared.reserve(t.now, bytes / model_.shared_bytes_per_cycle);
  t.now = std::max(t.now + model_.issue_cycles, served);
  const double flops_per_fma = 2;
  fma(thread, bytes * model_.fma_per_shared_byte * flops_per_fma);
}

void VirtualClock::store_shared(unsigned thread, double bytes) {
  use_loads(thread);
  Thread& t = threads_[thread];
  const double served = sm_of(thread).shared.reserve(t.now, bytes / model_.shared_bytes_per_cycle);
  t.now = std::max(t.now + model_.issue_cycles, served);
}

// --- results -------------------------------------------------------------------------------------------

void VirtualClock::Intervals::add(double begin, double end) {
  // To be found: the first that does not end before this one begins.
  const auto ends_before = [begin](const Interval& interval) { return interval.end < begin; };
  auto at = all_.begin() + static_cast<std::ptrdiff_t>(last_);
  if (at != all_.begin() && !ends_before(*std::prev(at))) {
    at = std::partition_point(all_.begin(), at, ends_before);
  } else {
    for (int steps = 0; steps < 4 && at != all_.end() && ends_before(*at); ++steps) ++at;
    at = std::partition_point(at, all_.end(), ends_before);
  }
  last_ = static_cast<size_t>(at - all_.begin());
  if (at == all_.end() || end < at->begin) {
    all_.insert(at, {begin, end});
    return;
  }
  at->begin = std::min(at->begin, begin);
  if (end <= at->end) return;
  at->end = end;
  auto next = std::next(at);
  for (; next != all_.end() && next->begin <= end; ++next) at->end = std::max(at->end, next->end);
  all_.erase(std::next(at), next);
}

void VirtualClock::Intervals::add(const Intervals& other) {
  for (const Interval& interval : other.all_) add(interval.begin, interval.end);
}

BlockTime VirtualClock::block_time(unsigned block) const {
  BlockTime time;
  const auto first = threads_.begin() + static_cast<std::ptrdiff_t>(block) * threads_per_block_;
  for (auto thread = first; thread != first + threads_per_block_; ++thread) {
    time.length = std::max({time.length, thread->now, thread->loaded});
  }
  Intervals copy, math;
  for (unsigned warp = block * warps_per_block_; warp < (block + 1) * warps_per_block_; ++warp) {
    const Track& track = tracks_[warp];
    copy.add(track.copy);
    math.add(track.math);
  }
  time.copy = total_length(copy.all());
  time.math = total_length(math.all());
  time.overlap = overlap_length(copy.all(), math.all());
  if (!copy.all().empty()) time.length = std::max(time.length, copy.all().back().end);
  if (!math.all().empty()) time.length = std::max(time.length, math.all().back().end);
  return time;
}

std::vector<Span> VirtualClock::spans() const {
  std::vector<Span> spans;
  if (!trace_) return spans;
  for (unsigned i = 0; i < tracks_.size(); ++i) {
    const unsigned block = i / warps_per_block_, warp = i % warps_per_block_;
    for (const Interval& copy : tracks_[i].copy.all()) {
      spans.push_back({block, warp, "copy", copy.begin, copy.end});
    }
    for (const Interval& math : tracks_[i].math.all()) {
      spans.push_back({block, warp, "mma", math.begin, math.end});
    }
    for (const Interval& store : tracks_[i].store.all()) {
      spans.push_back({block, warp, "store", store.begin, store.end});
    }
    for (const NamedInterval& wait : tracks_[i].waits) {
      spans.push_back({block, warp, "wait " + wait.what, wait.begin, wait.end});
    }
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return spans;
}

}  // namespace cpu_device
