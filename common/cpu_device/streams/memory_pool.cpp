/// @file
/// Chunks of memory, cut into segments that know what they come after.
#include "common/cpu_device/streams/memory_pool.hpp"

#include <algorithm>
#include <cstring>

#include "common/cpu_device/base/fiber.hpp"
#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/observe/forbidden_memory.hpp"
#include "common/cpu_device/observe/hidden_memory.hpp"
#include "common/cpu_device/streams/guarded_memory.hpp"
#include "common/cpu_device/streams/stream_engine.hpp"

using cpu_device::OrderClock;
using cpu_device::streams;

namespace {

/// Pools reserve in multiples of this.
constexpr size_t kChunkBytes = 2 << 20;

size_t round_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

}  // namespace

namespace cpu_device {

void poison_pool_memory(std::byte* begin, size_t bytes, const std::string& name) {
  const size_t with_padding = round_up(bytes, kMemoryAlignment);
#ifdef CPU_DEVICE_ASAN
  __asan_unpoison_memory_region(begin, with_padding);
  if (!name.empty()) __asan_poison_memory_region(begin + bytes, with_padding - bytes);
#else
  const auto first = reinterpret_cast<uintptr_t>(begin), last = first + bytes;
  ForbiddenMemory::instance().allow(first, first + with_padding);
  if (!name.empty()) ForbiddenMemory::instance().forbid({last, first + with_padding, first, bytes, name});
#endif
  std::memset(begin, unwritten_byte, bytes);
}

void release_unused_memory_of_pools() {
  std::set<CUmemPoolHandle_st*>& pools = streams().pools;
  for (auto it = pools.begin(); it != pools.end();) {
    CUmemPoolHandle_st* const pool = *it;
    pool->trim(pool->is_destroyed ? 0 : pool->release_threshold);
    const bool is_over = pool->is_destroyed && !pool->live && !pool->reserved.current;
    it = is_over ? pools.erase(it) : std::next(it);
    if (is_over) delete pool;
  }
}

}  // namespace cpu_device

void CUmemPoolHandle_st::Statistics::set(uint64_t bytes) {
  current = bytes;
  high = std::max(high, bytes);
}

CUmemPoolHandle_st::~CUmemPoolHandle_st() { trim(0); }

std::byte* CUmemPoolHandle_st::allocate(size_t asked_for, const OrderClock& known) {
  const size_t bytes = round_up(asked_for, cpu_device::kMemoryAlignment);
  // The smallest that is large enough, so that large ones stay whole.
  const auto find_best = [&]() -> std::byte* {
    Chunk* best_chunk = nullptr;
    std::map<size_t, Segment>::iterator best;
    for (Chunk& chunk : chunks_) {
      for (auto it = chunk.segments.begin(); it != chunk.segments.end(); ++it) {
        const Segment& segment = it->second;
        if (segment.asked_for || segment.bytes < bytes || !known.covers(segment.free_after)) continue;
        if (best_chunk && best->second.bytes <= segment.bytes) continue;
        best_chunk = &chunk;
        best = it;
      }
    }
    return best_chunk ? take(*best_chunk, best, asked_for, bytes) : nullptr;
  };
  if (std::byte* found = find_best()) return found;
  return add_chunk(round_up(bytes, kChunkBytes)) ? find_best() : nullptr;
}

std::byte* CUmemPoolHandle_st::take(Chunk& chunk, std::map<size_t, Segment>::iterator place, size_t asked_for,
                                    size_t bytes) {
  const auto [offset, segment] = *place;
  if (segment.bytes > bytes) {
    Segment rest = segment;
    rest.bytes -= bytes;
    chunk.segments[offset + bytes] = rest;
  }
  place->second = {bytes, asked_for, {}, 0};
  used.set(used.current + asked_for);
  ++live;
  return chunk.begin + offset;
}

bool CUmemPoolHandle_st::add_chunk(size_t bytes) {
  if (max_bytes_ && reserved.current + bytes > max_bytes_) return false;
  if (bytes > cpu_device::free_device_bytes(device)) return false;
  std::byte* const memory =
      cpu_device::take_guarded_memory(bytes, "the chunk of " + std::to_string(bytes) + " bytes of a pool");
  if (!memory) return false;
  Chunk chunk{memory, bytes, {}};
  chunk.segments[0] = {bytes, 0, {}, 0};
  cpu_device::poison_pool_memory(chunk.begin, bytes);
  cpu_device::hide_from_host(chunk.begin, bytes,
                             "the chunk of " + std::to_string(bytes) + " bytes of a pool");
  chunks_.push_back(std::move(chunk));
  reserved.set(reserved.current + bytes);
  streams().device(device).used_bytes += bytes;
  return true;
}

void CUmemPoolHandle_st::give_back(std::byte* pointer, const OrderClock& freed, uint64_t freed_by) {
  const auto chunk = std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& candidate) {
    return pointer >= candidate.begin && pointer < candidate.begin + candidate.bytes;
  });
  auto here = chunk->segments.find(static_cast<size_t>(pointer - chunk->begin));
  used.set(used.current - here->second.asked_for);
  --live;
  here->second.asked_for = 0;
  here->second.free_after = freed;
  here->second.freed_by = freed_by;
  const auto absorb = [&](std::map<size_t, Segment>::iterator into,
                          std::map<size_t, Segment>::iterator neighbour) {
    into->second.bytes += neighbour->second.bytes;
    into->second.free_after.join(neighbour->second.free_after);
    into->second.freed_by = std::max(into->second.freed_by, neighbour->second.freed_by);
    chunk->segments.erase(neighbour);
  };
  const auto after = std::next(here);
  if (after != chunk->segments.end() && !after->second.asked_for) absorb(here, after);
  if (here != chunk->segments.begin() && !std::prev(here)->second.asked_for) absorb(std::prev(here), here);
}

void CUmemPoolHandle_st::trim(size_t bytes) {
  for (size_t i = chunks_.size(); i-- > 0 && reserved.current > bytes;) {
    Chunk& chunk = chunks_[i];
    const Segment& first = chunk.segments.begin()->second;
    // What was enqueued before the free may still use it, rightly or not.
    if (chunk.segments.size() > 1 || first.asked_for || streams().oldest_pending() <= first.freed_by)
      continue;
    streams().memory.forget_freed(chunk.begin, chunk.begin + chunk.bytes);
    reserved.set(reserved.current - chunk.bytes);
    streams().device(device).used_bytes -= chunk.bytes;
#ifdef CPU_DEVICE_ASAN
    __asan_unpoison_memory_region(chunk.begin, chunk.bytes);
#endif
    cpu_device::give_back_guarded_memory(chunk.begin);
    chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}
