/// @file
/// Segments, cut into pieces and joined again.
#include "07_streams/experiments/memory/caching_allocator.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <iterator>

#include "07_streams/drain.hpp"
#include "common/cuda/error.hpp"

namespace lesson07 {
namespace {

constexpr size_t kAlignment = 512;

size_t round_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

}  // namespace

CachingAllocator::CachingAllocator(size_t budget_bytes, size_t segment_bytes, bool gives_back)
    : budget_(budget_bytes), segment_bytes_(segment_bytes), gives_back_(gives_back) {}

CachingAllocator::~CachingAllocator() {
  for (const auto& [memory, piece] : pieces_)
    if (piece.begins_segment) quietly([memory = memory] { cudaFree(memory); });
}

void* CachingAllocator::allocate(size_t bytes) {
  bytes = round_up(bytes, kAlignment);
  if (std::byte* found = take(bytes)) return found;
  if (add_segment(bytes)) return take(bytes);
  if (!gives_back_) return nullptr;
  give_back_free_segments();
  return add_segment(bytes) ? take(bytes) : nullptr;
}

std::byte* CachingAllocator::take(size_t bytes) {
  auto best = pieces_.end();
  for (auto it = pieces_.begin(); it != pieces_.end(); ++it)
    if (it->second.is_free && it->second.bytes >= bytes &&
        (best == pieces_.end() || it->second.bytes < best->second.bytes))
      best = it;
  if (best == pieces_.end()) return nullptr;
  auto& [memory, piece] = *best;
  if (piece.bytes > bytes) pieces_[memory + bytes] = {piece.bytes - bytes, true, false};
  piece = {bytes, false, piece.begins_segment};
  used_ += bytes;
  return memory;
}

void CachingAllocator::free(void* memory) {
  auto here = pieces_.find(static_cast<std::byte*>(memory));
  here->second.is_free = true;
  used_ -= here->second.bytes;
  const auto join = [&](Pieces::iterator left, Pieces::iterator right) {
    if (right == pieces_.end() || !left->second.is_free || !right->second.is_free ||
        right->second.begins_segment)
      return left;
    left->second.bytes += right->second.bytes;
    pieces_.erase(right);
    return left;
  };
  here = join(here, std::next(here));
  if (here != pieces_.begin()) join(std::prev(here), here);
}

size_t CachingAllocator::largest_free() const {
  size_t largest = 0;
  for (const auto& [memory, piece] : pieces_)
    if (piece.is_free) largest = std::max(largest, piece.bytes);
  return largest;
}

bool CachingAllocator::add_segment(size_t bytes) {
  const size_t size = std::max(bytes, segment_bytes_);
  if (reserved_ + size > budget_) return false;
  void* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, size));
  pieces_[static_cast<std::byte*>(memory)] = {size, true, true};
  reserved_ += size;
  return true;
}

bool CachingAllocator::is_whole(Pieces::const_iterator piece) const {
  const auto next = std::next(piece);
  return piece->second.begins_segment && (next == pieces_.end() || next->second.begins_segment);
}

void CachingAllocator::give_back_free_segments() {
  for (auto it = pieces_.begin(); it != pieces_.end();) {
    if (!it->second.is_free || !is_whole(it)) {
      ++it;
      continue;
    }
    CUDA_CHECK(cudaFree(it->first));
    reserved_ -= it->second.bytes;
    it = pieces_.erase(it);
  }
}

}  // namespace lesson07
